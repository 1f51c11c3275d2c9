"""States that could not be left: whatever a runner finds in the journal, it goes on, ends, or asks."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.spec import Limits, PipelineSpec, QueueSpec, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import inbox
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.store import lock as locks
from holdfast.store.digest import sha256
from holdfast.store.journal import encode_line
from holdfast.store.layout import Home, Packet
from holdfast.testing import Scenario
from tests.support import kin
from tests.support.packets import Written, calls, played
from tests.support.repos import Repo
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")

LIMITS = Limits(base_interval_s=0.1, deadline_s=None)


def found(status: Status = Status.SPAWNING, **more: Any) -> Task:
    """A task that is there, and no runner yet."""
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


@pytest.mark.req("PKT-13")
def test_chores_whose_recorders_die_at_once_ask_for_a_person(place: Any) -> None:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write(".holdfast/config.toml", 'pre_work = ["true"]\n')
    repo.commit(".holdfast/config.toml")
    env = {"HOLDFAST_FAILPOINT": "recorder.forked=kill"}
    task = Task.play(Scenario().say("never"), project=repo.path, env=env)
    reason = task.wait_for("interrupted")["interrupt"]["reason"]
    assert "pre_work of scripted_run cannot be started" in reason
    has_left(task)
    voids = len(task.events("attempt.void"))
    assert 1 < voids < 10
    # A person lets it go on: it is tried again, and not given up on by what was counted before.
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


def judged_before(task: Task) -> None:
    """Its agent has done its part, and the gate was interrupted."""
    home_id = {"boot_id": "b", "start_time": 1}
    started_at = clock.iso(clock.now() - 5)
    tell(
        task,
        ev.AttemptOpened(
            attempt=1, attempt_id="ses_1", stage="command_run", agent="command", mode="fresh", session_id=None
        ),
        ev.AttemptStarted(attempt=1, pid=2**22 + 1, mono_s=1.0, started_at=started_at, **home_id),
        ev.TaskMoved(old="spawning", new="running"),
        ev.AttemptEnded(attempt=1, outcome="success", exit_code=0, lived_s=1.0),
        ev.AttemptSwept(attempt=1, killed=(), spared=(), proof="none"),
        ev.TaskMoved(old="running", new="completing"),
    )
