"""queue.json: changes by users outlive the rows, and an edited file stops nothing."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from holdfast.queue import user_changes
from holdfast.queue.claim_owner import external
from holdfast.queue.engine import Item
from holdfast.queue.local import LocalQueue
from holdfast.store.layout import Home


def write(home: str, text: str) -> None:
    with open(Home(home).queue_kept, "w", encoding="utf-8") as file:
        file.write(text)


@pytest.mark.parametrize("text", [None, "", '{"paused": ["nig', "[]", '{"paused": "night"}'])
def test_a_lost_or_torn_file_is_rebuilt_from_the_rows(home: str, text: str | None) -> None:
    with LocalQueue(Home(home)) as queue:
        queue.add_many([Item(task_id="a"), Item(task_id="b"), Item(task_id="c")])
        queue.pause("night")
        claim = queue.claim(external("bob"), task_id="a")
        queue.claim("keeper", task_id="b")
        assert claim is not None
    os.remove(Home(home).queue_kept) if text is None else write(home, text)
    with LocalQueue(Home(home)) as queue:
        assert queue.paused() == ["night"]
        assert queue.prioritize("c", 10)
    with LocalQueue(Home(home)) as queue:
        assert queue.paused() == ["night"]
    found = user_changes.read(Home(home).queue_kept)
    assert found == user_changes.UserChanges(
        paused=["night"],
        claims={"a": {"by": "outside:bob", "at": claim.claimed_at or ""}},
        priorities={"c": 10},
    )


def test_a_resume_that_comes_while_the_queue_is_opened_is_not_undone(home: str) -> None:
    with LocalQueue(Home(home)) as queue:
        queue.pause("night")

    class Late(LocalQueue):
        """The resume happens between reading the file and acting on it."""

        def paused(self) -> list[str]:
            with LocalQueue(Home(home)) as other:
                other.pause("night", is_paused=False)
            return super().paused()

    with Late(Home(home)) as queue:
        assert LocalQueue.paused(queue) == []


GOOD = {"by": "outside:bob", "at": "2026-01-31T12:00:00.000Z"}


@pytest.mark.parametrize(
    ("field", "given", "left"),
    [
        ("claims", {"x": "me", "a": GOOD}, {"a": GOOD}),
        ("claims", {"x": {}, "y": None, "z": {"by": "outside:bob"}, "a": GOOD}, {"a": GOOD}),
        ("claims", {"x": {**GOOD, "by": 5}, "y": {**GOOD, "at": []}, "z": {**GOOD, "by": "bob"}}, {}),
        ("claims", {"x": {**GOOD, "at": "noon"}, "y": {**GOOD, "by": "outside:\ud800"}}, {}),
        ("claims", {"\ud800": GOOD}, {}),
        ("paused", ["p", 5, None, ["q"], {}, "\ud800"], ["p"]),
        ("priorities", {"x": "high", "y": None, "z": 1.5, "t": True, "h": 10**30, "a": 7}, {"a": 7}),
    ],
)
def test_values_that_do_not_fit_are_dropped_and_the_others_hold(
    home: str, field: str, given: Any, left: Any
) -> None:
    write(home, json.dumps({field: given}))
    assert user_changes.read(Home(home).queue_kept) == user_changes.UserChanges(**{field: left})
    with LocalQueue(Home(home)) as queue:
        for name in "xyztha":
            assert queue.add(Item(task_id=name))
            assert len(queue.items(name)) == 1
        assert queue.prioritize("t", 3)
        assert queue.claim(external("eve"), task_id="t") is not None
        assert queue.ack("t")
    with LocalQueue(Home(home)) as queue:
        assert queue.paused() == (left if field == "paused" else [])
