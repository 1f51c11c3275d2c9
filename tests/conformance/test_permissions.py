"""Permission profiles: which writes a CLI performs and which it refuses.

The model asks for four writes: with the CLI's tool for files and with a command, in the workspace and
elsewhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, NamedTuple

import pytest

from holdfast.testing.models import shell, text, tool
from tests.conformance.rig import STEP_S, Rig, attempts
from tests.support.tasks import holdfast
from tests.support.tools import need_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.testing.models import Turn


class _Tools(NamedTuple):
    """A CLI's names of its file tool and its shell. A profile may hide them from the model."""

    writer: str
    path: str
    content: str
    shell: str


#: Codex has only a shell.
_TOOLS = {
    "claude": _Tools("Write", "file_path", "content", "Bash"),
    "gemini": _Tools("write_file", "file_path", "content", "run_shell_command"),
    "copilot": _Tools("create", "path", "file_text", "bash"),
    "opencode": _Tools("write", "filePath", "content", "bash"),
    "pi": _Tools("write", "path", "content", "bash"),
}
CODEX_IS_SILENT = "Codex does not always report a command that its own sandbox stopped at once."
#: CLIs that also refuse a command that writes elsewhere.
_CONFINES_COMMANDS = ("codex", "copilot")


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A directory outside of the project, and of the temporary directories that some CLIs always allow."""
    path = tempfile.mkdtemp(dir="/var/tmp", prefix="hf-elsewhere-")
    yield path
    shutil.rmtree(path)


def _turns(agent: str, folder: str) -> list[Turn]:
    """A write with the tool for files, and one with a command."""
    command = f"echo x > {folder}/by_command"
    tools = _TOOLS.get(agent)
    if tools is None:
        return [shell(command)]
    arguments = {tools.path: f"{folder}/by_edit", tools.content: "x\n"}
    return [tool(tools.writer, arguments), tool(tools.shell, {"command": command, "description": "write"})]


@pytest.fixture
def in_home() -> str:
    """A directory that exists in the sandbox: the temporary directories there are private."""
    need_sandbox()
    path = os.path.join(os.environ["HOME"], "elsewhere")
    os.mkdir(path)
    return path


def _run(rig: Rig, elsewhere: str, profile: str, *flags: str) -> tuple[set[str], set[str], str, int]:
    """What was written in the workspace and elsewhere, the outcome, and the exit status of `wait`."""
    # Codex refuses to work in a directory without git.
    subprocess.run(["git", "init", "-q", rig.project], check=True)
    turns = [*_turns(rig.agent, rig.project), *_turns(rig.agent, elsewhere), text("All done.")]
    task = rig.start(rig.serve(turns), "Write.", *flags, permissions=profile)
    manifest = task.wait_for("completed", within_s=STEP_S)
    assert manifest["permissions"] == profile
    ((outcome),) = (one["outcome"] for one in attempts(task))
    inside = {name for name in os.listdir(rig.project) if name.startswith("by_")}
    return inside, set(os.listdir(elsewhere)), outcome, holdfast("wait", task.id).returncode


def _all(agent: str) -> set[str]:
    return {"by_edit", "by_command"} if agent in _TOOLS else {"by_command"}


def test_read(rig: Rig, elsewhere: str) -> None:
    inside, outside, outcome, status = _run(rig, elsewhere, "read")
    assert (inside, outside) == (set(), set())
    if rig.agent == "codex":
        rig.note(CODEX_IS_SILENT)
        assert (outcome, status) in (("permission_denied_but_finished", 4), ("success", 0))
        return
    assert (outcome, status) == ("permission_denied_but_finished", 4)


def test_edit(rig: Rig, elsewhere: str) -> None:
    inside, outside, outcome, status = _run(rig, elsewhere, "edit")
    assert inside == _all(rig.agent)
    if rig.agent == "pi":
        rig.cannot("Pi knows no boundary: with its tools for writing it writes everywhere. Use a sandbox.")
        assert outside == {"by_edit", "by_command"}
        assert (outcome, status) == ("success", 0)
        return
    if rig.agent in _CONFINES_COMMANDS:
        assert outside == set()
    else:
        rig.note("An edit elsewhere is refused, what a command writes elsewhere is not. Use a sandbox.")
        assert outside == {"by_command"}
    if rig.agent == "codex":
        rig.note(CODEX_IS_SILENT)
        assert (outcome, status) in (("permission_denied_but_finished", 4), ("success", 0))
        return
    assert (outcome, status) == ("permission_denied_but_finished", 4)


def test_full(rig: Rig, elsewhere: str) -> None:
    inside, outside, outcome, status = _run(rig, elsewhere, "full")
    assert inside == _all(rig.agent)
    if rig.agent == "gemini":
        rig.note("Gemini CLI's tool for files stays in the workspace; a command writes elsewhere.")
        assert outside == {"by_command"}
        assert (outcome, status) == ("permission_denied_but_finished", 4)
        return
    assert outside == _all(rig.agent)
    assert (outcome, status) == ("success", 0)


def test_sandbox_read(rig: Rig, in_home: str) -> None:
    done = _run(rig, in_home, "read", "--sandbox")
    assert done == (set(), set(), "permission_denied_but_finished", 4)


def test_sandbox_edit(rig: Rig, in_home: str) -> None:
    _writes_only_inside(rig, in_home, "edit")


def test_sandbox_full(rig: Rig, in_home: str) -> None:
    _writes_only_inside(rig, in_home, "full")


def _writes_only_inside(rig: Rig, elsewhere: str, profile: str) -> None:
    inside, outside, outcome, status = _run(rig, elsewhere, profile, "--sandbox")
    assert (inside, outside) == (_all(rig.agent), set())
    # The program refused it, or the sandbox did, which not every program reports as a refusal.
    assert (outcome, status) in (("permission_denied_but_finished", 4), ("tool_failed_but_finished", 0))
