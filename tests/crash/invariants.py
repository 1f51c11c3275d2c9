"""Invariants of an ended task, wherever its processes were killed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import combinations, groupby, pairwise
from typing import Any

from holdfast.agents import registry
from holdfast.model import events as ev
from holdfast.model import execution, manifest, readable
from holdfast.model.event import Event
from holdfast.model.fold import apply
from holdfast.model.outcome import SUCCESS
from holdfast.model.spec import TaskSpec
from holdfast.model.status import ENDS, Status, check_move
from holdfast.model.task import Task
from holdfast.packet import inbox, load
from holdfast.store import journal
from holdfast.store import lock as locks
from holdfast.store.layout import AttemptDir
from holdfast.store.log_index import LogIndex
from holdfast.testing import SessionMemory
from tests.crash.drive import Case
from tests.support import processes
from tests.support.waiting import eventually

#: Observations of a runner: not in the journal, and no decision depends on them.
OBSERVED = ("journal_bytes", "last_checked_at", "last_progress_at", "deadline_at", "output_tail", "verdict")


def check_now(case: Case) -> None:
    """What holds at any time, while processes run and after they were killed.

    What is written last is read first.
    """
    packet = case.packet
    if os.path.exists(packet.task_done):
        shown = _json(packet.manifest)
        assert shown is not None
        is_ended = Status(shown["status"]) in ENDS or inbox.names(packet)
        # A retry that was applied between the two looks has put the marker aside.
        assert is_ended or not os.path.exists(packet.task_done), "_task.done, but the manifest shows no end"
        assert os.path.exists(packet.summary)
    marked = [
        name
        for name in (os.listdir(packet.done) if os.path.isdir(packet.done) else ())
        if name[0] not in "._"
    ]
    ended = journal.read(packet.journal) if marked else ()
    outcomes = {event.attempt: event.outcome for _, event in ended if isinstance(event, ev.AttemptEnded)}
    for name in marked:
        evidence = _json(packet.gate_result(name.removesuffix(".done")))
        assert evidence is not None, f"{name} exists without its evidence"
        assert evidence["passed"] is True
        assert outcomes.get(evidence["attempt"]) in SUCCESS, (
            f"{name} is there, but its attempt has not succeeded"
        )


def check(
    case: Case,
    *,
    end: Status,
    retries: int | None,
    may_be_lost: bool = False,
    also: Callable[[Case, Task], None] | None = None,
) -> Task:
    """What holds at the end: all of it, and `also`. Returns the task from its journal."""
    try:
        task = _check(case, end, retries)
        if also is not None:
            also(case, task)
        ended = [
            event for _, event in journal.read(case.packet.journal) if isinstance(event, ev.AttemptEnded)
        ]
        lost = [event.attempt for event in ended if event.outcome == "lost"]
        assert may_be_lost or not lost, f"the ends of the attempts {lost} are lost, but they could be known"
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
    _check_attempts(case, events, task.spec)
    _check_output(case, events, task.spec)
    _check_times(case)
    _check_stages(events, task.spec)
    _check_markers(case, task, events)
    _check_gates(case, task, events)
    _check_views(case, task)
    if retries is not None:
        assert task.total_retries <= retries, f"{task.total_retries} retries were burned, not {retries}"
    _check_nothing_is_left(case)
    return task


def _check_journal(case: Case, events: list[Event]) -> None:
    with open(case.packet.journal, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    assert all(line.endswith(b"\n") for line in lines), "the journal ends in half a line"
    assert len(lines) == len(events), "a line of the journal is no event"
    ids = [json.loads(line)["id"] for line in lines]
    assert len(set(ids)) == len(ids), "an event id is used twice"
    times = [json.loads(line)["at"] for line in lines]
    assert times == sorted(times), "the journal goes back in time"
    assert not [event for event in events if isinstance(event, ev.Unknown)]


def _check_moves(events: list[Event]) -> None:
    """Only moves of the table, and each run ends once."""
    task, ends = Task(), 0
    for event in events:
        if isinstance(event, ev.TaskMoved):
            assert event.old == task.status, f"moved from {event.old}, but it was {task.status}"
            check_move(Status(event.old), Status(event.new))
            ends += Status(event.new) in ENDS
        if isinstance(event, ev.RunOpened):
            assert task.has_ended, "a run was opened although the last one had not ended"
        apply(task, event, "2000-01-01T00:00:00Z")
    runs = 1 + sum(isinstance(event, ev.RunOpened) for event in events)
    assert ends == runs, f"{runs} runs ended {ends} times"


def _check_requests(case: Case, events: list[Event]) -> None:
    answers = [event.request for event in events if isinstance(event, (ev.RequestApplied, ev.RequestRefused))]
    assert len(set(answers)) == len(answers), f"a request was answered twice: {answers}"
    missing = set(case.requests) - set(answers)
    assert not missing, f"requests without answer: {missing}"
    assert os.listdir(case.packet.inbox) == [] or all(
        name[0] == "." for name in os.listdir(case.packet.inbox)
    )


def _check_attempts(case: Case, events: list[Event], spec: TaskSpec) -> None:
    opened = [event for event in events if isinstance(event, ev.AttemptOpened)]
    numbers = [event.attempt for event in opened]
    assert numbers == sorted(set(numbers)), f"attempt numbers are used twice: {numbers}"
    assert len({event.attempt_id for event in opened}) == len(opened)
    closed = [event.attempt for event in events if isinstance(event, (ev.AttemptEnded, ev.AttemptVoid))]
    assert sorted(closed) == numbers, f"opened {numbers}, closed {closed}"
    void = {event.attempt for event in events if isinstance(event, ev.AttemptVoid)}
    lives: list[tuple[ev.AttemptOpened, float, float]] = []
    for event in opened:
        directory = _directory(case, event)
        born, ended = _json(directory.identity), _json(directory.exit)
        assert born is None or event.attempt not in void, f"attempt {event.attempt} is void, but was started"
        if born is not None:
            lives.append((event, born["mono_s"], ended["mono_s"] if ended else born["mono_s"]))
    for (one, _, gone), (other, begun, _) in combinations(lives, 2):
        assert gone <= begun or _are_side_by_side(one, other, spec), (
            f"attempt {other.attempt} was started before attempt {one.attempt} was gone"
        )
    for memory in SessionMemory.all(case.state):
        assert memory.overlaps() == [], "two agents worked in one session at once"
        assert memory.failures() == []


def _marks(events: list[Event]) -> dict[int, list[str]]:
    """By the number of an attempt or chore: the lines that separate its output from what came before."""
    task, marks = Task(), dict[int, list[str]]()
    for event in events:
        apply(task, event, "2000-01-01T00:00:00Z")
        if isinstance(event, ev.AttemptOpened):
            opened = next(each for each in task.open_executions if each.number == event.attempt)
            marks[event.attempt] = readable.separators(opened, has_stages=len(task.spec.stages) > 1)
    return marks


def _directory(case: Case, opened: ev.AttemptOpened) -> AttemptDir:
    return case.packet.attempt(execution.dirname(opened.attempt, opened.stage, opened.kind))


def _are_side_by_side(one: ev.AttemptOpened, other: ev.AttemptOpened, spec: TaskSpec) -> bool:
    """Agents of two stages of one group; a chore has the task to itself."""
    groups = {stage.name: stage.group for stage in spec.stages}
    is_group = groups[one.stage] is not None and groups[one.stage] == groups[other.stage]
    return is_group and one.stage != other.stage and one.kind == other.kind == "agent"


def _batches(opened: list[ev.AttemptOpened], spec: TaskSpec) -> Iterator[list[ev.AttemptOpened]]:
    """The attempts, those together whose lines may be mixed."""
    batch: list[ev.AttemptOpened] = []
    for event in opened:
        if batch and not all(_are_side_by_side(other, event, spec) for other in batch):
            yield batch
            batch = []
        batch.append(event)
    yield batch


def _check_output(case: Case, events: list[Event], spec: TaskSpec) -> None:
    """Each line of an attempt is in output.log once, each of its events in the journal once, in order."""
    logged = _bytes(case.packet.output_log).decode().splitlines()
    said: list[tuple[str, int, int]] = []
    # A void attempt printed nothing, and does not separate two parallel ones.
    void = {event.attempt for event in events if isinstance(event, ev.AttemptVoid)}
    opened = [event for event in events if isinstance(event, ev.AttemptOpened) and event.attempt not in void]
    has_agent, marks = False, _marks(events)
    for batch in _batches(opened, spec):
        printed = [_printed(case, event, said) for event in batch]
        # A chore that printed nothing has no mark, but another one may have the same.
        is_marked = any(map(any, printed)) or batch[0].kind == "agent"
        if len(batch) == 1 and is_marked and has_agent:
            mark = marks[batch[0].attempt]
            assert logged[: len(mark)] == mark
            logged = logged[len(mark) :]
        elif is_marked:
            of_batch = {line for event in batch for line in marks[event.attempt]}
            logged = [line for line in logged if line not in of_batch]
        has_agent = has_agent or batch[0].kind == "agent"
        lines = sum(len(shown) + len(errors) for shown, errors in printed)
        mine, logged = logged[:lines], logged[lines:]
        everything = sorted(line for shown, errors in printed for line in shown + errors)
        assert sorted(mine) == everything, f"output.log has {mine}, printed were {printed}"
        for shown, errors in printed:
            # Each stream is in order; how two of them mix depends on when they were read.
            for stream in (shown, errors):
                rest = iter(mine)
                assert all(line in rest for line in stream), f"{stream} is out of order in {mine}"
    assert logged == [], f"output.log continues with {logged}, which no agent printed"
    journalled = [
        (event.type, event.attempt, event.offset) for event in events if isinstance(event, ev.AgentEvent)
    ]
    journalled.sort(key=lambda event: event[1])  # stable: of each attempt in their order
    assert journalled == said, f"journalled were {journalled}, the agents said {said}"


def _check_times(case: Case) -> None:
    """output.idx has whole records, in order, and the last one has the whole log."""
    data, size = _bytes(case.packet.output_index), len(_bytes(case.packet.output_log))
    assert len(data) % 32 == 0, f"output.idx has {len(data)} bytes"
    index = LogIndex(case.packet.output_index)
    try:
        points = [point for byte in range(size) if (point := index.at_byte(byte)) is not None]
        assert len(points) == size, f"the times of {size - len(points)} bytes are unknown"
        for before, after in pairwise(points):
            assert (before.at, before.log_bytes) <= (after.at, after.log_bytes), "output.idx is not in order"
            assert before.journal_bytes <= after.journal_bytes, "output.idx is not in order"
        assert not points or points[-1].log_bytes == size, "output.idx knows lines that are not in output.log"
    finally:
        index.close()


def _printed(
    case: Case, opened: ev.AttemptOpened, said: list[tuple[str, int, int]]
) -> tuple[list[str], list[str]]:
    """The lines of an attempt's stdout as people see them, and of its stderr. `said` gets its events."""
    adapter = registry.adapter(opened.agent)
    reader, directory = adapter.reader(), _directory(case, opened)
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
    return shown, _bytes(directory.stderr).decode().splitlines()


