"""The crash run: SIGKILL at every failpoint, start again, and compare with what must hold.

The list of failpoints is read from the source, so a new one is tested automatically, or fails because no
scenario reaches it. By default, each point is tested in one scenario, at a few of its passes. `make crash`
kills in every situation (passes.py), and with `ARGS=--every-pass` at every pass of every scenario.
"""

from __future__ import annotations

import json
import os

import pytest

from tests.conftest import Place
from tests.crash import invariants, points
from tests.crash.drive import Case
from tests.crash.passes import Pass
from tests.crash.scenarios import BY_NAME, SCENARIOS, Scenario, play


def _chosen() -> list[Pass]:
    """What `make crash` has chosen."""
    path = os.environ.get("HOLDFAST_CRASH_PASSES")
    if not path:
        return []
    with open(path, encoding="utf-8") as file:
        return [Pass(*fields) for fields in json.load(file)]


CHOSEN = _chosen()
IN_WALK = frozenset(each.point for each in CHOSEN)

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
    "home_records.": "cli",
    "admitted.schedule": "scheduled",
    "inbox.": "cli",
    "replies.": "phone",
    "seed.": "seed",
    "live_tasks.": "keeper",
    "dispatch.": "queued",
    "candidates.": "best_of_n",
    "fanout.plan_refused": "fan_out_split",
    "fanout.": "fan_out",
    "children.": "fan_out_stop",
    "chores.adopted": "best_of_n",
    "chores.looked": "ci",
    "ci.": "ci",
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
    "step.write_interrupt_file": "interrupt",
    "interrupt_files.approval": "approval",
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
    "ingest.words_shown": "fan_out",
    "ingest.": "crash",
    "interrupt_files.": "sandbox",
}
#: `make test` kills at the first passes of a point, and at one in a long scenario; `make crash` at all.
SAMPLE = 2
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


def kill(place: Place, scenario: Scenario, which: Pass) -> bool:
    """Live the scenario with a kill there. Returns whether there was such a pass."""
    case = Case(place.root, str(which), which.failpoint)
    try:
        play(scenario, case)
        extra = 2 if case.fired and which.point in KILLS_THE_AGENT else 0
        retries = None if scenario.retries is None else scenario.retries + extra
        invariants.check(
            case,
            end=scenario.end,
            retries=retries,
            may_be_lost=which.point in TAKES_THE_STATUS_ALONG or scenario.name in REMOVES_THE_STATUS,
            also=scenario.check,
        )
    finally:
        case.close()
    return case.fired


def likely_first(point: str) -> list[Scenario]:
    hint = next((name for start, name in LIKELY.items() if point.startswith(start)), "plain")
    return [BY_NAME[hint], *(scenario for scenario in SCENARIOS if scenario.name != hint)]


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
    if point in IN_WALK:
        return  # killed below, in every situation
    for scenario in likely_first(point):
        if kill(place, scenario, Pass(scenario.name, point, 1, 1)):
            break
    else:
        pytest.fail(
            f"no scenario reaches the failpoint {point}: add one that does to tests/crash/scenarios.py"
        )
    for nth in range(2, SAMPLE + 1) if scenario.is_short else ():
        if not kill(place, scenario, Pass(scenario.name, point, 1, nth)):
            break


# Without `make crash` there is nothing to walk here, and pytest shows one skipped test.
@pytest.mark.parametrize("which", CHOSEN, ids=str)
def test_a_kill_in_any_situation(place: Place, which: Pass) -> None:
    kill(place, BY_NAME[which.scenario], which)
