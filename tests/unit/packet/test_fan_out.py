"""The record of a fan-out: an agent can write anything there."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from holdfast.errors import CorruptFile
from holdfast.model.fan_out import FanOut, Merging, Row
from holdfast.model.spec import FanOutSpec, PlanItem
from holdfast.packet import fan_out
from holdfast.store.layout import Packet

SPEC = FanOutSpec(items=(PlanItem(id="a", title="a", prompt="a"),), child={})
ROW: dict[str, Any] = {"id": "a", "task": "f.a"}


@pytest.fixture
def packet(tmp_path: Any) -> Packet:
    found = Packet(str(tmp_path / "tasks" / "f"))
    os.makedirs(found.state)
    return found


def test_what_was_written_is_read(packet: Packet) -> None:
    row = Row(id="a", task="f.a", state="merged", files=2, returned=1, commit="c")
    record = FanOut(tip="c", merging=Merging(item="a", old="b", new="c", files=2), rows=(row,), planning=row)
    fan_out.write(packet, record)
    assert fan_out.read(packet) == record
    (facts,) = fan_out.items(packet, SPEC)
    assert facts.text == "a (f.a): merged, 2 files changed, sent back once"


@pytest.mark.parametrize(
    "data",
    [
        {"rows": 7},
        {"rows": [7]},
        {"rows": {"id": "a"}},
        {"rows": [{}]},
        {"rows": [{**ROW, "id": ["a"]}]},
        {"rows": [{**ROW, "reason": {"x": 1}}]},
        {"rows": [{**ROW, "files": "many"}]},
        {"rows": [{**ROW, "returned": True}]},
        {"rows": [{**ROW, "judged_run": None}]},
        {"tip": 7},
        {"run": "1"},
        {"merging": {"item": "a"}},
        {"merging": {"item": "a", "old": 1, "new": 2, "files": 3}},
        {"planning": [ROW]},
        {"rows": [ROW] * 21},
        {"tip": "--stdin"},
        {"merging": {"item": "a", "old": "-d", "new": "c", "files": 3}},
        {"merging": {"item": "a", "old": "b", "new": "--index-output=x", "files": 3}},
    ],
)
def test_other_data_is_damaged_and_costs_no_view(packet: Packet, data: dict[str, Any]) -> None:
    with open(packet.fan_out, "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.fan-out/1", **data}, file)
    with pytest.raises(CorruptFile):
        fan_out.read(packet)
    assert [facts.state for facts in fan_out.items(packet, SPEC)] == ["planned"]
    assert fan_out.task_ids(packet, SPEC) == ["f.a"]


@pytest.mark.parametrize("state", ["open", "merged", "x"])
def test_a_planner_in_any_state_costs_no_view(packet: Packet, state: str) -> None:
    planning = Row(id="plan", task="f.plan", state=state)
    fan_out.write(packet, FanOut(planning=planning, rows=(Row(id="a", task="f.a"),)))
    assert fan_out.waiting_for_person(packet) == []


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"state": "left_out", "judged_run": 2}, "left out of the fan-out f: too wide"),
        ({"state": "open", "judged_run": 2}, "sent back by the fan-out f: too wide"),
        ({"state": "merged", "judged_run": 2}, ""),
        # A person retried it since.
        (
            {"state": "left_out", "judged_run": 1},
            "left out of the fan-out f before this run: 'holdfast retry f' merges it",
        ),
        ({"state": "open", "judged_run": 1}, ""),
    ],
)
def test_an_item_knows_whether_its_work_was_refused(packet: Packet, row: dict[str, Any], told: str) -> None:
    fan_out.write(packet, FanOut(rows=(Row(id="a", task="f.a", reason="too wide", **row),)))
    manifest = {"status": "completed", "run": 2, "labels": {"fan-out": "f"}}
    assert fan_out.refusal(packet.home.packet("f.a"), manifest) == told
    assert fan_out.refusal(packet.home.packet("f.b"), manifest) == ""
    assert fan_out.refusal(packet.home.packet("f.a"), {**manifest, "labels": None}) == ""


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"state": "open", "judged_run": 1}, "a (f.a): completed"),
        ({"state": "open", "judged_run": 2}, "a (f.a): completed: too wide"),
        ({"state": "left_out", "judged_run": 1}, "a (f.a): left out: too wide"),
    ],
)
def test_the_reason_of_an_item_is_not_about_a_run_before(
    packet: Packet, row: dict[str, Any], told: str
) -> None:
    fan_out.write(packet, FanOut(rows=(Row(id="a", task="f.a", reason="too wide", **row),)))
    child = packet.home.packet("f.a")
    os.mkdir(child.path)
    with open(child.manifest, "w", encoding="utf-8") as file:
        started = {"agent": "command", "started_at": "2026-01-31T12:00:00.000Z"}
        json.dump({"status": "completed", "run": 2, **started}, file)
    assert [facts.text for facts in fan_out.items(packet, SPEC)] == [told]
