"""What tasks of the queue cost: each dollar, and each call without a price, counts on the day it is seen."""

from __future__ import annotations

import os

import pytest

from holdfast import clock, paths
from holdfast.keeper import allowance, charges, loop_state
from holdfast.keeper.loop_state import LoopState
from holdfast.model import events as ev
from holdfast.model.spec import Limits, QueueSpec, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.packet.create import create
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet
from tests.support.journals import append

DAY_S = 86_400.0


@pytest.fixture
def at(home: str) -> Home:
    paths.ensure_home(home)
    return Home(home)


def started(home: Home, state: LoopState, task_id: str, *, pool: str) -> LoopState:
    """A task of a queue, and the state after its start."""
    spec = TaskSpec(
        task_id=task_id, task_name=task_id, goal="", agent="scripted", project_dir=home.path,
        stages=(StageSpec(name="run", agent="scripted"),), limits=Limits(), queue=QueueSpec(pool=pool),
    )  # fmt: skip
    packet = create(home, spec, prompt=None, env={"env": {}}, status=Status.QUEUED)
    return charges.begin(state, load.fold(packet))


def called(packet: Packet, number: int, cost_usd: float | None = None) -> None:
    """Its agent was called, and reported a cost or none; then it rests for a while."""
    opened = ev.AttemptOpened(
        attempt=number, attempt_id=f"ses_{number}", stage="run", agent="scripted", mode="fresh",
        session_id=None,
    )  # fmt: skip
    usage = [ev.AgentUsage(attempt=number, cost_usd=cost_usd)] if cost_usd is not None else []
    append(packet, opened, *usage, ev.AttemptEnded(attempt=number, outcome="success"))
    rewritten(packet)


def rewritten(packet: Packet) -> None:
    atomic.write_json(packet.manifest, load.derived(packet), durable=False)
    long_ago = clock.now() - 3600
    os.utime(packet.manifest, (long_ago, long_ago))


def unknown(state: LoopState, now: float | None = None) -> set[str]:
    return {*allowance.unknown_today(state.unpriced, now=clock.now() if now is None else now)}


def test_calls_without_a_price_mark_the_day_on_which_they_were_made(
    at: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = started(at, LoopState(), "a", pool="night")
    called(at.packet("a"), 1)
    state = charges.update(at, state, claimed=set())
    assert unknown(state) == {"*", "night"}
    tomorrow = clock.now() + DAY_S
    monkeypatch.setattr(clock, "now", lambda: tomorrow)
    assert charges.update(at, state, claimed=set()) == state
    assert unknown(state) == set()
    called(at.packet("a"), 2)
    state = charges.update(at, state, claimed=set())
    assert unknown(state) == {"*", "night"}
    assert charges.end(at, state, "a", pool="night").unpriced_calls == {}


def test_each_pool_is_marked_when_its_own_task_makes_such_a_call(at: Home) -> None:
    state = started(at, started(at, LoopState(), "a", pool="day"), "b", pool="night")
    called(at.packet("a"), 1)
    state = charges.update(at, state, claimed={"a", "b"})
    assert unknown(state) == {"*", "day"}
    called(at.packet("b"), 1)
    state = charges.update(at, state, claimed={"a", "b"})
    assert unknown(state) == {"*", "day", "night"}


def test_a_task_that_is_started_again_marks_nothing_for_calls_before(at: Home) -> None:
    state = started(at, LoopState(), "a", pool="night")
    called(at.packet("a"), 1)
    state = charges.end(at, state, "a", pool="night").evolve(unpriced={})
    state = charges.begin(state, load.fold(at.packet("a")))
    assert unknown(charges.update(at, state, claimed={"a"})) == set()


def test_a_manifest_that_has_not_changed_is_read_once(at: Home) -> None:
    state, seen = started(at, LoopState(), "a", pool="night"), dict[str, str]()
    rewritten(at.packet("a"))
    state = charges.update(at, state, claimed=set(), seen=seen)
    before, (stamp,) = os.stat(at.packet("a").manifest), seen.values()
    assert stamp
    # Who reads it finds nothing to rely on.
    os.rename(at.packet("a").journal, f"{at.path}/journal")
    with open(at.packet("a").manifest, "r+b") as file:
        file.write(b"x" * before.st_size)
    os.utime(at.packet("a").manifest, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert charges.update(at, state, claimed=set(), seen=seen) == state
    assert seen == {"a": stamp}
    os.rename(f"{at.path}/journal", at.packet("a").journal)


def test_a_manifest_that_has_changed_is_read_until_its_task_is_forgotten(at: Home) -> None:
    state, seen = started(at, LoopState(), "a", pool="night"), dict[str, str]()
    rewritten(at.packet("a"))
    state = charges.update(at, state, claimed=set(), seen=seen)
    called(at.packet("a"), 1, cost_usd=0.5)
    state = charges.update(at, state, claimed=set(), seen=seen)
    assert state.spent == {"*": 0.5, "night": 0.5}
    append(at.packet("a"), ev.TaskMoved(old="queued", new="killed", reason=""))
    rewritten(at.packet("a"))
    state = charges.update(at, state, claimed={"a"}, seen=seen)
    state = charges.update(at, state, claimed=set(), seen=seen)
    assert (state.charged, seen) == ({}, {})


@pytest.mark.parametrize("name", ["../../x", "a\0", "", "x" * 300])
def test_a_task_with_a_name_that_no_task_has_is_not_looked_for(at: Home, name: str) -> None:
    """An agent can write the file."""
    atomic.write_json(at.loop, {"charged": {name: 1.0}, "unpriced_calls": {name: 1}}, durable=False)
    state = loop_state.read_state(at)
    assert (state.charged, state.unpriced_calls) == ({}, {})
