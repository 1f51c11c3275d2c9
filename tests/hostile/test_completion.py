"""What a shell completes is never a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.tasks import holdfast, workspace
from tests.support.tools import need

SCRIPT = """
eval "$(holdfast completion bash)"
COMP_WORDS=(holdfast queue pause "")
COMP_CWORD=3
_holdfast
for word in "${COMPREPLY[@]}"; do
    eval "echo $word"  # as if it were inserted, and the line entered
done
"""


def test_a_pool_of_a_projects_work_item(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing an item without a command needs no trust, and its pool has any name."""
    need("bash")
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    project = workspace()
    ran = os.path.join(os.path.dirname(home), "ran")
    pools = (f"$(touch {ran})", f"x;touch {ran}", "a*", "night shift")
    for number, pool in enumerate(pools):
        item = {"title": f"t{number}", "prompt": "p", "agent": "pi", "pool": pool}
        path = os.path.join(project, f"items{number}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump([item], file)
        done = holdfast("queue", "import", path, cwd=project, env=_with_pi(home))
        assert done.returncode == 0, done.stderr
    done = subprocess.run(
        ["bash", "--norc", "-c", SCRIPT], cwd=project, capture_output=True, text=True, timeout=60, check=False
    )
    assert sorted(done.stdout.splitlines()) == sorted(("default", *pools))
    assert not os.path.exists(ran)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_program_of_a_clone_is_not_run_to_complete_its_words(
    home: str, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    """`./holdfast` and Tab, without Enter."""
    need("bash")
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    project = workspace()
    path = os.path.join(project, "holdfast")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\ntouch ran\n")
    os.chmod(path, 0o755)
    text = holdfast("completion", shell).stdout
    assert "command holdfast _complete" in text
    if shell == "bash":
        script = SCRIPT.replace("COMP_WORDS=(holdfast queue", "COMP_WORDS=(./holdfast queue")
        done = subprocess.run(
            ["bash", "--norc", "-c", script],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout.split() == ["default"]
    assert not os.path.exists(os.path.join(project, "ran"))


def _with_pi(home: str) -> dict[str, str]:
    folder = os.path.join(os.path.dirname(home), "programs")
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(path := os.path.join(folder, "pi")):
        os.symlink("/bin/true", path)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}
