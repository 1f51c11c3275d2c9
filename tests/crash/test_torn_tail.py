"""A power cut inside an append: of the record that was being written, any number of bytes may be on disk."""

from __future__ import annotations

import json
import os
import random

import pytest

from holdfast.model.status import Status
from holdfast.testing import Scenario as Script
from tests.conftest import Place
from tests.crash import invariants
from tests.crash.drive import Case
from tests.crash.scenarios import BY_NAME, Scenario, play

FULL = bool(os.environ.get("HOLDFAST_CRASH_FULL"))
#: Events that are appended together: the cut may fall before, between and inside them.
TOGETHER = (
    ("task.moved", "retry.planned", "task.moved"),
    ("attempt.started", "task.moved"),
    ("stop.intended", "request.applied"),
    ("task.moved", "request.applied"),
)


class Cutter:
    """Waits for the kill, then truncates the journal inside the record that was not synced, then tends."""

    def __init__(self, seed: str) -> None:
        self.dice = random.Random(seed)
        self.is_cut = False
        #: The type of the event that was cut.
        self.cut = ""

    def tend(self, case: Case) -> None:
        if case.runner is not None and case.runner.poll() is None:
            return  # nothing to do; asked first, since a kill may come between two questions
        if case.runner is not None and case.fired and not self.is_cut:
            self.is_cut = True
            with open(case.packet.journal, "rb+") as file:
                lines = file.read().splitlines(keepends=True)
                size = sum(len(line) for line in lines)
                self.cut = json.loads(lines[-1])["type"]
                # Usage and result are in one line of the agent: here the first of them stays.
                record = len(lines[-1]) if self.cut == "agent.result" else _record_bytes(lines)
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


def _tear(place: Place, scenario: Scenario, nth: int, name: str) -> Cutter | None:
    """Live the scenario with the nth append torn; None when there is no such append."""
    cutter = Cutter(name)
    case = Case(place.root, name, f"journal.before_sync=kill@{nth}")
    try:
        play(scenario._replace(tend=cutter.tend), case)
        invariants.check(case, end=scenario.end, retries=scenario.retries)
    finally:
        case.close()
    assert cutter.is_cut == case.fired
    return cutter if case.fired else None


@pytest.mark.req("PKT-10", "PKT-21")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("name", ["crash", "interrupt", "retry", "stop"] if FULL else ["crash"])
def test_a_record_torn_at_any_byte_is_cut_off_and_made_again(
    place: Place, clean_env: dict[str, str], name: str, part: int
) -> None:
    """Every third append of the life, beginning with `part`."""
    nth = part + 1
    while _tear(place, BY_NAME[name], nth, f"{name}-{nth}") is not None:
        nth += 3
    assert nth > 3, "no append was torn"


@pytest.mark.timeout(300)
def test_the_second_event_of_one_line_is_not_lost_with_the_tail(
    place: Place, clean_env: dict[str, str]
) -> None:
    """Without its result a finished agent would be resumed.

    The result is printed separately, so it is a separate record; its number depends on the lines before it.
    """

    def begin(case: Case) -> None:
        script = Script().say("line 1").sleep(0.4).result("done")
        case.create(scenario=str(script.write_to(os.path.join(case.root, "script.json"))))

    scenario = Scenario("result", begin, (), Status.COMPLETED, 0)
    cuts: list[str] = []
    for index, nth in enumerate((5, 6, 4, 5, 6, 7, 5, 6)):
        cutter = _tear(place, scenario, nth, f"result-{index}-{nth}")
        cuts.append("" if cutter is None else cutter.cut)
        if cuts[-1] == "agent.result":
            return
    pytest.fail(f"no record ended with the result, only with {cuts}")
