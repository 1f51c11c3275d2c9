"""Nothing that an agent prints becomes an option of the next attempt's command line, and no file of a clone
becomes one of ours."""

from __future__ import annotations

import os
import stat

import pytest

from tests.support.tasks import holdfast, workspace

#: A program that notes its arguments, prints a line that names a session, and dies once.
PROGRAM = """#!/bin/sh
case "$1" in --version) echo '{version}'; exit 0;; esac
printf '%s\\n' "$*" >> {arguments}
echo '{line}'
[ $(wc -l < {arguments}) -lt 2 ] && kill -SEGV $$
exit 1
"""
CLAUDE = '{"type":"system","subtype":"init","session_id":"--dangerously-skip-permissions","model":"m"}'
CODEX = '{"type":"thread.started","thread_id":"--dangerously-bypass-approvals-and-sandbox"}'


@pytest.mark.parametrize(
    ("agent", "version", "line"),
    [("claude", "2.0.0 (Claude Code)", CLAUDE), ("codex", "codex-cli 0.50.0", CODEX)],
)
def test_a_printed_session_is_no_option(
    home: str, agent: str, version: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = os.path.dirname(home)
    arguments = os.path.join(root, "arguments")
    programs = os.path.join(root, "programs")
    os.makedirs(programs)
    program = os.path.join(programs, agent)
    with open(program, "w", encoding="utf-8") as file:
        file.write(PROGRAM.format(version=version, line=line, arguments=arguments))
    os.chmod(program, stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    options = ("--permissions", "read", "--max-retries", "1", "--base-interval", "0.2s", "--id", "it")
    git_less = ("-o", "skip_git_repo_check=true") if agent == "codex" else ()
    holdfast("run", "-q", "--agent", agent, *options, *git_less, "do it")
    with open(arguments, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert len(lines) == 2
    assert "--dangerously" not in "".join(lines)


def test_a_file_of_a_clone_is_no_option(home: str) -> None:
    """`holdfast queue import *`"""
    ran = os.path.join(os.path.dirname(home), "ran")
    for name, text in (
        ("items.jsonl", f'{{"id": "it", "command": "touch {ran}"}}\n'),
        ("--trust-project", ""),
    ):
        with open(os.path.join(workspace(), name), "w", encoding="utf-8") as file:
            file.write(text)
    done = holdfast("queue", "import", "--trust-project", "items.jsonl", cwd=workspace())
    assert done.returncode == 2
    assert "error: '--trust-project' is also the name of a file here: was it a wildcard?" in done.stderr
    assert not os.path.exists(ran)
    assert not os.path.exists(os.path.join(home, "tasks", "it"))
