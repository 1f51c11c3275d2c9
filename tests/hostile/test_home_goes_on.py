"""What an agent writes into the files of a home itself ends no keeper, and stops no queue."""

from __future__ import annotations

import json
import os
import sqlite3
from typing import Any

import pytest

from tests.hostile.planting import write
from tests.support.tasks import Task, holdfast, workspace

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#: Times that are none, and numbers that no clock can use.
TIMES = ("2026-01010T00:00:00Z", "2026-01-01T00:00:00.9e999Z", "2026-01-01T00:00:00.9e30Z")
HUGE = 10**400
NOTICE = {"rule": {"to": "desktop"}, "tries": 1, "event": "failed", "task_id": "it"}
REPLY = {"schema": "holdfast.reply/1", "notice": ULID, "task_id": "it", "interrupt": 1, "stage": "x"}
SCHEDULE = {"name": "nightly", "created_at": "2026-01-01T00:00:00Z", "spec": {}}
FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "notice": (f"outbox/{ULID}.json", {**NOTICE, "next_at": TIMES[0]}),
    "waiting notice": (f"outbox/{ULID}.json", {**NOTICE, "at": TIMES[0], "after": "{home}/never"}),
    "reply": (f"replies/{ULID}.json", {**REPLY, "rule": {}, "forget_at": HUGE}),
    "spent": ("loop.json", {"spent": {"*": HUGE, "default": HUGE}, "spent_day": "{today}"}),
    **{
        f"schedule {every} {number}": (
            "schedules/nightly.json",
            {**SCHEDULE, "every": every, "created_at": at},
        )
        for number, at in enumerate(TIMES)
        for every in ("day@02:00", "6h")
    },
}
#: In rows of the queue.
VALUES = {
    "no list": "UPDATE items SET after = '{'",
    "a time that is text": "UPDATE items SET not_before_s = 'x' WHERE task_id = 'other'",
    "an owner that is no text": "UPDATE items SET state = 'claimed', claimed_by = x'ff'",
    "no UTF-8": "UPDATE items SET reason = CAST(x'ff' AS TEXT)",
    "no UTF-8 in a dependency": "INSERT INTO waits VALUES ('it', CAST(x'ff' AS TEXT), 0)",
}
#: A query that never ends.
_ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"


def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A keeper comes, and what is queued runs."""
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    done = holdfast("submit", "--id", "new", "--", "true", cwd=workspace())
    assert done.returncode == 0, done.stderr
    done = holdfast("wait", "new", "--timeout", "40s")
    assert done.returncode == 0, done.stdout + done.stderr
    for verb in (("status",), ("queue", "ls"), ("ls",)):
        done = holdfast(*verb)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", FILES)
def test_a_file(home: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    from holdfast import clock

    Task.start("--id", "it", "--", "true").wait_for("completed")
    path, data = FILES[name]
    text = json.dumps(data).replace("{home}", home).replace("{today}", clock.local_day(clock.now()))
    write(os.path.join(home, path), text)
    goes_on(monkeypatch)


def queued(home: str) -> sqlite3.Connection:
    for name in ("it", "other"):
        done = holdfast("submit", "--id", name, "--", "true", cwd=workspace())
        assert done.returncode == 0, done.stderr
    return sqlite3.connect(os.path.join(home, "queue.db"))


@pytest.mark.parametrize("name", VALUES)
def test_a_row_of_the_queue(home: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rows = queued(home)
    with rows:
        rows.execute(VALUES[name])
    rows.close()
    goes_on(monkeypatch)


@pytest.mark.parametrize(("database", "table"), [("queue.db", "items"), ("index.db", "tasks")])
def test_a_view_in_place_of_a_table(
    home: str, monkeypatch: pytest.MonkeyPatch, database: str, table: str
) -> None:
    queued(home).close()
    assert holdfast("ls").returncode == 0
    rows = sqlite3.connect(os.path.join(home, database))
    columns = [row[1] for row in rows.execute(f"PRAGMA table_xinfo({table})")]
    with rows:
        rows.execute(f"DROP TABLE {table}")
        rows.execute(
            f"CREATE VIEW {table} AS {_ENDLESS} {', '.join(f'x AS {each}' for each in columns)} FROM n"
        )
    rows.close()
    goes_on(monkeypatch)
