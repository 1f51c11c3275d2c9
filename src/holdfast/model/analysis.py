"""A summary of a task's journal: moves, attempts, tools, errors. Pure.

It reads the lines as JSON objects, not as events: it needs few fields, and a line of another version must not
make the rest unreadable.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model.attempt_numbers import AttemptNumbers
from holdfast.model.outcome import SUCCESS
from holdfast.model.stage_usage import StageUsages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: Events on the timeline: how the task went, not what the agent printed.
TIMELINE = frozenset(
    {
        "task.created", "task.moved", "run.opened", "stage.done", "gate.judged", "failure.triaged",
        "approval.given", "agent.switched", "attempt.opened", "attempt.started", "attempt.ended",
        "attempt.void", "stop.intended", "retry.planned", "request.applied", "request.refused",
        "watch.verdict", "runner.started", "agent.rate_limit", "agent.error", "journal.repaired",
        "journal.forged",
    }
)  # fmt: skip


class Tool:
    """Calls of one tool of the agent."""

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.denied = 0
        #: Total time from start to end of its calls.
        self.seconds = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "calls": self.calls,
            "errors": self.errors,
            "denied": self.denied,
            "seconds": round(self.seconds, 3),
        }


class ActiveTime:
    """Time in which processes of a task ran, in all its runs; that of parallel ones counts once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        #: Executions that have not ended: when each started, and whether others ran at the same time.
        self._open: dict[Any, tuple[float, bool]] = {}
        self._counted_until = 0.0

    def started(self, number: Any, at: float) -> None:
        """An execution has started."""
        is_parallel = bool(self._open)
        self._open = {other: (since, True) for other, (since, _) in self._open.items()}
        self._open[number] = at, is_parallel

    def ended(self, number: Any, lived_s: float) -> None:
        """It has ended, or was never started."""
        since, is_parallel = self._open.pop(number, (0.0, False))
        # Only of parallel ones: a clock that was set back would hide the time of others.
        overlap_s = max(0.0, self._counted_until - since) if is_parallel else 0.0
        self.seconds += max(0.0, lived_s - overlap_s)
        self._counted_until = max(self._counted_until, since + lived_s)


class Analysis:
    """The summary of the lines passed to `apply`."""

    def __init__(self) -> None:
        self.events: dict[str, int] = {}
        self.first_at = self.last_at = ""
        self.moves: list[dict[str, Any]] = []
        self.attempts: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.tools: dict[str, Tool] = {}
        self.errors: list[dict[str, Any]] = []
        self.interrupts = 0
        #: Retries that have begun, and those that are planned.
        self.retries = self.planned_retries = 0
        self.runs = 1
        self.messages = 0
        self.turns: int | None = None
        self.stages_done: list[str] = []
        self.stages = StageUsages()
        self.numbers = AttemptNumbers()
        self.active = ActiveTime()
        #: Calls that have not ended, by attempt and id.
        self.open_calls: dict[tuple[Any, Any], dict[str, Any]] = {}

    def apply(self, line: dict[str, Any]) -> None:
        """Add one line. An invalid line is only counted."""
        kind, at = str(line.get("type")), str(line.get("at"))
        self.events[kind] = self.events.get(kind, 0) + 1
        self.first_at = self.first_at or at
        self.last_at = at if kind not in _NO_WORK or not self.last_at else self.last_at
        self.numbers.apply(line)
        handler = _HANDLERS.get(kind)
        if handler is not None or kind in _OF_STAGES:
            try:
                self.stages.apply(line)
                if handler is not None:
                    handler(self, line, at)
            except (AttributeError, KeyError, TypeError, ValueError):
                return

    def note(self, at: str, attempt: Any, kind: str, message: str) -> None:
        """Add an error."""
        self.errors.append({"at": at, "attempt": attempt, "kind": kind, "message": message})

    def to_json(self) -> dict[str, Any]:
        """The summary, as plain data."""
        return {
            "first_at": self.first_at or None,
            "last_at": self.last_at or None,
            "span_s": _seconds(self.first_at, self.last_at) if self.first_at else 0.0,
            "events": dict(sorted(self.events.items())),
            "moves": len(self.moves),
            "runs": self.runs,
            "active_s": round(self.active.seconds, 3),
            "attempts": self.attempts,
            "stages_done": self.stages_done,
            "retries": self.retries,
            "interrupts": self.interrupts,
            "messages": self.messages,
            "turns": self.turns,
            "tool_usage": self.tool_usage(),
            "errors": len(self.errors),
        }

    def tool_usage(self) -> dict[str, Any]:
        """How often each tool was called, most used first."""
        ranked = sorted(self.tools.items(), key=lambda item: (-item[1].calls, item[0]))
        return {
            "total": sum(tool.calls for _, tool in ranked),
            "errors": sum(tool.errors for _, tool in ranked),
            "breakdown": {name: tool.to_json() for name, tool in ranked},
        }


def happened_at(line: dict[str, Any]) -> str:
    """When an event happened: when it was read (`at`), unless it is known to be older."""
    return str(line.get("said_at") or line.get("at") or "")


def analyse(lines: Iterable[dict[str, Any]]) -> Analysis:
    """Analyse a whole journal."""
    analysis = Analysis()
    for line in lines:
        analysis.apply(line)
    return analysis


# ── one function per event type ──


def _moved(into: Analysis, line: dict[str, Any], at: str) -> None:
    into.moves.append({"at": at, "old": line["old"], "new": line["new"], "reason": line.get("reason", "")})
    into.interrupts += line["new"] == "interrupted"


