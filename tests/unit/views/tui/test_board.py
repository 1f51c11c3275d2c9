"""Unit tests for the order of the tasks in `holdfast top`, and for its columns."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.views.tui import columns
from holdfast.views.tui.board import Board, Heading


def row(task_id: str, status: str = "running", **facts: Any) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "status": status,
        "agent": "claude",
        "started_at": "2026-01-31T12:00:00.000Z",
        "begun_at": "2026-01-31T12:00:00.000Z",
        "status_reason": "",
        **facts,
    }


def board(*rows: dict[str, Any]) -> Board:
    made = Board()
    made.fill(rows)
    return made


def shown(of: Board) -> list[str]:
    return [f"# {line.text}" if isinstance(line, Heading) else line for line in of.lines]


def test_what_needs_a_person_comes_first_and_what_has_ended_last() -> None:
    tasks = board(row("a", "completed"), row("b", "queued"), row("c", "interrupted"), row("d"))

    assert shown(tasks) == [
        "# needs you (1)",
        "c",
        "# working (1)",
        "d",
        "# queued (1)",
        "b",
        "# ended (1)",
        "a",
    ]


def test_a_task_that_keeps_its_place_does_not_change_the_lines() -> None:
    tasks = board(row("a"), row("b"))

    assert tasks.put("a", row("a", usage={"cost_usd": 1.0})) is False
    assert tasks.get("a") == row("a", usage={"cost_usd": 1.0})
    assert tasks.put("a", row("a", "completed")) is True
    assert shown(tasks) == ["# working (1)", "b", "# ended (1)", "a"]


def test_a_task_that_is_removed_disappears_and_one_that_was_never_there_changes_nothing() -> None:
    tasks = board(row("a"))

    assert tasks.put("b", None) is False
    assert tasks.put("a", None) is True
    assert shown(tasks) == []


@pytest.mark.parametrize(
    ("sort", "order"), [("age", ["b", "c", "a"]), ("name", ["a", "b", "c"]), ("cost", ["c", "a", "b"])]
)
def test_it_is_sorted_inside_the_groups(sort: str, order: list[str]) -> None:
    tasks = board(
        row("a", started_at="2026-01-01T00:00:00.000Z", usage={"cost_usd": 2.0}),
        row("b", started_at="2026-01-03T00:00:00.000Z"),
        row("c", started_at="2026-01-02T00:00:00.000Z", usage={"cost_usd": 3.0}),
    )
    while tasks.sort != sort:
        tasks.sort_next()

    assert shown(tasks)[1:] == order


def test_a_filter_needs_every_word_in_any_case_and_order() -> None:
    tasks = board(row("fix-login", labels={"batch": "night"}), row("fix-logout"), row("docs", agent="codex"))

    tasks.narrow("NIGHT fix")
    assert shown(tasks) == ["# working (1)", "fix-login"]
    tasks.narrow("codex")
    assert shown(tasks) == ["# working (1)", "docs"]
    tasks.narrow("")
    assert len(tasks.lines) == 4


def test_a_task_that_no_longer_matches_the_filter_is_hidden() -> None:
    tasks = board(row("a", stage="impl"), row("b", stage="impl"))
    tasks.narrow("impl")

    assert tasks.put("a", row("a", stage="review")) is True
    assert shown(tasks) == ["# working (1)", "b"]


@pytest.mark.parametrize("width", [40, 80, 100, 140, 200])
def test_a_line_is_never_wider_than_the_terminal(width: int) -> None:
    chosen = columns.fitting(width)

    line = " ".join(column.fit("名前" * 40) for column in chosen)

    assert columns.cell_len(line) <= max(width, 36)
    assert len(columns.header(chosen)) <= max(width, 36)


def test_a_narrow_terminal_shows_the_task_its_state_and_last_words() -> None:
    assert [column.name for column in columns.fitting(50)] == ["TASK", "STATE", "LAST WORDS"]


def test_control_characters_of_an_agent_reach_no_cell() -> None:
    cell = columns.fitting(80)[0].fit("\x1b[2Jevil\x07\u202e")

    assert cell.isprintable()
    assert "evil" in cell


def test_a_cost_that_is_not_complete_is_shown_as_at_least() -> None:
    text = columns.cell("COST", row("a", usage={"cost_usd": 1.0, "unpriced_calls": 2}), 0.0, "/nonexistent")

    assert text == "≥$1.00"
