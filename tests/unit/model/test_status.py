"""The table of moves."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidMove
from holdfast.model.status import ENDS, MOVES, PARKED, Status, check_move


def test_every_state_has_a_row_and_every_end_an_empty_one() -> None:
    assert set(MOVES) == set(Status)
    assert {status for status, targets in MOVES.items() if not targets} == ENDS


def test_a_move_of_the_table_is_allowed_and_any_other_is_an_error_that_names_both_ends() -> None:
    for old in Status:
        for new in Status:
            if new in MOVES[old]:
                check_move(old, new)
                continue
            with pytest.raises(InvalidMove, match=rf"from {old} to {new}") as caught:
                check_move(old, new)
            assert str(old) in caught.value.hint


def test_a_person_can_end_whatever_has_not_ended() -> None:
    for status in set(Status) - ENDS:
        assert Status.KILLED in MOVES[status]


def test_every_end_can_be_reached() -> None:
    reached, todo = {Status.QUEUED}, [Status.QUEUED]
    while todo:
        for new in MOVES[todo.pop()] - reached:
            reached.add(new)
            todo.append(new)
    assert reached == set(Status)
    assert not PARKED & ENDS
