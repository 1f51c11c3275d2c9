"""No notice that an agent put into the outbox stops a keeper, or `status`."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.keeper.delivery import Deliveries
from holdfast.store.layout import Home
from tests.support.tasks import holdfast

ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV.json"


@pytest.mark.parametrize(
    "fields",
    [
        {"tries": 1000},
        {"tries": -5},
        {"after": ["x"]},
        {"after": "a\0b"},
        {"next_at": {}},
        {"rule": {"to": "command", "argv": 5}},
        {"rule": {"to": ["x"]}},
        {"at": []},
    ],
)
def test_a_forged_notice_stops_no_keeper(home: str, fields: dict[str, object]) -> None:
    notice = {"schema": "holdfast.notice/1", "rule": {"to": "x"}, "tries": 0} | fields
    os.makedirs(Home(home).outbox)
    with open(os.path.join(Home(home).outbox, ID), "w", encoding="utf-8") as file:
        json.dump(notice, file)
    deliveries = Deliveries(Home(home), first_pause_s=0.0)
    for _ in range(3):
        assert deliveries.step() >= 0


@pytest.mark.parametrize("failing", [[1], 5, {"a": 1}, {"a": {"at": []}}])
def test_status_survives_a_forged_report(home: str, failing: object) -> None:
    os.makedirs(Home(home).outbox)
    with open(Home(home).outbox_status, "w", encoding="utf-8") as file:
        json.dump({"failing": failing}, file)
    shown = holdfast("status")
    assert shown.returncode == 0, shown.stderr


def test_the_id_in_a_notice_is_no_path(home: str) -> None:
    """One without a rule is replaced by one for each rule."""
    mine = os.path.join(os.path.dirname(home), "mine.json")
    outbox = Home(home).outbox
    os.makedirs(outbox)
    notice = {"schema": "holdfast.notice/1", "rule": None, "tries": 0, "event": "interrupted", "task_id": "a"}
    for path, data in ((mine, {}), (os.path.join(outbox, ID), {**notice, "id": "../../mine"})):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(data, file)
    deliveries = Deliveries(Home(home), first_pause_s=0.0)
    for _ in range(3):
        deliveries.step()
    assert os.path.exists(mine)
    assert not os.path.exists(os.path.join(outbox, ID))
