"""The crash run: SIGKILL at every failpoint, start again, and compare with what must hold.

The list of failpoints is read from the source, so a new one is tested automatically, or fails because no
scenario reaches it. By default, each point is tested in one scenario, at a few of its passes.
HOLDFAST_CRASH_FULL=1 tests every pass of every point in every scenario, and samples of them in long ones.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import count, takewhile

import pytest

from tests.conftest import Place
from tests.crash import invariants, points
from tests.crash.drive import Case
from tests.crash.scenarios import BY_NAME, SCENARIOS, Scenario, play

FULL = bool(os.environ.get("HOLDFAST_CRASH_FULL"))

#: The scenario that likely reaches a point, by the start of its name; it is tried first.
LIKELY = {
    "apply.patched": "apply_patch",
    "apply.": "apply",
    "commits.": "apply_merging",
    "committed.": "sandbox_commit",
    "pr.": "accept_pr",
    "quality.noted": "accept_pr",
    "create.": "cli",
    "admitted.added": "cli",
    "admitted.schedule": "scheduled",
    "inbox.": "cli",
    "seed.": "seed",
    "live_tasks.": "keeper",
    "dispatch.": "queued",
    "candidates.": "best_of_n",
    "fanout.plan_refused": "fan_out_split",
    "fanout.": "fan_out",
    "children.": "fan_out_stop",
    "chores.adopted": "best_of_n",
    "schedule.": "scheduled",
    "chores.": "packet",
    "clean_room.": "packet",
    "outputs.": "packet",
    "requests.run_opened": "retry",
    "worktree.": "worktree",
    "quality.": "clean_git",
    "sealed.": "forged",
    "journal.before_truncate": "forged",
    "journal.truncated": "forged",
    "journal.put_aside": "forged",
    "lock.put_back": "removed_lock",
    "removed.": "removed_attempt",
    "stop.": "stop",
    "step.answer_request": "stop",
    "step.check_leftovers": "plain",
    "step.forget_request": "stop",
    "step.end_takeover": "takeover_lost",
    "takeover.": "takeover",
    "step.heartbeat": "interrupt",
    "step.intend_stop": "hang",
    "step.interrupt": "interrupt",
    "step.journal": "crash",
    "step.leave_mark": "interrupt",
    "marks.approval": "approval",
    "step.lock_session": "own_session",
    "step.mark_stage": "packet",
    "step.open_chore": "packet",
    "step.post_notice": "interrupt",
    "step.preflight": "crash",
    "step.record_verdict": "hang",
    "step.release_workspace": "packet",
    "step.report": "interrupt",
    "step.save_context": "interrupt",
    "step.signal": "stop",
    "step.sweep": "crash",
    "step.take_chore_result": "packet",
    "step.take_workspace": "packet",
    "step.triage_failure": "triage",
    "step.wake_recorder": "stopped_recorder",
    "sweep.": "leftovers",
    "recorder.": "plain",
    "ingest.": "crash",
    "marks.": "sandbox",
}
#: In a long scenario, `make test` kills only at the first passes.
LONG_SAMPLE = 3
#: The whole crash run kills at each pass of a point that a long scenario passes at most this often.
FEW = 5
#: Here the killed process is the agent already, by its identity, so the kill counts as a crash of the agent.
#: It had no time to create its session, so the resume finds none and uses a second retry.
KILLS_THE_AGENT = ("recorder.before_exec",)
#: Here the recorder has reaped the agent, and dies with its exit status.
TAKES_THE_STATUS_ALONG = ("recorder.before_exit_record", "removed.made_again")
#: Here the agent removes the record of its own end. Nobody knows it if no runner was alive at that moment.
REMOVES_THE_STATUS = ("removed_attempt",)


@pytest.fixture(autouse=True)
def _own_environment(clean_env: dict[str, str]) -> None:
    """No case inherits variables of the caller's holdfast."""


