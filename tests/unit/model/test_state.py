"""A state owns its data: what a move says is known only while the task is in the state that it led to."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model import events as ev
from holdfast.model.state import Ended, Interrupted, State, Waiting, state_after
from holdfast.model.status import ENDS, Status

AT = "2027-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("new", "more", "state"),
    [
        ("spawning", {}, State(status=Status.SPAWNING)),
        ("spawning", {"wake_at": AT, "interrupt": "q", "approval": "s"}, State(status=Status.SPAWNING)),
        ("waiting", {"wake_at": AT}, Waiting(wake_at=AT)),
        ("waiting", {}, Waiting(wake_at=None)),
        ("interrupted", {"interrupt": "which one?"}, Interrupted(question="which one?", since=AT)),
        # A journal of an early version has no separate question.
        ("interrupted", {}, Interrupted(question="why", since=AT)),
        (
            "interrupted",
            {"interrupt": "may it?", "approval": "impl", "marked": True},
            Interrupted(question="may it?", since=AT, approval="impl", has_file=True),
        ),
        ("killed", {}, Ended(status=Status.KILLED, finished_at=AT)),
    ],
)
def test_a_move_leads_to_a_state_with_its_data(new: str, more: dict[str, Any], state: State) -> None:
    assert state_after(ev.TaskMoved(old="running", new=new, reason="why", **more), AT) == state


@pytest.mark.parametrize("status", Status)
def test_every_status_has_its_state(status: Status) -> None:
    state = state_after(ev.TaskMoved(old="running", new=status), AT)
    assert state.status is status
    assert isinstance(state, Ended) == (status in ENDS)
