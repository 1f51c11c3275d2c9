"""The tasks of a home as lines of a list: grouped, sorted, filtered. No I/O."""

from __future__ import annotations

from holdfast.model.status import ENDS, newest_at
from holdfast.views.facts import queue_places
from holdfast.views.text import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Row = dict[str, Any]

#: By what tasks are sorted inside their group, largest or newest first; by name, in alphabetical order. By
#: age, queued tasks are in the order in which they will start.
SORTS = ("age", "name", "cost", "tokens")


class Heading:
    """The first line of a group."""

    def __init__(self, group: str, text: str) -> None:
        self.group, self.text = group, text


class Board:
    """All tasks that are shown, and the lines of the list."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        #: Ended tasks that are not on the board.
        self._hidden = set[str]()
        self._lines: list[Heading | str] | None = None
        self.sort = SORTS[0]
        self.filter = ""

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, task_id: str) -> Row | None:
        """The row of a task; None if it is not on the board."""
        return self._rows.get(task_id)

    def fill(self, rows: Iterable[Row], hidden: Iterable[str] | None = None) -> None:
        """Replace everything; `hidden` are ended tasks that are not shown, by default those of before."""
        self._rows = {row["task_id"]: row for row in rows}
        self._hidden = self._hidden if hidden is None else set(hidden)
        self._lines = None

    def rows(self) -> list[Row]:
        """All tasks."""
        return list(self._rows.values())

    def put(self, task_id: str, row: Row | None) -> bool:
        """Change one task, or remove it with None. Returns whether the lines may have changed places."""
        old = self._rows.pop(task_id, None)
        was_hidden = task_id in self._hidden
        self._hidden.discard(task_id)
        if row is not None:
            self._rows[task_id] = row
        if old is None and row is None and not was_hidden:
            return False
        if old is not None and row is not None and self._place(old) == self._place(row):
            return False
        self._lines = None
        return True

    def sort_next(self) -> str:
        """Sort by the next criterion, and return it."""
        self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
        self._lines = None
        return self.sort

    def narrow(self, text: str) -> None:
        """Show only tasks in which each word of `text` occurs: in id, state, agent, goal or labels."""
        self.filter = text.casefold()
        self._lines = None

    @property
    def lines(self) -> list[Heading | str]:
        """Headings and the ids of tasks, from the top."""
        if self._lines is None:
            self._lines = self._arranged()
        return self._lines

    def counts(self) -> dict[str, int]:
        """Tasks of each group, whatever the filter."""
        counts: dict[str, int] = dict.fromkeys(describe.GROUPS, 0)
        for row in self._rows.values():
            counts[describe.group(row)] += 1
        counts["ended"] += len(self._hidden)
        return counts

    def _arranged(self) -> list[Heading | str]:
        groups: dict[str, list[Row]] = {name: [] for name in describe.GROUPS}
        words = self.filter.split()
        for row in self._rows.values():
            if not words or _matches(row, words):
                groups[describe.group(row)].append(row)
        lines: list[Heading | str] = []
        key = _KEYS[self.sort]
        for name, rows in groups.items():
            if rows:
                # Twice, because sorting is stable: equal tasks keep the order of their ids.
                rows.sort(key=lambda row: row["task_id"])
                rows.sort(key=key, reverse=self.sort != "name")
                if name == "queued" and self.sort == "age":
                    rows.sort(key=queue_places.order)
                elif name == "needs you":
                    rows.sort(key=lambda row: row["status"] in ENDS)  # questions before failures
                # What a filter leaves out is not counted: it may be anything.
                hidden = len(self._hidden) if name == "ended" and not words else 0
                text = describe.heading(name, len(rows) + hidden, len(rows), "; A shows all")
                lines.append(Heading(name, text))
                lines += [row["task_id"] for row in rows]
        return lines

    def _place(self, row: Row) -> tuple[Any, ...]:
        """What decides where a task is listed."""
        searched = _searched(row) if self.filter else ""
        return describe.group(row), _KEYS[self.sort](row), queue_places.order(row)[0], searched


def _matches(row: Row, words: list[str]) -> bool:
    text = _searched(row)
    return all(word in text for word in words)


def _searched(row: Row) -> str:
    named: dict[str, str] = row.get("labels") or {}
    labels = " ".join(f"{name}={value}" for name, value in named.items())
    parts = (row["task_id"], describe.state(row), row.get("agent"), row.get("stage"), row.get("goal"), labels)
    return " ".join(str(part) for part in parts if part).casefold()


def _cost(row: Row) -> float:
    usage: dict[str, float | None] = row.get("usage") or {}
    return usage.get("cost_usd") or 0.0


def _tokens(row: Row) -> int:
    usage: dict[str, int | None] = row.get("usage") or {}
    return (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)


_KEYS: dict[str, Callable[[Row], Any]] = {
    "age": newest_at,
    "name": lambda row: row["task_id"],
    "cost": _cost,
    "tokens": _tokens,
}
