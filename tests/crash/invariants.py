"""What holds for a task that has ended, wherever its processes were killed on the way."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from typing import Any

from holdfast.agents import registry
from holdfast.model import events as ev
from holdfast.model import manifest, readable
from holdfast.model.outcome import SUCCESS
from holdfast.model.status import ENDS, Status, check_move
from holdfast.model.task import Task
from holdfast.packet import inbox, load
from holdfast.store import journal
from holdfast.testing import SessionMemory
from tests.crash.drive import Case
from tests.support import processes
from tests.support.waiting import eventually

#: What only a runner saw; no decision rests on it, and no journal holds it.
SEEN = ("last_checked_at", "last_progress_at", "deadline_at", "output_tail", "verdict")


def check_now(case: Case) -> None:
    """What holds at every moment, while processes work and after they were killed. (What comes last is read first.)"""
    packet = case.packet
    if os.path.exists(packet.task_done):
        shown = _json(packet.manifest)
        assert shown is not None
        assert Status(shown["status"]) in ENDS or inbox.names(packet), (
            "_task.done, but the manifest shows no end"
        )
        assert os.path.exists(packet.summary)
    for name in os.listdir(packet.done) if os.path.isdir(packet.done) else ():
        if name[0] in "._":
            continue
        evidence = _json(packet.gate_result(name.removesuffix(".done")))
        assert evidence is not None, f"{name} is there without its evidence"
        assert evidence["passed"] is True
        ended = [event for _, event in journal.read(packet.journal) if isinstance(event, ev.AttemptEnded)]
        outcomes = {event.attempt: event.outcome for event in ended}
        assert outcomes.get(evidence["attempt"]) in SUCCESS, (
            f"{name} is there, but its attempt has not succeeded"
        )


def check(case: Case, *, end: Status, retries: int | None, may_be_lost: bool = False) -> Task:
    """What holds at the end: all of it. Returns the task as its journal tells it."""
    try:
        task = _check(case, end, retries)
        ended = [
            event for _, event in journal.read(case.packet.journal) if isinstance(event, ev.AttemptEnded)
        ]
        lost = [event.attempt for event in ended if event.outcome == "lost"]
        assert may_be_lost or not lost, f"nobody knows how the attempts {lost} ended, but somebody could"
        return task
    except AssertionError as error:
        raise AssertionError(f"{error}\n{case.story()}") from error


def _check(case: Case, end: Status, retries: int | None) -> Task:
    events = [event for _, event in journal.read(case.packet.journal)]
    task = load.fold(case.packet)
    assert task.status is end, f"it ended {task.status}, not {end}"
    _check_journal(case, events)
    _check_moves(events)
    _check_requests(case, events)
    _check_attempts(case, events)
    _check_output(case, events)
    _check_markers(case, task, events)
    _check_views(case, task)
    if retries is not None:
        assert task.total_retries <= retries, f"{task.total_retries} retries were burned, not {retries}"
    _check_nothing_is_left(case)
    return task


def _check_journal(case: Case, events: list[ev.Event]) -> None:
    with open(case.packet.journal, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    assert all(line.endswith(b"\n") for line in lines), "the journal ends in half a line"
    assert len(lines) == len(events), "a line of the journal is no event"
    ids = [json.loads(line)["id"] for line in lines]
    assert len(set(ids)) == len(ids), "an event id is used twice"
    times = [json.loads(line)["at"] for line in lines]
    assert times == sorted(times), "the journal goes back in time"
    assert not [event for event in events if isinstance(event, ev.Unknown)]


def _check_moves(events: list[ev.Event]) -> None:
    """Along the table only, and each run ends once."""
    task, ends = Task(), 0
    for event in events:
        if isinstance(event, ev.TaskMoved):
            assert event.old == task.status, f"moved from {event.old}, but it was {task.status}"
            check_move(Status(event.old), Status(event.new))
            ends += Status(event.new) in ENDS
        if isinstance(event, ev.RunOpened):
            assert task.has_ended, "a run was opened although the last one had not ended"
        task.apply(event, "2000-01-01T00:00:00Z")
    runs = 1 + sum(isinstance(event, ev.RunOpened) for event in events)
    assert ends == runs, f"{runs} runs ended {ends} times"


def _check_requests(case: Case, events: list[ev.Event]) -> None:
    answers = [event.request for event in events if isinstance(event, (ev.RequestApplied, ev.RequestRefused))]
    assert len(set(answers)) == len(answers), f"a request was answered twice: {answers}"
    missing = set(case.requests) - set(answers)
    assert not missing, f"requests without answer: {missing}"
    assert os.listdir(case.packet.inbox) == [] or all(
        name[0] == "." for name in os.listdir(case.packet.inbox)
    )


def _check_attempts(case: Case, events: list[ev.Event]) -> None:
    opened = [event for event in events if isinstance(event, ev.AttemptOpened)]
    numbers = [event.attempt for event in opened]
    assert numbers == sorted(set(numbers)), f"attempt numbers are used twice: {numbers}"
    assert len({event.attempt_id for event in opened}) == len(opened)
    closed = [event.attempt for event in events if isinstance(event, (ev.AttemptEnded, ev.AttemptVoid))]
    assert sorted(closed) == numbers, f"opened {numbers}, closed {closed}"
    void = {event.attempt for event in events if isinstance(event, ev.AttemptVoid)}
    lives: list[tuple[int, float, float]] = []
    for event in opened:
        directory = case.packet.attempt(f"{event.attempt:03d}-{event.stage}")
        born, ended = _json(directory.identity), _json(directory.exit)
        assert born is None or event.attempt not in void, f"attempt {event.attempt} is void, but was started"
        if born is not None:
            lives.append((event.attempt, born["mono_s"], ended["mono_s"] if ended else born["mono_s"]))
    for (one, _, gone), (other, begun, _) in pairwise(lives):
        assert gone <= begun, f"attempt {other} was started before attempt {one} was gone"
    for memory in SessionMemory.all(case.state):
        assert memory.overlaps() == [], "two agents worked in one session at once"
        assert memory.failures() == []


def _check_output(case: Case, events: list[ev.Event]) -> None:
    """Each line of each attempt is in output.log once, and each event of the agent in the journal once, in order."""
    logged = _bytes(case.packet.output_log).decode().splitlines()
    said: list[tuple[str, int, int]] = []
    for opened in (event for event in events if isinstance(event, ev.AttemptOpened)):
        adapter = registry.adapter(opened.agent)
        reader = adapter.reader()
        directory = case.packet.attempt(f"{opened.attempt:03d}-{opened.stage}")
        shown: list[str] = []
        offset = 0
        for line in _bytes(directory.stdout).splitlines(keepends=True):
            offset += len(line)
            parsed = [event.place(opened.attempt, offset) for event in reader.read(line.rstrip(b"\n"))]
            said += [(event.type, event.attempt, event.offset) for event in parsed]
            for event in parsed:
                shown += readable.lines(event)
            if not adapter.capabilities.has_events:
                shown.append(line.rstrip(b"\n").decode())
        errors = _bytes(directory.stderr).decode().splitlines()
        mine, logged = logged[: len(shown) + len(errors)], logged[len(shown) + len(errors) :]
        # Each stream is in order; how the two mix depends on when they were read.
        assert sorted(mine) == sorted(shown + errors), (
            f"output.log has {mine}, the agent printed {shown}, {errors}"
        )
        assert [line for line in mine if line not in errors] == [line for line in shown if line not in errors]
    assert logged == [], f"output.log goes on with {logged}, which nobody printed"
    journalled = [
        (event.type, event.attempt, event.offset) for event in events if isinstance(event, ev.AgentEvent)
    ]
    assert journalled == said, f"journalled were {journalled}, the agents said {said}"


def _check_markers(case: Case, task: Task, events: list[ev.Event]) -> None:
    """A marker is there only with its evidence, and `_task.done` is there."""
    outcomes = {event.attempt: event.outcome for event in events if isinstance(event, ev.AttemptEnded)}
    marked = {name.removesuffix(".done") for name in os.listdir(case.packet.done) if name[0] not in "._"}
    assert marked == set(task.stages_done), f"marked are {marked}, the journal says {task.stages_done}"
    for stage in marked:
        marker, evidence = _json(case.packet.stage_done(stage)), _json(case.packet.gate_result(stage))
        assert marker is not None
        assert evidence is not None, f"{stage}.done is there without its evidence"
        assert evidence["passed"] is True
        assert evidence["attempt"] == marker["attempt"] == task.stages_done[stage]
        assert outcomes[marker["attempt"]] in SUCCESS, f"{stage}.done, but its attempt did not succeed"
    assert bool(marked) == (task.status is Status.COMPLETED)
    record = _json(case.packet.task_done)
    assert record is not None
    assert (record["status"], record["run"]) == (task.status, task.run)
    assert not os.path.exists(case.packet.env), "the captured environment outlived the task"


def _check_views(case: Case, task: Task) -> None:
    """What is derived equals what the journal gives."""
    shown = _json(case.packet.manifest)
    assert shown is not None
    derived = manifest.render(task, case.packet.path, {name: shown.get(name) for name in SEEN})
    assert shown == json.loads(json.dumps(derived)), "the journal does not give the manifest"
    tail = _bytes(case.packet.output_log).decode().splitlines()[-100:]
    assert shown["output_tail"] == "\n".join(tail), "output_tail is not the end of output.log"
    session = _json(case.packet.current_session)
    assert session == json.loads(json.dumps(manifest.current_session(task, derived)))
    assert os.path.exists(case.packet.summary)


def _check_nothing_is_left(case: Case) -> None:
    for path in (case.log, case.packet.runner_log):
        text = _bytes(path).decode("utf-8", "replace")
        assert "Traceback" not in text, "a process of ours died of an error"
    strays = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(case.home.path)
        for name in names
        if name.endswith(".tmp") and not name.startswith(".")
    ]
    assert strays == [], f"temporary files that a reader could take for real ones: {strays}"
    assert load.task_ids(case.home) == ["task"]
    eventually(
        lambda: not processes.marked(case.root),
        within_s=10,
        what=f"no process of {case.root} is left: {[str(p) for p in processes.marked(case.root)]}",
    )


def _json(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            return json.loads(file.read())
    except FileNotFoundError:
        return None


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
