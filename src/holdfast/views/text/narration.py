"""A task's log with what only the journal knows: how long tools took, what they returned, tokens, cost. Pure.

The readable lines of an event are in the log, and the event is in the journal before them. So the log is read
first; then each of its lines either is the next line of the oldest event, or is plain output. What is told
about an event comes after its last line.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from holdfast import clock
from holdfast.model import agent_events as ev
from holdfast.model import readable
from holdfast.model.analysis import happened_at
from holdfast.model.event import Event
from holdfast.model.events import decode
from holdfast.model.usage import Usage
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: Lines of a tool's result that are shown, and their length.
_SHOWN_LINES, _SHOWN_CHARS = 3, 160
#: Events among which that of a line is searched: the log may leave one out.
_AHEAD = 20
#: A line in the log is not longer.
_LOG_CHARS = 2000
#: Calls without a line that is due, after which an event is not waited for: the log left it out.
_PATIENCE = 20


class Narration:
    """What to print for the lines of a log and the events of its journal."""

    def __init__(self) -> None:
        self._due: deque[_Due] = deque()
        self._calls = 0
        #: Running tools: when they began, and their names, by attempt and id.
        self._tools: dict[tuple[Any, Any], tuple[str, str]] = {}
        self._last_tool: tuple[Any, Any] | None = None
        self._used: dict[Any, Usage] = {}

    def add(self, lines: Iterable[dict[str, Any]]) -> None:
        """Add lines of the journal."""
        for line in lines:
            if not str(line.get("type")).startswith("agent."):
                continue
            try:
                event = decode(line)
            except ValueError:
                continue
            if isinstance(event, ev.AgentEvent):
                shown = [readable.plain(text[:_LOG_CHARS]) for text in readable.lines(event)]
                self._due.append(_Due(event, happened_at(line), shown))

    def tell(self, log: Iterable[str]) -> list[str]:
        """The lines to print for the next lines of the log."""
        told: list[str] = []
        for line in log:
            told += self._finished()
            at = next((at for at, due in enumerate(islice(self._due, _AHEAD)) if due.next_line == line), None)
            if at is None:
                told.append(line)
                continue
            for _ in range(at):
                # The log left out their lines.
                told += self._about(self._due.popleft())
            due = self._due[0]
            due.taken += 1
            self._calls = 0
            if not due.is_replaced:
                told.append(line)
        told += self._finished()
        self._calls += 1
        while self._due and self._calls > _PATIENCE:
            # Its lines are not in the log.
            told += self._about(self._due.popleft())
        return told

    def _finished(self) -> list[str]:
        """What is told about the events whose lines were all printed."""
        told: list[str] = []
        while self._due and self._due[0].taken == len(self._due[0].lines):
            told += self._about(self._due.popleft())
            self._calls = 0
        return told

    def _about(self, due: _Due) -> list[str]:
        match due.event:
            case ev.AgentToolStarted() as event:
                self._last_tool = event.attempt, event.tool_id
                self._tools[self._last_tool] = due.at, event.name
            case ev.AgentToolFinished() as event:
                return self._tool(event, due.at)
            case ev.AgentUsage() as event:
                before = Usage() if event.cumulative else self._used.get(event.attempt, Usage())
                self._used[event.attempt] = before.plus(event)
            case ev.AgentResult() as event if event.attempt in self._used:
                return [f"  → {amounts.usage(self._used.pop(event.attempt).to_json())}"]
            case _:
                pass
        return []

    def _tool(self, event: ev.AgentToolFinished, at: str) -> list[str]:
        key = event.attempt, event.tool_id
        begun_at, name = self._tools.pop(key, ("", ""))
        took = (
            clock.duration_text(max(0.0, clock.parse_iso(at) - clock.parse_iso(begun_at))) if begun_at else ""
        )
        how = "denied" if event.denied else "failed" if event.is_error else ""
        # With several tools at a time, the line above may be about another one.
        whose = name if key != self._last_tool else ""
        words = [word for word in (whose, how, f"after {took}" if how and took else took) if word]
        head = f"  → {' '.join(words)}".rstrip(" ") if words else "  →"
        result = [line for line in readable_lines(event.result) if line.strip()]
        if not result:
            return [head] if words else []
        first, *more = (line[:_SHOWN_CHARS] for line in result[:_SHOWN_LINES])
        lines = [f"{head}: {first}" if words else f"{head} {first}", *(f"    {line}" for line in more)]
        if (left := len(result) - _SHOWN_LINES) > 0:
            lines.append(f"    … {amounts.plural(left, 'more line')}")
        return lines


def readable_lines(text: str) -> list[str]:
    """The lines of a text, without control characters."""
    return [readable.plain(line) for line in text.splitlines()]


class _Due:
    """An event whose lines in the log are not all printed yet."""

    def __init__(self, event: Event, at: str, lines: list[str]) -> None:
        self.event, self.at, self.lines = event, at, lines
        self.taken = 0
        #: Its own lines say less than what is told about it.
        self.is_replaced = isinstance(event, ev.AgentToolFinished)

    @property
    def next_line(self) -> str | None:
        """Its first line that was not printed; None if there is none."""
        return self.lines[self.taken] if self.taken < len(self.lines) else None