def _check_stages(events: list[Event], spec: TaskSpec) -> None:
    """In each run, each stage is done at most once, in the order of the pipeline, and not started again.

    A repair begins again with the stage that repairs.
    """
    waves: dict[str, int] = {}
    for number, (_, stages) in enumerate(
        groupby(enumerate(spec.stages), lambda pair: pair[1].group or pair[0])
    ):
        waves |= {stage.name: number for _, stage in stages}
    done: list[str] = []
    over: set[str] = set()
    for event in events:
        if isinstance(event, ev.RunOpened):
            done = []
        elif isinstance(event, ev.RepairPlanned):
            done = [name for name in done if waves[name] < waves[event.stage]]
        elif isinstance(event, ev.StageDone):
            assert event.stage not in done, f"{event.stage} is done twice"
            done.append(event.stage)
            assert [waves[name] for name in done] == sorted(waves[name] for name in done), (
                f"the stages were done in another order: {done}"
            )
        elif isinstance(event, ev.CandidateEliminated):
            over.add(event.stage)
        elif isinstance(event, ev.AttemptOpened) and event.kind == "ci":
            assert waves.keys() == {*done, *over}, f"ci {event.attempt} before all stages were done: {done}"
        elif isinstance(event, ev.AttemptOpened):
            assert event.stage not in {*done, *over}, (
                f"{event.kind} {event.attempt} of {event.stage}, which is done"
            )
            earlier = {name for name, number in waves.items() if number < waves[event.stage]}
            left = earlier - {*done, *over}
            assert not left, f"{event.stage} was begun before {left} was done"


