"""A brief row of a live task shows in a table what its whole row does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import clock
from holdfast.model.status import ENDS, Status
from holdfast.store.index_rows import brief, short
from holdfast.views.facts import task_list
from holdfast.views.text import amounts, describe

AT = "2026-01-31T12:00:00.000Z"
LATER = "2026-01-31T12:30:00.000Z"
NOW = clock.parse_iso("2026-01-31T13:00:00.000Z")
MANIFEST: dict[str, Any] = {
    "task_id": "it",
    "agent": "claude",
    "stage": "claude_fix",
    "started_at": AT,
    "run_started_at": LATER,
    "status_updated_at": LATER,
    "status_reason": "limit of the account",
    "attempt": 2,
    "waited_s": 0.0,
    "usage": {"input_tokens": None, "output_tokens": None, "cost_usd": None, "unpriced_calls": 0},
}


def shown(row: dict[str, Any]) -> list[object]:
    """What `ls` computes from a row."""
    row["runner_gone"] = False
    return [
        row["task_id"],
        row["agent"],
        row["stage"],
        describe.state(row),
        describe.group(row),
        describe.elapsed_s(row, NOW),
        amounts.tokens(row),
        amounts.cost(row),
        task_list.note(row),
        task_list.last_line("/nonexistent", row, NOW),
    ]


@pytest.mark.parametrize("status", [status for status in Status if status not in ENDS] + ["unreadable"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"usage": {"input_tokens": 1200, "output_tokens": 3, "cost_usd": 0.5, "unpriced_calls": 0}},
        {"usage": {"input_tokens": None, "output_tokens": None, "cost_usd": 0.0, "unpriced_calls": 0}},
        {"usage": {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.2, "unpriced_calls": 1}},
        {"usage": None, "stage": None},
        {"waited_s": 100.0, "asked_s": 200.5},
        {"waited_s": None, "begun_at": LATER},
        {"waited_s": None, "attempt": 0},
        {"run_started_at": None},
        {"wake_at": LATER},
        {"stopping": {"by": "ada"}},
        {"waiting_for": "the workspace (fix is writing)"},
        {"interrupt": {"timestamp": LATER, "reason": "which database?"}},
        {"progress": {"steps_completed": 3, "steps_total": 10, "current_step": "tests"}},
        {"concerns": [{"stage": "codex_review", "kind": "findings", "text": "1 blocker"}]},
        {"denied": [{"stage": "claude_fix", "tools": "Bash", "allow": "full"}]},
        {"applied": {"at": AT}, "denied_readers": ["codex_review"]},
        {"last_words": "All tests pass.", "finished_at": LATER},
    ],
)
def test_the_table_is_the_same(status: str, fields: dict[str, Any]) -> None:
    row = short({**MANIFEST, "status": str(status), **fields})
    assert shown(brief(row)) == shown(row)


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ("abandoned", "its deadline is over"),
        ("failed", "its deadline is over: still at it"),
        ("completed", "still at it"),
    ],
)
def test_a_command_says_why_it_failed_before_what_it_printed(status: str, line: str, tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_text("still at it\n", encoding="utf-8")
    ended = {"status": status, "agent": "command", "status_reason": "its deadline is over"}
    row = short({**MANIFEST, **ended, "finished_at": LATER})
    assert task_list.last_line(str(log), row, NOW) == line
