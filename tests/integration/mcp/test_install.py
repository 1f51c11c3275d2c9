"""`holdfast mcp install` and `remove`, with stand-ins of the agents' programs. tests/conformance has the real
ones."""

from __future__ import annotations

import json
import os
import sys

import pytest

from holdfast.views.mcp.install import PROGRAMS
from tests.support.tasks import holdfast, workspace

#: Behaves as the real programs did (tests/conformance/test_mcp.py): some refuse to add or remove twice.
STAND_IN = """#!{python}
import json, os, sys
words, path = sys.argv[1:], os.environ["HOME"] + "/{agent}.json"
with open(os.environ["HOME"] + "/calls", "a") as log:
    log.write(json.dumps(["{agent}", os.getcwd(), *words]) + "\\n")
there = json.load(open(path)) if os.path.exists(path) else None
strict = "{agent}" in ("claude", "copilot")
verb = words[1]
if os.environ.get("BROKEN"):
    sys.exit("no room on the disk")
if verb == "add":
    if there and strict:
        sys.exit("already exists")
    json.dump(words[words.index("holdfast") + 1:], open(path, "w"))
elif verb == "get":
    if not there:
        sys.exit("not found")
    print("Command:", *[word for word in there if word != "--"])
elif verb == "remove" and "{agent}" != "opencode":
    if not there and strict:
        sys.exit("not found")
    if there:
        os.remove(path)
else:
    sys.exit("usage")
"""


@pytest.fixture(autouse=True)
def programs(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.path.join(os.path.dirname(home), "bin")
    os.mkdir(folder)
    for agent in PROGRAMS:
        path = os.path.join(folder, agent)
        with open(path, "w", encoding="utf-8") as file:
            # Not the python of the environment in this repository: holdfast runs no script that names it.
            file.write(STAND_IN.format(python=os.path.realpath(sys.executable), agent=agent))
        os.chmod(path, 0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def registered(agent: str) -> list[str] | None:
    """The command line that the agent would start."""
    try:
        with open(os.path.join(os.environ["HOME"], f"{agent}.json"), encoding="utf-8") as file:
            return [word for word in json.load(file) if word != "--"]
    except FileNotFoundError:
        return None


def calls() -> list[list[str]]:
    with open(os.path.join(os.environ["HOME"], "calls"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("agent", PROGRAMS)
def test_install_twice_and_remove_twice(agent: str) -> None:
    for _ in range(2):
        done = holdfast("mcp", "install", "--for", agent, cwd=workspace())
        assert done.returncode == 0, done.stderr
        command = registered(agent)
        assert command is not None
        assert command[:2] == ["/usr/bin/env", f"HOLDFAST_HOME={os.environ['HOLDFAST_HOME']}"]
        assert os.path.isabs(command[2])
        assert os.access(command[2], os.X_OK)
        assert command[-1] == "mcp"
    assert not any("trust" in word for call in calls() for word in call[2:])
    assert all(call[1] == os.environ["HOME"] for call in calls()), "the user's settings, not a project's"
    for _ in range(2):
        done = holdfast("mcp", "remove", "--for", agent, cwd=workspace())
        if agent == "opencode":
            assert done.returncode == 3
            assert "opencode.jsonc" in done.stderr
        else:
            assert done.returncode == 0, done.stderr
            assert registered(agent) is None


@pytest.mark.parametrize("agent", ["claude", "copilot"])
def test_a_server_with_another_command_is_replaced(agent: str) -> None:
    with open(os.path.join(os.environ["HOME"], f"{agent}.json"), "w", encoding="utf-8") as file:
        json.dump(["/old/holdfast", "mcp"], file)
    assert holdfast("mcp", "install", "--for", agent).returncode == 0
    command = registered(agent)
    assert command is not None
    assert "/old/holdfast" not in command


def test_what_the_program_says_is_shown() -> None:
    done = holdfast("mcp", "install", "--for", "claude", env={"BROKEN": "1"})
    assert done.returncode == 3
    assert "no room on the disk" in done.stderr
    assert holdfast("mcp", "remove", "--for", "codex", env={"BROKEN": "1"}).returncode == 3


def test_several_agents() -> None:
    done = holdfast("mcp", "install", "--for", "codex", "--for", "gemini")
    assert done.returncode == 0, done.stderr
    assert registered("codex") == registered("gemini")
    assert registered("claude") is None


def test_mistakes() -> None:
    assert holdfast("mcp", "install").returncode == 2
    assert holdfast("mcp", "install", "--for", "pi").returncode == 2
    assert holdfast("mcp", "--for", "claude").returncode == 2
    done = holdfast("mcp", "install", "--for", "claude", env={"PATH": "/nowhere"})
    assert (done.returncode, "not installed" in done.stderr) == (2, True)
