"""Files that a trusted work item names: what runs is what was trusted, whatever they contain later."""

from __future__ import annotations

import json
import os

import pytest

from tests.support import loops
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually

#: A `claude` that shows the content of the files on its command line.
PROGRAM = """#!/bin/sh
case "$1" in --version) echo '2.0.0 (Claude Code)'; exit 0;; esac
for word in "$@"; do [ -f "$word" ] && cat "$word" >> {shown}; done
echo shown >> {shown}
exit 1
"""


@pytest.mark.parametrize("when", ["before the import", "before the start", "in the packet"])
def test_a_file_changes_after_the_trust(home: str, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    root = os.path.dirname(home)
    project, shown = Repo(os.path.join(root, "project")), os.path.join(root, "shown")
    programs = Repo(os.path.join(root, "programs"), with_git=False)
    os.chmod(programs.write("claude", PROGRAM.format(shown=shown)), 0o755)
    monkeypatch.setenv("PATH", f"{programs.path}:{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    loops.settings("max_retries = 0\n")
    settings = project.write("settings.json", '{"model": "TRUSTED"}\n')
    bootstrap = project.write("bootstrap.md", "TRUSTED WORDS\n")
    item = {"id": "one", "title": "one", "agent": "claude", "bootstrap": bootstrap}
    source = project.write("items.json", json.dumps([{**item, "options": {"settings_path": settings}}]))
    assert holdfast("trust", source, "--yes").returncode == 0
    if when == "before the import":
        project.write("bootstrap.md", "PLANTED WORDS\n")
    assert holdfast("queue", "pause").returncode == 0
    done = holdfast("queue", "import", source, "--project", project.path)
    if when == "before the import":
        assert "changed since you trusted it" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    for folder, _, names in os.walk(os.path.join(home, "tasks", "one") if when == "in the packet" else ""):
        for name in names:
            if name.endswith(("settings.json", "bootstrap.md")):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write("PLANTED")
    project.write("settings.json", '{"model": "PLANTED"}\n')
    project.write("bootstrap.md", "PLANTED WORDS\n")
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("queue", "resume").returncode == 0
    assert holdfast("up").returncode == 0
    task = Task(os.path.join(home, "tasks", "one"))
    if when == "in the packet":
        task.wait_for("interrupted", "failed", "abandoned", within_s=40)
        assert not os.path.exists(shown)
        return
    eventually(lambda: os.path.exists(shown), 30, "the agent runs", journal=task.packet)
    holdfast("stop", "--now", "one")
    with open(shown, encoding="utf-8") as file:
        text = file.read()
    assert "PLANTED" not in text
    assert '"TRUSTED"' in text
    assert "TRUSTED WORDS" in text
