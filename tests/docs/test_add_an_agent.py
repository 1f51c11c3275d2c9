"""docs/guides/add-an-agent.md: its adapter, installed as a plug-in, runs a task."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from tests.support import pages
from tests.support.tasks import Task, holdfast, workspace

#: The program of the guide. It keeps its sessions below HOME, and waits while a file `hold` exists.
PARROT = f"""#!{sys.executable}
import json, os, sys, time

def say(**fields):
    print(json.dumps(fields), flush=True)

flag, session = sys.argv[2], sys.argv[3]
known = os.path.join(os.environ["HOME"], "parrot-" + session)
if (flag == "--resume") != os.path.exists(known):
    sys.exit("parrot: no such session, or it exists already")
prompt = sys.stdin.read()
with open(known, "a") as file:
    file.write(prompt)
say(event="session", id=session)
while os.path.exists("hold"):
    time.sleep(0.02)
say(event="say", text="Hello yourself.")
say(event="usage", **{{"in": len(prompt), "out": 3}})
say(event="end", ok=True)
"""


def page() -> str:
    return pages.read("docs/guides/add-an-agent.md")


@pytest.fixture
def plugin(home: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The guide's package, as pip installs it, and its program in PATH."""
    root = os.path.dirname(home)
    site, programs = os.path.join(root, "site-packages"), os.path.join(root, "bin")
    info = os.path.join(site, "parrot_agent-1.0.dist-info")
    os.makedirs(info)
    os.mkdir(programs)
    _write(os.path.join(site, "parrot_agent.py"), pages.fenced(page(), "python"))
    _write(os.path.join(info, "METADATA"), "Metadata-Version: 2.1\nName: parrot-agent\nVersion: 1.0\n")
    _write(os.path.join(info, "entry_points.txt"), _entry_points(tomllib.loads(pages.fenced(page(), "toml"))))
    _write(os.path.join(programs, "parrot"), PARROT)
    os.chmod(os.path.join(programs, "parrot"), 0o755)
    monkeypatch.setenv("PYTHONPATH", site, prepend=os.pathsep)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return site


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _entry_points(project: dict[str, Any]) -> str:
    groups = project["project"]["entry-points"]
    return "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    )


def test_the_plug_in_runs_a_task(plugin: str) -> None:
    done = holdfast("run", "--agent", "parrot", "Say hello.", cwd=workspace())
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", done.stdout.strip().splitlines()[0]))
    assert "Hello yourself." in task.log()
    manifest = task.manifest()
    assert manifest["usage"]["output_tokens"] == 3
    assert [event["session_id"] for event in task.events("agent.session")] == [manifest["session_id"]]


@pytest.mark.req("RES-1")
def test_the_plug_in_resumes_its_session(plugin: str) -> None:
    hold = os.path.join(workspace(), "hold")
    _write(hold, "")
    task = Task.start("--agent", "parrot", "--base-interval", "1s", "Say hello.", project=workspace())
    task.wait_for_event("agent.session")
    os.kill(task.agent_pid(), signal.SIGKILL)
    os.unlink(hold)
    task.wait_for("completed")
    assert [event["mode"] for event in task.events("attempt.opened")] == ["fresh", "resume"]
    assert len({event["session_id"] for event in task.events("agent.session")}) == 1


def test_the_guides_commands(plugin: str) -> None:
    shown = holdfast("agent", "probe", "parrot")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("agent                  parrot\n")
    (lines,) = re.findall(r"^```json\n(.*?)^```$", page(), re.DOTALL | re.MULTILINE)
    recorded = os.path.join(plugin, "run.stdout.jsonl")
    _write(recorded, lines)
    replayed = holdfast("agent", "replay", "parrot", recorded, "--exit", "0")
    assert replayed.stdout.startswith("outcome         success\n")
    _write(recorded, lines[: lines.index('{"event": "end"')])
    assert holdfast("agent", "replay", "parrot", recorded).stdout.startswith("outcome         truncated\n")


@pytest.mark.parametrize(
    ("chosen", "is_there"), [("parrot", True), ("a, parrot", True), ("", False), ("a", False)]
)
def test_the_variable_selects_plug_ins(
    plugin: str, monkeypatch: pytest.MonkeyPatch, chosen: str, is_there: bool
) -> None:
    monkeypatch.setenv("HOLDFAST_PLUGINS", chosen)
    done = holdfast("agent", "probe", "parrot")
    assert done.returncode == (0 if is_there else 2)
    assert ("no agent named 'parrot'" in done.stderr) != is_there
    listed = [row["agent"] for row in json.loads(holdfast("agent", "list", "--json").stdout)["agents"]]
    assert ("parrot" in listed) == is_there
    assert "claude" in listed


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("1/0", "cannot be loaded: ZeroDivisionError"),
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError"),
        ("ADAPTER = 7", "is not an adapter: it has no name"),
        ("raise SystemExit('bye')", "cannot be loaded: SystemExit"),
    ],
)
def test_a_broken_plug_in_is_reported_in_one_sentence(plugin: str, code: str, words: str) -> None:
    _write(os.path.join(plugin, "parrot_agent.py"), code + "\n")
    done = holdfast("run", "--agent", "parrot", "Say hello.")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    listed = holdfast("agent", "list")
    assert listed.returncode == 0
    assert words in listed.stdout
    assert "claude" in listed.stdout


def test_one_name_for_entry_point_and_adapter(plugin: str) -> None:
    _write(
        os.path.join(plugin, "parrot_agent.py"),
        pages.fenced(page(), "python").replace('name = "parrot"', 'name = "bird"'),
    )
    assert "calls itself 'bird'" in holdfast("agent", "probe", "parrot").stderr


def test_a_built_in_name_does_not_search_plug_ins(plugin: str) -> None:
    """The search costs as much as a whole command."""
    script = (
        "import sys; from holdfast.agents import registry; registry.adapter('command'); "
        "print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_variable_is_a_help_topic() -> None:
    assert "HOLDFAST_PLUGINS" in holdfast("help", "environment").stdout
