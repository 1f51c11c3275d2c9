"""Names behave like a StrEnum, which type checkers take them for."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from holdfast.model.names import Names
from holdfast.model.status import Status


class Colour(Names):
    """Some names."""

    RED = "red"
    GREEN = "green"


def test_a_member_is_its_text_and_has_a_name() -> None:
    assert Colour.RED == "red"
    assert f"{Colour.RED:>5}" == "  red"
    assert (Colour.RED.name, Colour.RED.value) == ("RED", "red")
    assert type(Colour.RED.value) is str
    assert isinstance(Colour.RED, Colour)
    assert {"red": 1}[Colour.RED] == 1
    assert json.dumps({Colour.RED: Colour.GREEN}) == '{"red": "green"}'
    assert repr(Colour.RED) == "<Colour.RED: 'red'>"


def test_a_text_or_a_name_finds_its_member() -> None:
    assert Colour("red") is Colour.RED
    assert Colour["RED"] is Colour.RED
    assert "green" in Colour
    assert "blue" not in Colour
    assert list(Colour) == [Colour.RED, Colour.GREEN]
    assert len(Colour) == 2
    for wrong in ("blue", "", None, 1, []):
        with pytest.raises(ValueError, match="is not a valid Colour"):
            Colour(wrong)


def test_a_copy_is_the_member_itself() -> None:
    assert copy.deepcopy([Status.HUNG])[0] is Status.HUNG
    assert pickle.loads(pickle.dumps(Status.HUNG)) is Status.HUNG
