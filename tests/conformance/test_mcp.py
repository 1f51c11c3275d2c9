"""`holdfast mcp`: in the settings of the real programs, and called by their agents."""

from __future__ import annotations

import os
import subprocess
import sys

from holdfast.testing.models import text, tool, tool_results
from tests.conformance.rig import STEP_S, Rig
from tests.support.tasks import Task, holdfast

NO_MCP = "Pi has no command for MCP servers: its agents use the skill and the command line."
NO_REMOVE = "OpenCode has no command that removes a server: `mcp remove` names the file."
#: How each program lists the servers of its settings.
LISTS = {
    "claude": ["mcp", "get", "holdfast"],
    "codex": ["mcp", "get", "holdfast"],
    "gemini": ["mcp", "list"],
    "copilot": ["mcp", "get", "holdfast"],
    "opencode": ["mcp", "list"],
}


def path(rig: Rig) -> str:
    return f"{rig.pin.bin}:{os.environ['PATH']}"


def listed(rig: Rig) -> bool:
    """Whether the program itself lists our server, with an absolute path."""
    done = subprocess.run(
        [str(rig.pin.bin / rig.pin.program), *LISTS[rig.agent]],
        env={"HOME": os.environ["HOME"], "PATH": path(rig)},
        cwd=os.environ["HOME"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=STEP_S,
        check=False,
    )
    return os.path.dirname(sys.executable) in done.stdout + done.stderr


def test_mcp_install(rig: Rig) -> None:
    if rig.agent == "pi":
        rig.cannot(NO_MCP)
        assert holdfast("mcp", "install", "--for", "pi").returncode == 2
        return
    env = {"PATH": path(rig)}
    for _ in range(2):
        done = holdfast("mcp", "install", "--for", rig.agent, env=env)
        assert done.returncode == 0, done.stderr
        assert listed(rig)
    if rig.agent == "opencode":
        rig.note(NO_REMOVE)
        assert holdfast("mcp", "remove", "--for", rig.agent, env=env).returncode == 3
        return
    for _ in range(2):
        done = holdfast("mcp", "remove", "--for", rig.agent, env=env)
        assert done.returncode == 0, done.stderr
        assert not listed(rig)


def test_mcp_call(rig: Rig) -> None:
    if rig.agent == "pi":
        rig.cannot(NO_MCP)
        return

    script = [
        tool(_name(rig, "start"), {"command": ["true"], "id": "child", "project": rig.project}),
        tool(_name(rig, "say"), {"task": "it", "verb": "approve"}),
        tool(_name(rig, "wait"), {"tasks": ["child"], "timeout_s": 20}),
        text("Done."),
    ]
    server = rig.serve(script)

    def install(env: dict[str, str]) -> None:
        done = holdfast("mcp", "install", "--for", rig.agent, env={**env, "HOLDFAST_KEEPER": "on"})
        assert done.returncode == 0, done.stderr

    task = rig.start(server, "Use holdfast.", "--id", "it", prepare=install)
    task.wait_for("completed", within_s=3 * STEP_S)
    said = [each.text for each in tool_results(server.conversations()[-1])]
    child = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "child"))
    assert child.events("task.created")[0]["spec"]["parent"] == "it"
    assert '"task_id"' in said[0], said
    assert "an agent may not approve its own task" in said[1], said
    assert '"finished"' in said[2], said


def _name(rig: Rig, tool_name: str) -> str:
    """How the program calls a tool of the server."""
    patterns = {
        "claude": "mcp__holdfast__{}",
        "codex": "mcp__holdfast/{}",
        "gemini": "mcp_holdfast_{}",
        "copilot": "holdfast-{}",
        "opencode": "holdfast_{}",
    }
    return patterns[rig.agent].format(tool_name)
