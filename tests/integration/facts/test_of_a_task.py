"""Facts about one task: its timeline, windows of its log, a search in it, its usage, its replay."""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

import pytest

from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from holdfast.views.facts import log, replay, timeline, usage
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


def test_a_replay_has_state_stage_attempt_and_tokens_at_each_moment() -> None:
    scenario = Scenario().usage(input_tokens=10, output_tokens=5).crash("KILL", times=1).result("done")
    task = Task.play(scenario, "--base-interval", "0.1s")
    task.wait_for("completed", within_s=30)
    _add_usage(task, attempt=1, count=1)
    moments = replay.gather(Packet(task.packet))["moments"]
    assert [each["at"] for each in moments] == sorted(each["at"] for each in moments)
    assert (moments[0]["state"], moments[0]["input_tokens"]) == ("spawning", None)
    running = [each for each in moments if each["state"] == "running"]
    assert {(each["stage"], each["attempt"]) for each in running} == {
        ("scripted_run", 1),
        ("scripted_run", 2),
    }
    assert [each["input_tokens"] for each in running if each["attempt"] == 1] == [None, 1]
    assert "crashed" in {each["state"] for each in moments}
    assert (moments[-1]["state"], moments[-1]["stage"]) == ("completed", None)


def _add_usage(task: Task, *, attempt: int, count: int) -> None:
    """Reports of usage before the end of an attempt."""
    lines = task.read("events.jsonl").splitlines(keepends=True)
    at = next(
        i
        for i, line in enumerate(lines)
        if b'"attempt.ended"' in line and b'"attempt":%d' % attempt in line.replace(b" ", b"")
    )
    ended = json.loads(lines[at])
    for number in range(count):
        event = {"id": f"u{number}", "at": ended["at"], "type": "agent.usage", "attempt": attempt}
        event |= {"offset": 0, "input_tokens": number + 1, "cumulative": True}
        lines.insert(at + number, json.dumps(event).encode() + b"\n")
    with open(task.path("events.jsonl"), "wb") as file:
        file.writelines(lines)


def test_a_replay_reads_over_what_it_does_not_understand() -> None:
    task = Task.shell("exit 0")
    task.wait_for("completed")
    before = replay.gather(Packet(task.packet))["moments"]
    with open(task.path("events.jsonl"), "a", encoding="utf-8") as file:
        file.write('{"type": "of.tomorrow", "at": "2030-01-01T00:00:00Z"}\n{"type": "task.moved"}\n[]\nx\n')
    assert replay.gather(Packet(task.packet))["moments"] == before


def test_a_long_replay_is_thinned_where_only_tokens_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task.play(Scenario().result("done"))
    task.wait_for("completed")
    _add_usage(task, attempt=1, count=200)
    whole = replay.gather(Packet(task.packet))["moments"]
    assert len(whole) > 200
    monkeypatch.setattr(replay, "MAX_MOMENTS", 20)
    thinned = replay.gather(Packet(task.packet))["moments"]
    assert len(thinned) < 40
    assert thinned[-1] == whole[-1]

    def states(moments: list[dict[str, Any]]) -> list[str]:
        return [state for state, _ in itertools.groupby(each["state"] for each in moments)]

    assert states(thinned) == states(whole)