def _check_markers(case: Case, task: Task, events: list[Event]) -> None:
    """A marker is there only with its evidence, and `_task.done` is there."""
    outcomes = {event.attempt: event.outcome for event in events if isinstance(event, ev.AttemptEnded)}
    marked = {name.removesuffix(".done") for name in os.listdir(case.packet.done) if name[0] not in "._"}
    assert marked == set(task.stages_done), f"marked are {marked}, the journal says {task.stages_done}"
    for stage in marked:
        marker, evidence = _json(case.packet.stage_done(stage)), _json(case.packet.gate_result(stage))
        assert marker is not None
        assert evidence is not None, f"{stage}.done exists without its evidence"
        assert evidence["passed"] is True
        assert evidence["attempt"] == marker["attempt"] == task.stages_done[stage]
        assert outcomes[marker["attempt"]] in SUCCESS, f"{stage}.done, but its attempt did not succeed"
    everything = {stage.name for stage in task.spec.stages} - task.eliminated.keys()
    assert (marked == everything) == (task.status is Status.COMPLETED), f"{task.status} with {marked}"
    record = _json(case.packet.task_done)
    assert record is not None
    assert (record["status"], record["run"]) == (task.status, task.run)
    assert not os.path.exists(case.packet.env), "the captured environment outlived the task"


