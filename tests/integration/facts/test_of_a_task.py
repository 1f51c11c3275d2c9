"""Facts about one task: its timeline, windows of its log, a search in it, its usage."""

from __future__ import annotations

import os

import pytest

from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from holdfast.views.facts import log, timeline, usage
from tests.support.tasks import Task, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def test_the_timeline_joins_the_journal_without_a_gap() -> None:
    task = Task.play(Scenario().say("hello").crash("KILL", times=1).result("done"), "--base-interval", "0.1s")
    task.wait_for("completed", within_s=30)
    found = timeline.gather(Packet(task.packet))
    outcomes = [span["outcome"] for span in found["spans"] if span["kind"] == "attempt"]
    assert outcomes == ["crashed", "success"]
    assert [mark["kind"] for mark in found["marks"]][:2] == ["crash", "resume"]
    assert found["journal_bytes"] == os.path.getsize(task.path("events.jsonl"))


def test_windows_of_a_log_join_without_a_gap() -> None:
    task = Task.shell("i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done")
    task.wait_for("completed")
    packet, whole = Packet(task.packet), task.log()
    assert "line 499" in whole
    forwards, at = "", 0
    while at < len(whole.encode()):
        part = log.window(packet, begin=at, limit=300)
        assert part["text"].endswith("\n")
        assert len(part["text"].encode()) <= 300
        forwards, at = forwards + part["text"], part["end"]
    assert forwards == whole
    backwards, end = "", len(whole.encode())
    while end > 0:
        part = log.window(packet, end=end, limit=300)
        backwards, end = part["text"] + backwards, part["begin"]
    assert backwards == whole


def test_a_search_says_where_each_line_is_and_where_to_go_on() -> None:
    task = Task.shell("i=0; while [ $i -lt 50 ]; do echo Line $i; i=$((i+1)); done")
    task.wait_for("completed")
    packet, data = Packet(task.packet), task.read("output.log")
    first = log.search(packet, "line 4", limit=5)
    assert [each["text"].split()[-1] for each in first["lines"]] == ["4", "40", "41", "42", "43"]
    for each in first["lines"]:
        assert data[each["at"] :].decode().startswith(each["text"])
    rest = log.search(packet, "line 4", begin=first["end"])
    assert (len(rest["lines"]), rest["end"]) == (6, None)
    gone = log.window(Packet(task.packet + "-gone"))
    assert (gone["begin"], gone["end"], gone["size"], gone["text"]) == (0, 0, 0, "")


def test_usage_is_a_series() -> None:
    task = Task.play(Scenario().usage(input_tokens=10, output_tokens=5).result("done"))
    task.wait_for("completed")
    found = usage.series(Packet(task.packet))
    assert found
    assert (found[0]["input_tokens"], found[0]["output_tokens"]) == (10, 5)
