"""No state is a dead end: whatever a runner finds in the journal, it continues, ends, or asks."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.spec import Limits, QueueSpec, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.store import lock as locks
from holdfast.store.digest import sha256
from holdfast.store.journal import encode_line
from holdfast.store.layout import Home
from holdfast.testing import Scenario
from tests.support.packets import Written, calls, played
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, trust, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")

LIMITS = Limits(base_interval_s=0.1, deadline_s=None)


def found(status: Status = Status.SPAWNING, **more: Any) -> Task:
    """A task without a runner."""
    home = Home(os.environ["HOLDFAST_HOME"])
    ensure_home(home.path)
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="command", command=["true"], project_dir=workspace(),
        stages=(StageSpec(name="command_run", agent="command"),), **{"limits": LIMITS, **more},
    )  # fmt: skip
    env = {"env": dict(os.environ), "umask": 0o077, "limits": {}}
    return Task(create(home, spec, prompt=None, env=env, status=status).path)


def tell(task: Task, *events: ev.Event, ago_s: float = 0.0) -> None:
    """What a runner had journalled before it died."""
    with open(task.path("events.jsonl"), "ab") as file:
        file.writelines(encode_line(event, clock.iso(clock.now() - ago_s)) for event in events)
    task.reseal()


def mark(task: Task, text: str = "which one?") -> None:
    with open(task.path("state", "interrupt-request.txt"), "w", encoding="utf-8") as file:
        file.write(f"{text}\n")


def has_left(task: Task) -> None:
    eventually(lambda: not locks.is_held(task.path("runner.lock")), what="its runner has left")


def touch(path: str) -> None:
    with open(path, "w", encoding="utf-8"):
        pass


# ── spawning ──


@pytest.mark.req("BUD-1", "PKT-13")
def test_the_deadline_passes_while_the_checks_before_the_work_run() -> None:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write(".holdfast/config.toml", 'pre_work = ["sleep 60"]\n')
    repo.commit(".holdfast/config.toml")
    trust(repo.path)
    task = Task.play(Scenario().say("never"), "--deadline", "1s", project=repo.path)
    manifest = task.wait_for("abandoned")
    assert "deadline" in manifest["status_reason"]
    assert calls(task) == []
    assert task.moves()[-1] == "abandoned"


@pytest.mark.req("INT-1", "INT-2")
def test_a_mark_that_lies_there_before_the_start_is_heeded() -> None:
    task = found()
    mark(task)
    task.start_runner()
    assert task.wait_for("interrupted")["interrupt"]["reason"] == "which one?"
    assert task.attempts() == []
    has_left(task)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")


# ── waiting ──


@pytest.mark.req("INT-1", "INT-2")
def test_a_mark_is_heeded_while_the_task_waits() -> None:
    task = found()
    wake_at = clock.iso(clock.now() + 600)
    tell(task, ev.TaskMoved(old="crashed", new="waiting", reason="backoff", wake_at=wake_at))
    task.start_runner()
    task.wait_for("waiting")
    mark(task)
    assert task.wait_for("interrupted")["interrupt"]["reason"] == "which one?"
    task.stop()


@pytest.mark.req("QUE-2")
@pytest.mark.parametrize(("waited_s", "new"), [(90.0, "queued"), (20.0, "completed")])
def test_a_task_of_the_queue_that_waited_for_long_takes_its_turn_again(waited_s: float, new: str) -> None:
    """Its slot was given to others."""
    task = found(queue=QueueSpec())
    wake_at = clock.iso(clock.now() - 1)
    waiting = ev.TaskMoved(old="running", new="waiting", reason="rate_limit: later", wake_at=wake_at)
    tell(task, waiting, ago_s=waited_s + 1)
    task.start_runner()
    task.wait_for(new)
    assert ("queued" in task.moves()) == (new == "queued")
    if new == "queued":
        has_left(task)
        task.stop()


# ── completing ──


def checked(command: str) -> Repo:
    """A repository whose check after the work is this command."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write(".holdfast/config.toml", f"post_work = ['{command}']\n")
    repo.commit(".holdfast/config.toml")
    trust(repo.path)
    return repo


