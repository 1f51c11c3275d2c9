"""A power cut inside an append: of the record that was being written, any number of bytes may be on disk."""

from __future__ import annotations

import json
import os
import random

import pytest

from tests.conftest import Place
from tests.crash import invariants
from tests.crash.drive import Case
from tests.crash.scenarios import BY_NAME, play

FULL = bool(os.environ.get("HOLDFAST_CRASH_FULL"))
#: Events that are appended together: the cut may fall before, between and inside them.
TOGETHER = (
    ("task.moved", "retry.planned", "task.moved"),
    ("attempt.started", "task.moved"),
    ("stop.intended", "request.applied"),
    ("task.moved", "request.applied"),
)


class Cutter:
    """Waits for the kill, then cuts the journal at a byte of the record that was not synced, and only then tends."""

    def __init__(self, seed: str) -> None:
        self.dice = random.Random(seed)
        self.is_cut = False

    def tend(self, case: Case) -> None:
        if case.fired and not self.is_cut:
            if case.runner is None or case.runner.poll() is None:
                return
            self.is_cut = True
            with open(case.packet.journal, "rb+") as file:
                lines = file.read().splitlines(keepends=True)
                size = sum(len(line) for line in lines)
                # A line of the agent that holds two events: the first of them stays, and must not come twice.
                is_result = json.loads(lines[-1])["type"] == "agent.result"
                record = len(lines[-1]) if is_result else _record_bytes(lines)
                file.truncate(size - self.dice.randint(1, record))
        case.tend()


def _record_bytes(lines: list[bytes]) -> int:
    """How long the last record is: one line, or the lines of events that are always appended together."""
    types = tuple(json.loads(line)["type"] for line in lines[-3:])
    stamps = [json.loads(line)["at"] for line in lines[-3:]]
    for group in TOGETHER:
        if types[-len(group) :] == group and len(set(stamps[-len(group) :])) == 1:
            return sum(len(line) for line in lines[-len(group) :])
    return len(lines[-1])


@pytest.mark.req("PKT-10", "PKT-21")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("name", ["crash", "interrupt", "retry", "stop"] if FULL else ["crash"])
def test_a_record_torn_at_any_byte_is_cut_off_and_made_again(
    place: Place, clean_env: dict[str, str], name: str, part: int
) -> None:
    """Every third append of the life, beginning with `part`."""
    scenario, nth = BY_NAME[name], part + 1
    while True:
        cutter = Cutter(f"{name}-{nth}")
        case = Case(place.root, f"{name}-{nth}", f"journal.before_sync=kill@{nth}")
        try:
            play(scenario._replace(tend=cutter.tend), case)
            invariants.check(case, end=scenario.end, retries=scenario.retries)
        finally:
            case.close()
        if not case.fired:
            break
        assert cutter.is_cut
        nth += 3
    assert nth > 3, "no append was torn"
