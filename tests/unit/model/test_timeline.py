"""The timeline of a journal: spans and marks."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from holdfast import clock
from holdfast.model import timeline

FIXTURES = os.path.join(os.path.dirname(__file__), "../../../docs/contracts/fixtures")
NAMES = sorted(name for name in os.listdir(FIXTURES) if name.startswith("journal."))


def lines(name: str) -> list[dict[str, Any]]:
    with open(os.path.join(FIXTURES, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [each["kind"] for each in found]


def test_a_crash_and_the_resume_after_it() -> None:
    found = timeline.of(lines("journal.crash-and-resume.jsonl"))
    attempts = [span for span in found.spans if span["kind"] == "attempt"]
    assert [span["outcome"] for span in attempts] == ["crashed", "success"]
    assert all(span["seconds"] >= 0 and span["end"] >= span["begin"] for span in attempts)
    assert kinds(found.marks).index("crash") < kinds(found.marks).index("resume")
    (resume,) = [mark for mark in found.marks if mark["kind"] == "resume"]
    assert resume["after_s"] >= 0
    # Until the new process exists, from the death of the one before.
    (crash,) = [mark for mark in found.marks if mark["kind"] == "crash"]
    assert crash["at"] <= attempts[0]["end"]
    assert crash["noticed_s"] >= 0
    measured = clock.parse_iso(attempts[1]["started_at"]) - clock.parse_iso(crash["at"])
    assert resume["healed_s"] == pytest.approx(measured, abs=0.002)
    assert resume["healed_s"] >= resume["after_s"]


def test_an_interrupt_is_a_span_until_the_person_answers() -> None:
    found = timeline.of(lines("journal.interrupt-resume-stop.jsonl"))
    (interrupt,) = [span for span in found.spans if span["kind"] == "interrupt"]
    assert interrupt["end"] is not None
    assert "request" in kinds(found.marks)


def test_gates_and_chores_of_a_pipeline() -> None:
    found = timeline.of(lines("journal.pipeline.jsonl"))
    assert "chore" in kinds(found.spans)
    gates = [mark for mark in found.marks if mark["kind"] == "gate"]
    assert gates
    assert all(gate["took_s"] > 0 for gate in gates)


@pytest.mark.parametrize("name", NAMES)
def test_every_prefix_of_a_journal_has_a_timeline(name: str) -> None:
    whole = lines(name)
    for count in range(len(whole) + 1):
        found = timeline.of(whole[:count])
        json.dumps(found.to_json())
        assert all(span["begin"] for span in found.spans)


def test_lines_of_another_version_are_skipped() -> None:
    odd: list[dict[str, Any]] = [
        {},
        {"type": "attempt.opened", "at": "2026-01-31T12:00:00Z"},
        {"type": "attempt.ended", "at": "2026-01-31T12:00:00Z", "attempt": "x"},
        {"type": "task.moved", "at": "2026-01-31T12:00:00Z"},
        {"type": "of.tomorrow", "at": "2026-01-31T12:00:00Z"},
    ]
    assert timeline.of(odd).to_json() == {"spans": [], "marks": []}


def test_hangs_limits_and_sweeps_have_measured_times() -> None:
    opened = {"type": "attempt.opened", "attempt": 1, "stage": "s", "at": "2026-01-31T12:00:00.000Z"}
    verdict = {"type": "watch.verdict", "attempt": 1, "verdict": "hung", "evidence": {"silent_s": 300.5}}
    found = timeline.of(
        [
            opened,
            {
                "type": "agent.rate_limit", "attempt": 1, "resets_at": "2026-01-31T13:00:00.000Z",
                "at": "2026-01-31T12:10:00.000Z", "said_at": "2026-01-31T12:05:00.000Z",
            },
            {**verdict, "at": "2026-01-31T12:20:00.000Z"},
            {"type": "stop.intended", "attempt": 1, "intent": "hang", "at": "2026-01-31T12:20:00.100Z"},
            {"type": "attempt.ended", "attempt": 1, "outcome": "hung", "at": "2026-01-31T12:20:10.000Z"},
            {"type": "attempt.swept", "attempt": 1, "killed": [{"pid": 7}], "at": "2026-01-31T12:20:11.500Z"},
        ]
    )  # fmt: skip
    limit, hang, sweep = found.marks
    assert (limit["at"], limit["until"]) == ("2026-01-31T12:05:00.000Z", "2026-01-31T13:00:00.000Z")
    assert hang["silent_s"] == 300.5
    assert (sweep["killed"], sweep["after_s"]) == (1, 1.5)


def test_a_runner_that_died_is_an_adoption() -> None:
    started = {"type": "runner.started", "pid": 1, "boot_id": "", "start_time": 1, "version": ""}
    found = timeline.of(
        [
            {**started, "at": "2026-01-31T12:00:00.000Z"},
            {"type": "attempt.opened", "attempt": 1, "stage": "s", "at": "2026-01-31T12:00:01.000Z"},
            {**started, "at": "2026-01-31T12:00:03.500Z"},
            {"type": "runner.left", "pid": 1, "reason": "", "at": "2026-01-31T12:00:04.000Z"},
            {**started, "at": "2026-01-31T12:00:05.000Z"},
        ]
    )
    assert found.marks == [{"kind": "adopt", "at": "2026-01-31T12:00:03.500Z", "attempts": [1], "gap_s": 2.5}]


def test_a_takeover_is_a_span_of_its_stage() -> None:
    began = {"type": "takeover.started", "at": "2026-01-31T12:00:00.000Z", "attempt": 3, "stage": "impl"}
    began |= {"agent": "pi", "by": "ada@host"}
    ended = {"type": "takeover.ended", "at": "2026-01-31T12:10:00.000Z", "attempt": 3, "how": "lost"}
    found = timeline.of([began, ended])
    (span,) = found.spans
    assert (span["kind"], span["stage"], span["attempt"], span["seconds"]) == ("takeover", "impl", 3, 600.0)
    assert (span["outcome"], span["by"]) == ("lost", "ada@host")
    assert [mark["how"] for mark in found.marks] == ["began", "lost"]
    # Nobody asks for the end of one that was lost.
    assert [mark["by"] for mark in found.marks] == ["ada@host", "ada@host"]
    (open_span,) = timeline.of([began]).spans
    assert open_span["end"] is None


def test_a_question_is_a_mark_with_the_time_until_it_was_answered() -> None:
    asked = {"type": "task.moved", "at": "2026-01-31T12:00:00.000Z", "old": "running", "new": "interrupted"}
    asked |= {"reason": "asks", "interrupt": "which one?"}
    answered = {"type": "task.moved", "at": "2026-01-31T12:00:40.000Z", "old": "interrupted"}
    answered |= {"new": "spawning", "reason": "resumed by ada@host"}
    (question,) = timeline.of([asked, answered]).marks
    assert (question["kind"], question["detail"], question["answered_s"]) == ("question", "which one?", 40.0)
    (still_open,) = timeline.of([asked]).marks
    assert still_open["answered_s"] is None
    assert timeline.of([{**asked, "cause": "down"}]).marks == [], "nobody is asked"