def interrupted_at_the_gate(go: str) -> Task:
    """Its agent has succeeded, and the gate was interrupted; it passes once `go` exists."""
    task = Task.play(Scenario().say("done"), project=checked(f"test -e {go} || sleep 60").path)
    eventually(lambda: len(task.events("attempt.started")) == 2, what="the gate looks", journal=task.packet)
    assert task.ask("interrupt").returncode == 0
    task.wait_for("interrupted")
    has_left(task)
    touch(go)
    return task


@pytest.mark.req("PKT-13")
def test_a_runner_killed_on_its_way_back_to_the_gate_is_followed_by_one_that_gets_there() -> None:
    task = interrupted_at_the_gate(os.path.join(workspace(), "go"))
    os.remove(task.path("state", "interrupt-request.txt"))
    tell(
        task,
        ev.TaskMoved(old="interrupted", new="spawning", reason="resumed"),
        ev.TaskMoved(old="spawning", new="running", reason="back to the gate"),
    )
    task.start_runner()
    task.wait_for("completed")
    assert len(calls(task)) == 1


@pytest.mark.req("PKT-13", "INT-2")
def test_a_gate_whose_recorders_die_at_once_asks_for_a_person() -> None:
    task = interrupted_at_the_gate(os.path.join(workspace(), "go"))
    done = holdfast("resume", task.id, env={"HOLDFAST_FAILPOINT": "recorder.forked=kill"})
    assert done.returncode == 0, done.stderr
    task.wait_for_event("attempt.void")
    reason = task.wait_for("interrupted")["interrupt"]["reason"]
    assert "the gate of scripted_run cannot be started" in reason
    has_left(task)
    assert 1 < len(task.events("attempt.void")) < 10
    # A person who resumes it has fixed the cause: it is tried again.
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")
    assert len(calls(task)) == 1


@pytest.mark.req("INT-1", "INT-2")
def test_an_interrupt_between_the_work_and_its_gate_is_applied() -> None:
    env = {"HOLDFAST_FAILPOINT": "attempt.made=kill@2"}
    task = Task.play(Scenario().say("done"), project=checked("true").path, env=env)
    eventually(lambda: task.moves()[-1:] == ["completing"], what="it completes", journal=task.packet)
    has_left(task)
    assert task.ask("interrupt", "-m", "let me look").returncode == 0
    assert task.wait_for("interrupted")["interrupt"]["reason"] == "let me look"
    has_left(task)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")
    assert len(calls(task)) == 1


# ── side by side ──

LEFT, RIGHT = "scripted_review", "scripted_static_verify"


def wave(left: Scenario | None = None, right: Scenario | None = None, **manifest: Any) -> Written:
    """Two stages that run side by side; None plays its role well."""
    return Written(
        {LEFT: left, RIGHT: right},
        intent="review_only",
        group="review",
        waves=[{"parallel": [LEFT, RIGHT]}],
        **manifest,
    )


@pytest.mark.req("SUP-17", "PKT-13")
def test_a_retry_after_a_stop_at_the_gate_of_one_whose_neighbour_had_failed(place: Any) -> None:
    fails_once = played("static_verify", before=Scenario(on_resume="restart").crash(exit=1, times=1))
    packet = wave(right=fails_once, budgets={"retry_budget": 3})
    # The workspace was looked at, both agents have ended, and the gate of the one that succeeded is about to
    # look.
    env = {"HOLDFAST_FAILPOINT": "attempt.opened=kill@4"}
    task = packet.start(env=env)
    eventually(lambda: len(task.events("attempt.opened")) == 4, what="the gate", journal=task.packet)
    has_left(task)
    assert task.ask("stop").returncode == 0
    task.wait_for("killed")
    has_left(task)
    assert task.ask("retry").returncode == 0
    task.wait_for_event("run.opened")
    task.wait_for("completed")
    assert len(calls(task, LEFT)) == 1


