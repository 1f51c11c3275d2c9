"""A chore of the keeper that fails, whatever the error, ends neither the keeper nor other chores."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.keeper import loop_state
from holdfast.keeper.delivery import Deliveries
from holdfast.keeper.faults import Faults
from holdfast.notify import outbox
from holdfast.queue import schedule
from holdfast.store.layout import Home
from holdfast.views.facts import home_status

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def fail() -> float:
    raise KeyError("event")


def test_a_fault_is_logged_once_and_shown_until_the_chore_succeeds(
    home: str, capfd: pytest.CaptureFixture[str]
) -> None:
    at = Home(home)
    faults = Faults(at)
    assert [faults.guard("notices", fail, 7.0) for _ in range(3)] == [7.0] * 3
    assert faults.guard("replies", lambda: 1.0, 7.0) == 1.0
    told = capfd.readouterr().err
    assert (told.count("fault in notices"), told.count("in fail")) == (1, 1)
    assert home_status.faults(at) == ["the keeper fails in notices: KeyError('event')"]
    assert faults.guard("notices", lambda: 2.0, 7.0) == 2.0
    assert home_status.faults(at) == []


def test_a_new_keeper_has_none_of_the_faults_of_another(home: str) -> None:
    Faults(Home(home)).guard("notices", fail, 7.0)
    Faults(Home(home)).guard("notices", lambda: 1.0, 7.0)
    assert loop_state.read_state(Home(home)).faults == {}


@pytest.mark.parametrize(
    "notice",
    [
        {"rule": None, "tries": 0},
        {"rule": None, "tries": 0, "event": ["failed"]},
        {"rule": None, "tries": 0, "event": "failed", "project_dir": 5},
    ],
)
def test_a_notice_that_is_none_is_given_up(home: str, notice: dict[str, object]) -> None:
    at = Home(home)
    os.mkdir(at.outbox)
    with open(at.notice(ULID), "w", encoding="utf-8") as file:
        json.dump(notice, file)
    Deliveries(at).step()
    assert (outbox.names(at), os.listdir(at.outbox_failed)) == ([], [f"{ULID}.json"])


@pytest.mark.parametrize(
    "field", [{"last_at": ""}, {"last_at": 5}, {"every": "9" * 30 + "d"}, {"created_at": ""}]
)
def test_a_schedule_with_a_time_that_is_none_is_left_out(home: str, field: dict[str, object]) -> None:
    at = Home(home)
    fields = {"name": "nightly", "every": "6h", "created_at": "2026-01-01T00:00:00Z", "spec": {}}
    os.mkdir(at.schedules)
    for changes, names in (({}, ["nightly"]), (field, [])):
        with open(at.schedule("nightly"), "w", encoding="utf-8") as file:
            json.dump({**fields, **changes}, file)
        assert [each.name for each in schedule.read_all(at)] == names


@pytest.mark.parametrize(
    "field", [{"iteration": 10**4300 - 1}, {"failures": -1}, {"failing": True}, {"faults": {"x": 1}}]
)
def test_a_value_of_the_loop_that_is_none_is_the_default(home: str, field: dict[str, object]) -> None:
    at = Home(home)
    with open(at.loop, "w", encoding="utf-8") as file:
        json.dump(field, file)
    assert loop_state.read_state(at) == loop_state.LoopState()
    home_status.gather(at)
