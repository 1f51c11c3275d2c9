"""Progress of a followed task: stages that start and end, the progress line, and messages."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast import clock
from holdfast.store.layout import Packet
from holdfast.views.cli.follow import progress, stage_news


def manifest(
    *states: str, status: str = "running", worked_s: tuple[float, ...] = (), **more: object
) -> dict[str, Any]:
    names = ["gemini_brief", "codex_impl", "codex_verify", "gemini_review"][: len(states)]
    rows: list[dict[str, Any]] = [
        {"name": name, "state": state} for name, state in zip(names, states, strict=True)
    ]
    for row, seconds in zip(rows, worked_s, strict=False):
        row["worked_s"] = seconds
    due = next((row["name"] for row in rows if row["state"] != "done"), names[-1])
    return {
        "status": status,
        "status_reason": "",
        "stage": due,
        "stages": rows,
        "attempt": 1,
        "started_at": clock.iso_now(),
        "status_updated_at": clock.iso_now(),
        "heartbeat": {"message_count": 0, "tool_calls": 0},
        **more,
    }


@pytest.mark.req("CON-1")
def test_each_start_and_end_is_told_once() -> None:
    told = stage_news.StageNews()
    assert told.update(manifest("pending", "pending")) == []
    assert told.update(manifest("active", "pending")) == ["gemini_brief started (1 of 2)"]
    assert told.update(manifest("active", "pending")) == []
    assert told.update(manifest("done", "active", worked_s=(62.0,))) == [
        "gemini_brief completed after 1m02s (1 of 2)",
        "codex_impl started (2 of 2)",
    ]
    assert told.update(manifest("done", "failed", worked_s=(62.0, 3.0))) == [
        "codex_impl failed after 3.0s (2 of 2)"
    ]
    assert told.update(manifest("done", "failed", worked_s=(62.0, 3.0))) == []


def test_a_stage_that_was_too_quick_to_be_seen_is_told_all_the_same() -> None:
    told = stage_news.StageNews()
    told.update(manifest("active", "pending", "pending"))
    assert told.update(manifest("done", "done", "active", worked_s=(1.0,))) == [
        "gemini_brief completed after 1.0s (1 of 3)",
        "codex_impl started (2 of 3)",
        "codex_impl completed (2 of 3)",
        "codex_verify started (3 of 3)",
    ]


def test_who_comes_later_is_told_of_the_present_stage_only() -> None:
    assert stage_news.StageNews().update(manifest("done", "done", "active")) == [
        "codex_verify started (3 of 3)"
    ]


def test_a_stage_that_runs_again_starts_again() -> None:
    told = stage_news.StageNews()
    told.update(manifest("done", "failed", worked_s=(1.0, 3.0)))
    assert told.update(manifest("done", "active", worked_s=(1.0, 3.0))) == ["codex_impl started (2 of 2)"]
    # Each pass has its own time; together they are the time of the stage.
    done = manifest("done", "done", worked_s=(1.0, 5.0))
    assert told.update(done) == ["codex_impl completed after 2.0s (2 of 2)"]


def test_from_the_agent_to_the_gate_is_no_start() -> None:
    told = stage_news.StageNews()
    told.update(manifest("active", "pending"))
    assert told.update(manifest("checking", "pending")) == []
    assert told.update(manifest("done", "pending", worked_s=(2.0,))) == [
        "gemini_brief completed after 2.0s (1 of 2)"
    ]


def test_a_plain_run_has_no_news_of_stages() -> None:
    told = stage_news.StageNews()
    assert told.update(manifest("active")) == []
    assert told.update(manifest("done")) == []
    assert stage_news.current(manifest("active")) == "gemini_brief"


@pytest.mark.parametrize(
    ("states", "now"),
    [
        (("active", "pending"), "gemini_brief (1 of 2)"),
        (("done", "active"), "codex_impl (2 of 2)"),
        (("active", "active", "pending"), "gemini_brief, codex_impl (1 and 2 of 3)"),
        (("done", "pending"), "codex_impl (2 of 2)"),
        (("done", "done"), "codex_impl (2 of 2)"),
    ],
)
def test_who_is_at_work(states: tuple[str, ...], now: str) -> None:
    assert stage_news.current(manifest(*states)) == now


def talk_of(
    capsys: pytest.CaptureFixture[str], path: str, *seen: dict[str, Any], every_s: float | None = None
) -> list[str]:
    os.makedirs(path)
    packet, lines = Packet(path), progress.ProgressMessages(every_s)
    for each in seen[:-1]:
        lines.show(packet, each, is_last=False)
    lines.show(packet, seen[-1], is_last=True)
    return [line.removeprefix(f"{packet.task_id}: ") for line in capsys.readouterr().err.splitlines()]


@pytest.mark.req("CON-1")
def test_plain_lines_tell_stages_and_troubles_and_not_every_state(
    capsys: pytest.CaptureFixture[str], tmp_path: os.PathLike[str]
) -> None:
    said = talk_of(
        capsys,
        os.path.join(tmp_path, "t1"),
        manifest("active", "pending", status="spawning"),
        manifest("active", "pending", status="running"),
        manifest("active", "pending", status="waiting", status_reason="rate_limit"),
        manifest("active", "pending", status="running"),
        manifest("done", "active", status="running"),
        manifest("done", "done", status="completed"),
    )
    assert [
        line.split(" after ")[0].removesuffix(" (1 of 2)").removesuffix(" (2 of 2)") for line in said
    ] == [
        "gemini_brief started",
        "waiting (gemini_brief): rate_limit",
        "gemini_brief completed",
        "codex_impl started",
        "codex_impl completed",
    ]


@pytest.mark.req("CON-1")
def test_progress_names_the_stage(capsys: pytest.CaptureFixture[str], tmp_path: os.PathLike[str]) -> None:
    running = manifest("done", "active")
    said = talk_of(capsys, os.path.join(tmp_path, "t1"), running, running, every_s=1e-9)
    assert said[0] == "codex_impl started (2 of 2)"
    assert said[1].startswith("codex_impl (2 of 2) running for ")


def test_progress_tells_the_time_in_the_state_not_of_the_task(
    capsys: pytest.CaptureFixture[str], tmp_path: os.PathLike[str]
) -> None:
    times = {"started_at": clock.iso(clock.now() - 600), "status_updated_at": clock.iso(clock.now() - 61)}
    waiting = manifest("active", status="waiting", **times)
    said = talk_of(capsys, os.path.join(tmp_path, "t1"), waiting, waiting, every_s=1e-9)
    assert said[-1].startswith("waiting for 1m01s"), said