@pytest.mark.req("SUP-17", "PKT-13")
def test_one_whose_system_prompt_cannot_be_read_stops_its_neighbour_and_asks() -> None:
    go = os.path.join(workspace(), "go")
    packet = wave(played("review", before=Scenario().wait_file(go)))
    gone = os.path.join(workspace(), "system.md")
    packet.manifest["routing"]["options"][RIGHT]["system_prompt_path"] = gone
    packet.put("manifest.yaml", json.dumps(packet.manifest))
    task = packet.start()
    reason = task.wait_for("interrupted")["interrupt"]["reason"]
    assert f"{RIGHT} cannot start: cannot read the system prompt" in reason
    assert [event["stage"] for event in calls(task)] == [LEFT]
    has_left(task)
    touch(go)
    touch(gone)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")


@pytest.mark.req("SUP-17", "PKT-13")
def test_one_whose_session_is_taken_stops_its_neighbour_and_asks(home: str) -> None:
    go = os.path.join(workspace(), "go")
    waits = Scenario().say("here").wait_file(go)
    packet = wave(
        played("review", before=waits), played("static_verify", before=Scenario().say("here").wait_file(go))
    )
    task = packet.start()
    task.wait_for_event("agent.text", 2)
    assert task.ask("interrupt").returncode == 0
    task.wait_for("interrupted")
    has_left(task)
    (call,) = calls(task, RIGHT)
    name = sha256(f"scripted {call['session_id']}".encode())[:32]
    taken = locks.acquire(os.path.join(Home(home).sessions, f"{name}.lock"), role="runner", within_s=5)
    assert task.ask("resume").returncode == 0
    eventually(lambda: task.moves().count("interrupted") == 2, 15, "it asks again", journal=task.packet)
    kinds = [event["type"] for event in task.events() if event["type"] in ("attempt.ended", "task.moved")]
    assert kinds[-2:] == ["attempt.ended", "task.moved"], "it asks once its neighbour was stopped"
    assert "another attempt is using session" in task.wait_for("interrupted")["interrupt"]["reason"]
    has_left(task)
    taken.release()
    touch(go)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")


@pytest.mark.req("SUP-17")
def test_a_session_that_cannot_go_on_is_not_resumed_whatever_its_neighbour_needs() -> None:
    def fails(role: str, said: str) -> Scenario:
        before = Scenario(on_resume="restart").print(f"{said}\n", stream="stderr", times=1)
        return played(role, before=before.crash(exit=1, times=1))

    too_long = "prompt is too long: 210000 tokens > 200000 maximum"
    task = wave(fails("review", too_long), fails("static_verify", "Error: 401 Unauthorized")).start()
    task.wait_for("interrupted")
    has_left(task)
    planned = [event["stage"] for event in task.events("retry.planned") if event["fresh_session"]]
    assert planned == [LEFT]
    assert task.ask("resume").returncode == 0
    task.wait_for_event("attempt.opened", 4)
    first, second = calls(task, LEFT)
    assert (second["mode"], second["session_id"] != first["session_id"]) == ("briefing", True)
    # Each session plays the scenario from its start, so this one repeats the text once too often.
    task.wait_for("failed")


# ── strange neighbours ──


@pytest.mark.req("PKT-13")
def test_junk_among_the_attempts_kills_no_process() -> None:
    """Put there by the first attempt; the next one needs a number."""
    script = 'cd "$HOLDFAST_PACKET/attempts"; touch 5 ²-x; mkdir 6 ٣-z; '
    task = Task.shell(script + "test $HOLDFAST_RESUME_COUNT = 1 || kill -9 $$", "--base-interval", "0.1s")
    task.wait_for("completed")
    shown = task.ask("show")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "002-command_run" in shown.stdout
    for words in ((), ("--attempt", "2"), ("--raw",)):
        done = task.ask("logs", *words)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert task.ask("rm").returncode == 0
