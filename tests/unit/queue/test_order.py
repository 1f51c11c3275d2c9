"""What waits for what: an order, and the circles."""

from __future__ import annotations

import pytest

from holdfast.queue.order import dependencies_first, words


def test_nothing_comes_before_what_it_waits_for() -> None:
    found, circles = dependencies_first({"a": ("c",), "b": (), "c": ("elsewhere",), "d": ("b", "c")})
    assert (found, circles) == (["c", "a", "b", "d"], [])


@pytest.mark.parametrize(
    ("waits", "circles"),
    [
        ({"a": ("a",)}, [["a"]]),
        ({"a": ("b",), "b": ("a",)}, [["b", "a"]]),
        ({"x": ("a",), "a": ("b",), "b": ("c",), "c": ("a",)}, [["c", "a", "b"]]),
        ({"a": ("b",), "b": ("a", "b")}, [["b", "a"], ["b"]]),
    ],
)
def test_a_circle_is_found(waits: dict[str, tuple[str, ...]], circles: list[list[str]]) -> None:
    found, caught = dependencies_first(waits)
    assert caught == circles
    assert sorted(found) == sorted(waits)


def test_a_long_chain_is_no_trouble() -> None:
    waits = {f"t{n}": (f"t{n + 1}",) for n in range(20_000)}
    found, circles = dependencies_first(waits)
    assert (found[0], found[-1], circles) == ("t19999", "t0", [])


def test_a_circle_for_people() -> None:
    assert words(["a"]) == "a waits for itself"
    assert words(["b", "a"]) == "b waits for itself: it is after a, which is after b"
