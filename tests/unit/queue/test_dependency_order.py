"""The order of dependent tasks, and cycles."""

from __future__ import annotations

import pytest

from holdfast.queue.dependency_order import cycle_text, dependencies_first


def test_nothing_comes_before_what_it_waits_for() -> None:
    found, cycles = dependencies_first({"a": ("c",), "b": (), "c": ("elsewhere",), "d": ("b", "c")})
    assert (found, cycles) == (["c", "a", "b", "d"], [])


@pytest.mark.parametrize(
    ("waits", "cycles"),
    [
        ({"a": ("a",)}, [["a"]]),
        ({"a": ("b",), "b": ("a",)}, [["b", "a"]]),
        ({"x": ("a",), "a": ("b",), "b": ("c",), "c": ("a",)}, [["c", "a", "b"]]),
        ({"a": ("b",), "b": ("a", "b")}, [["b", "a"], ["b"]]),
    ],
)
def test_a_cycle_is_found(waits: dict[str, tuple[str, ...]], cycles: list[list[str]]) -> None:
    found, caught = dependencies_first(waits)
    assert caught == cycles
    assert sorted(found) == sorted(waits)


def test_a_long_chain_is_no_trouble() -> None:
    waits = {f"t{n}": (f"t{n + 1}",) for n in range(20_000)}
    found, cycles = dependencies_first(waits)
    assert (found[0], found[-1], cycles) == ("t19999", "t0", [])


def test_a_cycle_as_text() -> None:
    assert cycle_text(["a"]) == "a waits for itself"
    assert cycle_text(["b", "a"]) == "b waits for itself: it is after a, which is after b"