def _opened(into: Analysis, line: dict[str, Any], at: str) -> None:
    if line.get("kind", "agent") != "agent":
        return  # a chore
    into.retries, into.planned_retries = into.retries + into.planned_retries, 0
    into.attempts.append(
        {
            "attempt": line["attempt"],
            "attempt_id": line["attempt_id"],
            "stage": line["stage"],
            "agent": line["agent"],
            "mode": line["mode"],
            "opened_at": at,
            "outcome": None,
            "exit_code": None,
            "lived_s": None,
            "messages": 0,
            "tool_calls": 0,
        }
    )


def _attempt(into: Analysis, number: Any) -> dict[str, Any] | None:
    return next((attempt for attempt in reversed(into.attempts) if attempt["attempt"] == number), None)


def _run_opened(into: Analysis, line: dict[str, Any], at: str) -> None:
    into.runs += 1
    into.planned_retries = 0  # a person's, instead


def _started(into: Analysis, line: dict[str, Any], at: str) -> None:
    into.active.started(line["attempt"], clock.parse_iso(line["started_at"]))


def _ended(into: Analysis, line: dict[str, Any], at: str) -> None:
    into.active.ended(line["attempt"], float(line.get("lived_s") or 0.0))
    attempt = _attempt(into, line["attempt"])
    if attempt is None:
        return
    attempt |= {
        "outcome": line["outcome"],
        "exit_code": line.get("exit_code"),
        "lived_s": round(float(line.get("lived_s") or 0.0), 3),
    }
    for key in [key for key in into.open_calls if key[0] == line["attempt"]]:
        del into.open_calls[key]
    if line["outcome"] not in SUCCESS:
        into.note(at, line["attempt"], str(line["outcome"]), str(line.get("detail") or ""))


def _text(into: Analysis, line: dict[str, Any], at: str) -> None:
    into.messages += 1
    attempt = _attempt(into, line.get("attempt"))
    if attempt is not None:
        attempt["messages"] += 1


def _tool_started(into: Analysis, line: dict[str, Any], at: str) -> None:
    name = str(line["name"])
    call = {
        "at": happened_at(line) or at,
        "attempt": line["attempt"],
        "tool": name,
        "summary": str(line.get("summary") or ""),
        "seconds": None,
        "is_error": None,
        "denied": None,
    }
    into.calls.append(call)
    into.tools.setdefault(name, Tool()).calls += 1
    into.open_calls[line["attempt"], line["tool_id"]] = call
    attempt = _attempt(into, line["attempt"])
    if attempt is not None:
        attempt["tool_calls"] += 1


def _tool_finished(into: Analysis, line: dict[str, Any], at: str) -> None:
    call = into.open_calls.pop((line["attempt"], line["tool_id"]), None)
    if call is None:
        return
    tool = into.tools[call["tool"]]
    call |= {
        "seconds": _seconds(call["at"], happened_at(line) or at),
        "is_error": bool(line.get("is_error")),
        "denied": bool(line.get("denied")),
    }
    tool.seconds += call["seconds"]
    tool.errors += call["is_error"]
    tool.denied += call["denied"]
    if call["is_error"] or call["denied"]:
        kind = "tool_denied" if call["denied"] else "tool_failed"
        into.note(at, line["attempt"], kind, f"{call['tool']} {call['summary']}".strip())


def _agent_error(into: Analysis, line: dict[str, Any], at: str) -> None:
    into.note(at, line.get("attempt"), str(line["kind"]), str(line["message"]))


def _rate_limit(into: Analysis, line: dict[str, Any], at: str) -> None:
    into.note(at, line.get("attempt"), "rate_limit", str(line.get("reason") or ""))


def _gate(into: Analysis, line: dict[str, Any], at: str) -> None:
    if not line["passed"]:
        reasons = "; ".join(str(reason) for reason in line.get("reasons") or ())
        into.note(at, line["attempt"], f"gate_{line.get('failed') or 'failed'}", reasons)


def _retry(into: Analysis, line: dict[str, Any], at: str) -> None:
    into.planned_retries += bool(line.get("burned", True))


def _stage_done(into: Analysis, line: dict[str, Any], at: str) -> None:
    into.stages_done.append(str(line["stage"]))


def _result(into: Analysis, line: dict[str, Any], at: str) -> None:
    turns = line.get("turns")
    if type(turns) is int:
        into.turns = (into.turns or 0) + turns


_HANDLERS: dict[str, Any] = {
    "task.moved": _moved,
    "run.opened": _run_opened,
    "attempt.opened": _opened,
    "attempt.started": _started,
    "attempt.ended": _ended,
    "agent.text": _text,
    "agent.tool_started": _tool_started,
    "agent.tool_finished": _tool_finished,
    "agent.error": _agent_error,
    "agent.rate_limit": _rate_limit,
    "gate.judged": _gate,
    "retry.planned": _retry,
    "stage.done": _stage_done,
    "agent.result": _result,
}
#: A runner may start only to refuse a request, days after the end. That is no part of the span. Nor is the
#: mistake of a person an error of the task; the timeline and `audit` have it.
_NO_WORK = frozenset({"runner.started", "request.refused", "runner.left"})
#: Events that count for the figures of stages.
_OF_STAGES = frozenset({"task.created", "attempt.opened", "attempt.ended", "agent.usage", "stage.done"})


def _seconds(first_at: str, last_at: str) -> float:
    try:
        return round(max(0.0, clock.parse_iso(last_at) - clock.parse_iso(first_at)), 3)
    except ValueError:
        return 0.0
