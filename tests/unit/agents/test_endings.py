"""Ends that mean the same for every agent."""

from __future__ import annotations

import pytest

from holdfast.agents import endings
from holdfast.model.outcome import Outcome


@pytest.mark.req("LCH-14")
def test_a_death_at_the_very_start_shows_stderr() -> None:
    said = "loading\n\nnode:internal/modules\nError: Cannot find module 'x'\n    at main\n"
    found = endings.early(Outcome(kind="crashed", detail="exit status 1"), 0.3, said)
    assert found.kind == "crashed"
    assert found.detail == (
        "exit status 1; 0.3s after its start: node:internal/modules / Error: Cannot find module 'x' / at main"
    )


def test_what_the_detail_says_already_is_not_said_twice() -> None:
    found = endings.early(Outcome(kind="crashed", detail="exit status 1: no key"), 0.3, "no key\n")
    assert found.detail == "exit status 1: no key; 0.3s after its start"


@pytest.mark.parametrize(
    ("kind", "lived_s"), [("crashed", 30.0), ("success", 0.1), ("rate_limit", 0.1), ("unknown_session", 0.1)]
)
def test_other_ends_are_left_alone(kind: str, lived_s: float) -> None:
    outcome = Outcome(kind=kind, detail="d")
    assert endings.early(outcome, lived_s, "words") == outcome