def kill_at(place: Place, scenario: Scenario, point: str, nth: int) -> bool:
    """Live the scenario with a kill at the nth pass of the point. Returns whether there was such a pass."""
    case = Case(place.root, f"{scenario.name}-{point}-{nth}", f"{point}=kill@{nth}")
    try:
        play(scenario, case)
        extra = 2 if case.fired and point in KILLS_THE_AGENT else 0
        retries = None if scenario.retries is None else scenario.retries + extra
        invariants.check(
            case,
            end=scenario.end,
            retries=retries,
            may_be_lost=point in TAKES_THE_STATUS_ALONG or scenario.name in REMOVES_THE_STATUS,
            also=scenario.check,
        )
    finally:
        case.close()
    return case.fired


def likely_first(point: str) -> list[Scenario]:
    hint = next((name for start, name in LIKELY.items() if point.startswith(start)), "plain")
    return [BY_NAME[hint], *(scenario for scenario in SCENARIOS if scenario.name != hint)]


def reached_by(place: Place, scenario: Scenario) -> Counter[str]:
    """How often a life without a kill passes each point; cached."""
    if scenario.name not in _REACHED:
        notes = os.path.join(place.root, "notes")
        case = Case(place.root, scenario.name, "*=note")
        case.env["HOLDFAST_FAILPOINT_NOTES"] = notes
        try:
            play(scenario, case)
        finally:
            case.close()
        with open(notes, encoding="utf-8") as file:
            _REACHED[scenario.name] = Counter(line.split()[2] for line in file)
    return _REACHED[scenario.name]


_REACHED: dict[str, Counter[str]] = {}


def sampled_passes() -> Iterator[int]:
    """1, 2, 3, 5, 8, 13 …"""
    one, two = 1, 2
    while True:
        yield one
        one, two = two, one + two


def test_each_failpoint_has_a_literal_name_that_occurs_once_in_the_source() -> None:
    found = points.find()
    assert found
    unnamed = [point for point in found if point.name is None]
    assert unnamed == []
    names = [point.name for point in found]
    assert sorted(set(names)) == sorted(names), "each name occurs once, so that a test knows what it kills"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_scenario_ends_as_expected_without_a_kill(place: Place, scenario: Scenario) -> None:
    case = Case(place.root, scenario.name)
    try:
        play(scenario, case)
        task = invariants.check(case, end=scenario.end, retries=scenario.retries, also=scenario.check)
    finally:
        case.close()
    assert scenario.retries in (None, task.total_retries)
    left = [name for _, _, names in os.walk(case.packet.path) for name in names if name.endswith(".tmp")]
    assert left == []


@pytest.mark.req("PKT-10", "PKT-11", "PKT-13", "PKT-21")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", points.names())
def test_a_kill_at_the_failpoint_loses_nothing_and_doubles_nothing(place: Place, point: str) -> None:
    for scenario in likely_first(point):
        if kill_at(place, scenario, point, 1):
            break
    else:
        pytest.fail(
            f"no scenario reaches the failpoint {point}: add one that does to tests/crash/scenarios.py"
        )
    for nth in sampled_passes():
        if nth > LONG_SAMPLE and not scenario.is_short:
            break
        if nth > 1 and not kill_at(place, scenario, point, nth):
            break


# Without HOLDFAST_CRASH_FULL there is nothing to walk here, and pytest shows one skipped test.
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("point", points.names() if FULL else ())
@pytest.mark.parametrize("scenario", SCENARIOS if FULL else (), ids=lambda scenario: scenario.name)
def test_a_kill_at_any_pass_in_any_scenario(place: Place, scenario: Scenario, point: str) -> None:
    if not point.startswith(scenario.only):
        return
    passes = reached_by(place, scenario)[point]
    if passes and scenario.is_short:
        nth = 1
        while kill_at(place, scenario, point, nth):
            nth += 1
    else:
        for nth in takewhile(lambda nth: nth <= passes, count(1) if passes <= FEW else sampled_passes()):
            if not kill_at(place, scenario, point, nth):
                break  # passed by several processes, each of which counts its own
