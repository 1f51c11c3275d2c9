"""The contract of queue engines. Add a new engine to ENGINES."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from holdfast import clock
from holdfast.queue.engine import ALL, Capacity, Item, requeue_lost
from holdfast.queue.local import LocalQueue
from holdfast.store.layout import Home

if TYPE_CHECKING:
    from holdfast.queue.engine import Engine

#: Name → a function from a home's path to a function that opens the queue once more.
ENGINES: dict[str, Callable[[str], Callable[[], LocalQueue]]] = {
    "local": lambda home: lambda: LocalQueue(Home(home), poison_after=3),
}


@pytest.fixture(params=ENGINES)
def another(request: pytest.FixtureRequest, home: str) -> Iterator[Callable[[], Engine]]:
    """Opens the same queue once more, as another process would."""
    opened = []

    def make() -> Engine:
        opened.append((threading.get_ident(), ENGINES[request.param](home)()))
        return opened[-1][1]

    yield make
    for thread, engine in opened:
        # A thread closes what it opened.
        if thread == threading.get_ident():
            engine.close()


@pytest.fixture
def engine(another: Callable[[], Engine]) -> Engine:
    return another()


def ids(items: list[Item]) -> list[str]:
    return [item.task_id for item in items]


def claimed(engine: Engine, room: Capacity = Capacity(), owner: str = "me") -> list[str]:  # noqa: B008
    """All that can be claimed, one after another."""
    found = []
    while (item := engine.claim(owner, room)) is not None:
        found.append(item.task_id)
    return found


# ── order ──


def test_an_empty_queue_gives_nothing(engine: Engine) -> None:
    assert engine.claim("me") is None
    assert engine.items() == []


def test_higher_priority_goes_first_and_among_equals_the_older(engine: Engine) -> None:
    for task_id, priority in (("a", 1), ("b", 10), ("c", 5), ("d", 10), ("e", -3)):
        engine.add(Item(task_id=task_id, priority=priority))
    assert ids(engine.items()) == ["b", "d", "c", "a", "e"]
    assert claimed(engine) == ["b", "d", "c", "a", "e"]


def test_a_task_is_in_the_queue_once(engine: Engine) -> None:
    assert engine.add(Item(task_id="a", priority=1))
    assert not engine.add(Item(task_id="a", priority=9))
    assert engine.items()[0].priority == 1
    assert claimed(engine) == ["a"]
    assert not engine.add(Item(task_id="a"))


def test_what_was_put_in_front_goes_before_all_others(engine: Engine) -> None:
    engine.add(Item(task_id="urgent", priority=100))
    engine.add(Item(task_id="resumed", priority=1, front=True))
    assert claimed(engine) == ["resumed", "urgent"]


def test_nothing_is_claimed_before_its_time(engine: Engine) -> None:
    now = clock.now()
    engine.add(Item(task_id="later", priority=10, not_before=clock.iso(now + 3600)))
    engine.add(Item(task_id="due", not_before=clock.iso(now - 1)))
    assert claimed(engine) == ["due"]


# ── claims ──


def test_a_claim_says_whose_it_is(engine: Engine) -> None:
    engine.add(Item(task_id="a", pool="p", agent="claude", memory_mb=7))
    item = engine.claim("me")
    assert item is not None
    assert (item.task_id, item.state, item.claimed_by, item.attempts) == ("a", "claimed", "me", 1)
    assert item.claimed_at is not None
    assert engine.items("a") == [item]


@pytest.mark.req("W-C6")
def test_looking_changes_nothing_and_one_claim_wins(another: Callable[[], Engine]) -> None:
    first, second = another(), another()
    first.add(Item(task_id="a"))
    before = first.items()
    assert second.items() == before == first.items()
    assert second.claim("second") is not None
    assert first.claim("first") is None
    assert first.claim("first", task_id="a") is None


def test_a_named_item_is_claimed_out_of_turn(engine: Engine) -> None:
    engine.add(Item(task_id="a", priority=10))
    engine.add(Item(task_id="b"))
    item = engine.claim("me", task_id="b")
    assert item is not None
    assert item.task_id == "b"
    assert engine.claim("me", task_id="nobody") is None


def test_a_finish_that_comes_too_late_is_refused(engine: Engine) -> None:
    engine.add(Item(task_id="a"))
    engine.claim("first")
    assert engine.release("a", owner="first", lost=True)
    engine.claim("second")
    assert not engine.ack("a", owner="first")
    assert not engine.release("a", owner="first")
    assert engine.ack("a", owner="second")
    assert engine.items() == []
    assert not engine.ack("a")


def test_what_is_given_back_keeps_its_place(engine: Engine) -> None:
    engine.add(Item(task_id="a"))
    engine.add(Item(task_id="b"))
    engine.claim("me")
    assert engine.release("a")
    assert not engine.release("a")
    assert not engine.release("b")
    assert engine.items("a")[0].claimed_by is None
    assert claimed(engine) == ["a", "b"]


def test_what_is_given_back_may_wait_or_go_first(engine: Engine) -> None:
    for task_id in ("a", "b"):
        engine.add(Item(task_id=task_id))
        engine.claim("me")
    engine.add(Item(task_id="c", priority=10))
    engine.release("a", not_before=clock.iso(clock.now() + 60))
    engine.release("b", front=True)
    assert claimed(engine) == ["b", "c"]


# ── room ──


def test_an_agent_that_is_full_is_passed_over(engine: Engine) -> None:
    for task_id, agent in (("a", "claude"), ("b", "claude"), ("c", "codex"), ("d", "claude")):
        engine.add(Item(task_id=task_id, agent=agent))
    assert claimed(engine, Capacity(agents={"claude": 1})) == ["a", "c"]
    engine.ack("a")
    assert claimed(engine, Capacity(agents={"claude": 1, "codex": 0})) == ["b"]


def test_each_pool_has_its_own_limit(engine: Engine) -> None:
    for number in range(4):
        engine.add(Item(task_id=f"n{number}", pool="nightly", priority=10))
        engine.add(Item(task_id=f"d{number}"))
    assert claimed(engine, Capacity(pools={"nightly": 2})) == ["n0", "n1", "d0", "d1", "d2", "d3"]


def test_slots_are_counted_over_all(engine: Engine) -> None:
    for task_id in "abc":
        engine.add(Item(task_id=task_id, agent=task_id))
    assert claimed(engine, Capacity(slots=2)) == ["a", "b"]
    assert claimed(engine, Capacity(slots=2)) == []


def test_what_needs_more_memory_than_there_is_waits(engine: Engine) -> None:
    engine.add(Item(task_id="large", memory_mb=4000, priority=10))
    engine.add(Item(task_id="small", memory_mb=100))
    assert claimed(engine, Capacity(memory_mb=500)) == ["small"]
    assert claimed(engine, Capacity(memory_mb=4000)) == ["large"]


# ── pause ──


def test_a_paused_queue_hands_out_nothing(another: Callable[[], Engine]) -> None:
    first, second = another(), another()
    first.add(Item(task_id="a"))
    first.pause()
    assert second.paused() == [ALL]
    assert second.claim("me") is None
    second.pause(is_paused=False)
    assert first.claim("me") is not None


def test_a_paused_pool_leaves_the_others_alone(engine: Engine) -> None:
    engine.add(Item(task_id="a", pool="nightly"))
    engine.add(Item(task_id="b"))
    engine.pause("nightly")
    engine.pause("nightly")
    assert claimed(engine) == ["b"]
    engine.pause("nightly", is_paused=False)
    assert claimed(engine) == ["a"]


# ── dependencies ──


def test_an_item_waits_until_all_before_it_are_completed(engine: Engine) -> None:
    engine.add(Item(task_id="last", priority=10, after=("a", "b")))
    for task_id in "ab":
        engine.add(Item(task_id=task_id))
    assert claimed(engine) == ["a", "b"]
    assert engine.ack("a", status="completed")
    assert engine.items("last")[0].waits_for == ("b",)
    assert engine.claim("me") is None
    assert engine.task_ended("b", "completed") == 1
    assert claimed(engine) == ["last"]
    assert engine.items("last")[0].after == ("a", "b")


def test_a_failed_dependency_holds_an_item_in_plain_sight(engine: Engine) -> None:
    engine.add(Item(task_id="last", after=("a",)))
    engine.task_ended("a", "failed")
    held = engine.items("last")[0]
    assert (held.state, held.reason) == ("held", "a failed")
    assert engine.claim("me") is None
    engine.task_ended("a", "completed")  # it was tried again
    assert claimed(engine) == ["last"]


def test_a_person_may_let_a_held_item_go(engine: Engine) -> None:
    engine.add(Item(task_id="last", after=("a", "b")))
    engine.task_ended("a", "failed")
    assert engine.failed_dependencies("last") == ["a"]
    assert engine.retry("last")
    assert engine.failed_dependencies("last") == []
    assert engine.items("last")[0].waits_for == ("b",)
    engine.task_ended("b", "completed")
    assert claimed(engine) == ["last"]
    assert not engine.retry("last")


# ── lost claims ──


@pytest.mark.req("QUE-1")
def test_only_lost_claims_come_back(engine: Engine) -> None:
    for task_id in "abc":
        engine.add(Item(task_id=task_id))
    engine.claim("dead")
    engine.claim("alive")
    assert ids(requeue_lost(engine, lambda item: item.claimed_by == "alive")) == ["a"]
    assert [(item.task_id, item.state) for item in engine.items()] == [
        ("a", "queued"),
        ("b", "claimed"),
        ("c", "queued"),
    ]
    assert engine.items("a")[0].lost == 1


def test_an_item_that_kills_its_workers_becomes_poison(engine: Engine) -> None:
    engine.add(Item(task_id="a"))
    for _ in range(2):
        assert claimed(engine) == ["a"]
        engine.release("a")  # released, not lost: this never counts
    for _ in range(3):
        assert claimed(engine) == ["a"]
        requeue_lost(engine, lambda _: False)
    poison = engine.items("a")[0]
    assert (poison.state, poison.lost, poison.attempts) == ("poison", 3, 5)
    assert "3 times" in poison.reason
    assert claimed(engine) == []
    assert engine.retry("a")
    assert engine.items("a")[0].lost == 0
    assert claimed(engine) == ["a"]


# ── together ──


def test_several_claim_at_the_same_time_and_none_twice(another: Callable[[], Engine]) -> None:
    engine = another()
    for number in range(200):
        engine.add(Item(task_id=f"t{number:03d}"))
    found: list[str] = []

    def work(name: str) -> None:
        own = another()
        try:
            found.extend(claimed(own, owner=name))
        finally:
            closing = getattr(own, "close", None)
            assert closing is not None
            closing()

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [f"t{number:03d}" for number in range(200)]


def test_an_item_is_held_until_none_of_its_dependencies_is_failed(engine: Engine) -> None:
    engine.add(Item(task_id="last", after=("a", "b")))
    engine.task_ended("a", "failed")
    engine.task_ended("b", "killed")
    engine.task_ended("a", "completed")
    assert engine.items("last")[0].state == "held"
    assert claimed(engine) == []
    engine.task_ended("b", "completed")
    assert claimed(engine) == ["last"]
