"""What is run is what was checked, also if a journal changes between two looks, or loses its seals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from holdfast import clock, ids
from holdfast.errors import NotPossible
from holdfast.store import lock as locks
from holdfast.store.digest import sha256
from holdfast.store.layout import Home, Packet
from holdfast.testing import Scenario
from holdfast.views.create import again
from tests.hostile.planting import write
from tests.hostile.test_planted_packets import plant
from tests.support import kin, processes
from tests.support.fanouts import agent, item, plan, project, start
from tests.support.loops import up
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.waiting import eventually

EAGER = ("--base-interval", "0.2s", "--stale", "none", "--stop-pause", "5s")


def line(kind: str, **fields: object) -> bytes:
    """A line that looks like that of a runner."""
    head = {"id": ids.new_ulid(), "at": clock.iso_now(), "type": kind}
    return json.dumps({**head, **fields}, separators=(",", ":")).encode() + b"\n"


def forge_environment(task: Task, **variables: str) -> bytes:
    """Another env.json, and the line that vouches for it. The seals go."""
    data = task.json("env.json")
    data["env"] |= variables
    changed = json.dumps(data).encode()
    with open(task.path("env.json"), "wb") as file:
        file.write(changed)
    os.unlink(Packet(task.packet).seals)
    return line("run.opened", run=1, request=ids.new_ulid(), env_sha256=sha256(changed))


def test_a_journal_that_is_away_when_its_runner_asks_who_made_it_runs_nothing(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that renames it to and fro gets there in seconds."""
    proof = plant(home, "spawning")
    packet = os.path.join(home, "tasks", "evil")
    monkeypatch.setenv("HOLDFAST_FAILPOINT", "runner.started=stop")
    runner = subprocess.Popen([sys.executable, "-m", "holdfast.runner", packet])
    try:
        eventually(
            lambda: (found := processes.look(runner.pid)) is not None and found.state == "T",
            what="the runner has read the journal",
        )
        os.rename(os.path.join(packet, "events.jsonl"), os.path.join(packet, "away"))
        os.kill(runner.pid, signal.SIGCONT)
        runner.wait(timeout=30)
    finally:
        runner.kill()
        runner.wait()
    assert not os.path.exists(proof)


def test_a_takeover_uses_no_environment_that_an_agent_has_forged(home: str) -> None:
    """The runner would only find that the seals are gone. The program was chosen before that."""
    workspace()
    task = Task.play(Scenario().say("at work").hang(once=True).say("thanks").result("ok"), *EAGER)
    eventually(lambda: "at work" in task.log(), what="the agent works")
    assert holdfast("interrupt", task.id).returncode == 0
    task.wait_for("interrupted")
    eventually(lambda: not locks.is_held(task.path("runner.lock")), what="the runner left")
    forged = forge_environment(task, FORGED="yes")
    forged += line(
        "task.moved", old="spawning", new="interrupted", reason="a question", interrupt="a question"
    )
    with open(task.path("events.jsonl"), "ab") as file:
        file.write(forged)
    terminal = Terminal("takeover", task.id, cwd=workspace())
    try:
        terminal.press("!echo forged-${FORGED:-no}\nexit\n")
        assert terminal.finish() != 0
    finally:
        terminal.kill()
    assert "forged-yes" not in terminal.text
    assert "cannot be verified" in terminal.text


#: The agent of an item gives the whole fan-out another environment.
_FORGE = """
import hashlib, json, os
packet = os.path.dirname(os.environ["HOLDFAST_PACKET"]) + "/f1"
with open(packet + "/env.json") as file:
    data = json.load(file)
data["env"]["FORGED"] = "yes"
changed = json.dumps(data).encode()
with open(packet + "/env.json", "wb") as file:
    file.write(changed)
os.unlink(SEALS)
opened = {"id": "01K00000000000000000000000", "at": "2026-01-01T00:00:00.000Z", "type": "run.opened"}
opened |= {"run": 1, "request": "01K00000000000000000000001"}
opened["env_sha256"] = hashlib.sha256(changed).hexdigest()
with open(packet + "/events.jsonl", "a") as file:
    file.write(json.dumps(opened) + "\\n")
"""


def test_the_items_of_a_fan_out_get_no_environment_that_the_agent_of_another_has_forged(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    up("--slots", "2")
    repo, script = project(), os.path.join(workspace(), "forge.py")
    write(script, _FORGE.replace("SEALS", repr(Home(home).seals_of("f1"))))
    seen = os.path.join(workspace(), "seen")
    scenario = agent(("a", f"{sys.executable} {script}"), ("b", f"echo ${{FORGED:-no}} > {seen}"))
    task = start(repo, scenario, plan(item("a"), item("b", depends_on=["a"])), "--accept", "true")
    eventually(
        lambda: os.path.exists(seen) or task.status() in ("interrupted", "failed", "completed"),
        within_s=60,
        what="the next item, or an end",
    )
    holdfast("down", "--now")
    with open(seen if os.path.exists(seen) else os.devnull, encoding="utf-8") as file:
        assert file.read() in ("", "no\n")


def test_a_journal_that_was_cut_to_its_first_line_does_not_run_again(home: str) -> None:
    """Its agent has kept the environment, which is deleted at the end."""
    runs = os.path.join(workspace(), "runs")
    task = Task.shell(f'echo >> {runs}; cp "$HOLDFAST_PACKET/env.json" kept', *EAGER)
    task.wait_for("completed")
    eventually(lambda: not locks.is_held(task.path("runner.lock")), what="the runner left")
    os.rename(os.path.join(workspace(), "kept"), task.path("env.json"))
    os.unlink(task.path("done", "_task.done"))
    os.unlink(task.path("manifest.json"))
    with open(task.path("events.jsonl"), "r+b") as file:
        file.readline()
        file.truncate(file.tell())
    kin.run_runner(task)
    assert "another process" in task.wait_for("interrupted")["interrupt"]["reason"]
    with open(runs, encoding="utf-8") as file:
        assert file.read() == "\n"


def test_a_retry_takes_nothing_from_a_journal_that_no_command_made(home: str) -> None:
    """It names the environment file. Another journal may be in its place when the request is sent."""
    plant(home, "spawning")
    with pytest.raises(NotPossible, match="not created by a command"):
        again.args_of(Packet(os.path.join(home, "tasks", "evil")), {})