def _check_gates(case: Case, task: Task, events: list[Event]) -> None:
    """For a written packet: evidence, journal and gate results agree, and all files of its stages exist."""
    if task.spec.pipeline is None:
        return
    # The checks of a pull request judge work that has passed its gate.
    judged = [event for event in events if isinstance(event, ev.GateJudged) and event.failed != "ci"]
    numbers = [event.attempt for event in judged]
    assert len(set(numbers)) == len(numbers), f"an attempt was judged twice: {numbers}"
    prepared: list[str] = []
    for event in events:
        if isinstance(event, ev.RepairPlanned):
            # The stages after the one that repairs are prepared again.
            names = [stage.name for stage in task.spec.stages]
            again = names[names.index(event.stage) + 1 : names.index(event.failed_stage) + 1]
            prepared = [name for name in prepared if name not in again]
        elif isinstance(event, ev.WorkspacePrepared):
            prepared.append(event.stage)
    assert prepared == [stage.name for stage in task.spec.stages if stage.name in prepared], (
        "in order, and once"
    )
    for stage, number in task.stages_done.items():
        verdict = next(event for event in judged if event.attempt == number)
        assert (verdict.stage, verdict.passed) == (stage, True)
        gates = [event for event in events if isinstance(event, ev.AttemptOpened) and event.kind == "gate"]
        last = [event for event in gates if event.stage == stage][-1]
        said = _json(os.path.join(_directory(case, last).path, "result.json"))
        assert said == _json(case.packet.gate_result(stage)), f"the evidence of {stage} is not its gate's"
        agent = task.stage_state(stage).agent
        meta = _json(case.packet.output(stage, agent, "meta.json"))
        assert meta is not None
        assert meta["attempt"] == number
        for kind in ("out", "err", "wrapper.log"):
            assert os.path.exists(case.packet.output(stage, agent, kind)), f"{stage} left no {kind}"


def _check_views(case: Case, task: Task) -> None:
    """Derived files agree with the journal."""
    shown = _json(case.packet.manifest)
    assert shown is not None
    observed = manifest.Observed()
    for name in OBSERVED:
        setattr(observed, name, shown.get(name))
    derived = manifest.render(task, case.packet.path, observed)
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
        assert "a task cannot go from" not in text, "a runner asked for a move that is not in the table"
    strays = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(case.home.path)
        for name in names
        if name.endswith(".tmp") and not name.startswith(".")
    ]
    assert strays == [], f"temporary files that a reader could take for real ones: {strays}"
    own = f"{case.packet.task_id}."  # tasks of its items
    assert [name for name in load.task_ids(case.home) if not name.startswith(own)] == [case.packet.task_id]
    eventually(
        lambda: not processes.marked(case.root),
        within_s=10,
        what=f"no process of {case.root} is left: {[str(p) for p in processes.marked(case.root)]}",
    )
    for folder in (case.home.workspaces, case.home.sessions):
        held = [name for name in _names(folder) if locks.is_held(os.path.join(folder, name))]
        assert held == [], f"locks in {folder} are held although all holders have exited: {held}"


def _names(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


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
