"""The timeline of a task, from its journal: spans (what lasted) and marks (what happened). Pure.

It reads the lines as JSON objects, as `model.analysis` does: a line of another version must not make the rest
unreadable. Times are those of the journal; a span that has not ended has no end.
"""

from __future__ import annotations

from holdfast import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar

#: States in which a task does nothing by itself, and the span that they are.
_SPAN_OF_STATE = {"waiting": "wait", "interrupted": "interrupt", "queued": "queue"}
#: Why an agent was stopped, if a limit was the reason.
_LIMITS = frozenset({"limit", "budget", "timeout", "deadline", "output"})


class Timeline:
    """The spans and marks of the lines passed to `apply`."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.marks: list[dict[str, Any]] = []
        self._state: dict[str, Any] | None = None
        #: Chores and takeovers, which have numbers too.
        self._others = 0
        #: Open attempts and chores, by number.
        self._open: dict[int, dict[str, Any]] = {}
        #: When the last attempt of a stage ended: its process, as far as that was measured.
        self._ended_at: dict[str, str] = {}
        #: The mark of the resume that an open attempt is.
        self._resumes: dict[int, dict[str, Any]] = {}
        #: How long an attempt was silent when it was judged last.
        self._silent_s: dict[int, Any] = {}
        #: How long the gate of a stage took.
        self._gate_s: dict[str, Any] = {}
        #: The mark of a question without an answer so far.
        self._question: dict[str, Any] | None = None
        #: The takeover that has not ended.
        self._takeover: dict[str, Any] | None = None
        self._has_runner = False
        self._last_at = ""

    def apply(self, line: dict[str, Any]) -> None:
        """Add one line of the journal."""
        at, handle = str(line.get("at") or ""), self._BY_TYPE.get(str(line.get("type")))
        if handle is not None and at:
            try:
                handle(self, line, at)
            except (KeyError, TypeError, ValueError):
                return  # of another version, or damaged
        self._last_at = at or self._last_at

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"spans": self.spans, "marks": self.marks}

    # ── spans ──

    def _created(self, line: dict[str, Any], at: str) -> None:
        self._enter(line.get("status"), at, "")

    def _moved(self, line: dict[str, Any], at: str) -> None:
        reason = line.get("interrupt") or line.get("reason") or ""
        if self._question is not None:
            self._question["answered_s"] = _seconds(self._question["at"], at)
            self._question = None
        self._enter(line["new"], at, reason)
        if line["new"] == "interrupted" and line.get("cause") != "down":
            self._question = self._mark(
                "question", at, detail=reason, approval=line.get("approval"), answered_s=None
            )

    def _reopened(self, line: dict[str, Any], at: str) -> None:
        self._enter("queued" if line.get("is_queued") else "", at, "")
        self._mark("request", at, verb="retry", run=line.get("run"))

    def _enter(self, state: Any, at: str, reason: str) -> None:
        if self._state is not None:
            _end(self._state, at)
            self._state = None
        if (kind := _SPAN_OF_STATE.get(str(state))) is not None:
            self._state = self._span(kind, at, reason=reason)

    def _opened(self, line: dict[str, Any], at: str) -> None:
        kind = line.get("kind") or "agent"
        number, stage = int(line["attempt"]), str(line["stage"])
        what = {"agent": line.get("agent"), "mode": line.get("mode")} if kind == "agent" else {"chore": kind}
        self._others += kind != "agent"
        if kind == "agent":
            what["ordinal"] = number - self._others
        span = self._span("attempt" if kind == "agent" else "chore", at, stage=stage, attempt=number, **what)
        self._open[number] = span
        if kind == "agent" and line.get("mode") in ("resume", "briefing"):
            after = self._ended_at.get(stage)
            # From the end of the process before it. `healed_s` is until the new one exists.
            after_s = _seconds(after, at) if after else None
            self._resumes[number] = self._mark("resume", at, attempt=number, after_s=after_s, healed_s=None)

    def _started(self, line: dict[str, Any], _: str) -> None:
        number, started_at = int(line["attempt"]), line.get("started_at")
        if (span := self._open.get(number)) is None:
            return
        span["started_at"] = started_at
        ended_at = self._ended_at.get(span["stage"])
        if (mark := self._resumes.pop(number, None)) is not None and ended_at and started_at:
            mark["healed_s"] = _seconds(ended_at, started_at)

    def _void(self, line: dict[str, Any], _: str) -> None:
        if (span := self._open.pop(int(line["attempt"]), None)) is not None:
            self.spans.remove(span)

    def _ended(self, line: dict[str, Any], at: str) -> None:
        span = self._open.pop(int(line["attempt"]), None)
        if span is None:
            return
        _end(span, at)
        lived_s, died_at = line.get("lived_s"), at
        span.update(outcome=line.get("outcome"), lived_s=lived_s)
        if span.get("started_at") and lived_s:
            died_at = min(at, clock.iso(clock.parse_iso(span["started_at"]) + float(lived_s)))
        if span["kind"] == "attempt":
            self._ended_at[span["stage"]] = died_at
        elif span.get("chore") == "gate":
            self._gate_s[span["stage"]] = lived_s
        if line.get("outcome") == "crashed":
            # When the process died, and how much later that was known.
            self._mark(
                "crash",
                died_at,
                attempt=span["attempt"],
                detail=line.get("detail") or "",
                noticed_s=_seconds(died_at, str(line.get("noticed_at") or at)),
            )

    # ── marks ──

    def _runner(self, line: dict[str, Any], at: str) -> None:
        if self._has_runner:
            # The one before did not leave: it died, and this one goes on.
            gap_s = _seconds(self._last_at, at) if self._last_at else None
            self._mark("adopt", at, attempts=sorted(self._open), gap_s=gap_s)
        self._has_runner = True

    def _left(self, _line: dict[str, Any], _at: str) -> None:
        self._has_runner = False

    def _stop(self, line: dict[str, Any], at: str) -> None:
        intent, facts = (
            line.get("intent"),
            {"attempt": line.get("attempt"), "detail": line.get("reason") or ""},
        )
        if intent == "hang":
            self._mark("hang", at, **facts, silent_s=self._silent_s.get(int(line["attempt"])))
        elif intent in _LIMITS:
            self._mark("limit", at, limit=intent, **facts)

    def _judged_alive(self, line: dict[str, Any], _at: str) -> None:
        evidence: dict[str, Any] = line.get("evidence") or {}
        self._silent_s[int(line["attempt"])] = evidence.get("silent_s")

    def _rate_limit(self, line: dict[str, Any], at: str) -> None:
        at, until = str(line.get("said_at") or at), line.get("resets_at")
        self._mark("limit", at, attempt=line.get("attempt"), limit="rate", detail="", until=until)

    def _swept(self, line: dict[str, Any], at: str) -> None:
        if line.get("killed"):
            number = line.get("attempt")
            ends = [span["end"] for span in self.spans if span.get("attempt") == number]
            after_s = _seconds(ends[-1], at) if ends and ends[-1] else None
            self._mark("sweep", at, attempt=number, killed=len(line["killed"]), after_s=after_s)

    def _judged(self, line: dict[str, Any], at: str) -> None:
        passed, failed = bool(line["passed"]), line.get("failed") or ""
        # Null for a plain run, whose result is its gate.
        took_s = self._gate_s.pop(str(line.get("stage")), None)
        self._mark("gate", at, stage=line.get("stage"), passed=passed, failed=failed, took_s=took_s)

    def _requested(self, line: dict[str, Any], at: str) -> None:
        refused = line.get("type") == "request.refused"
        self._mark("request", at, verb=line.get("verb"), by=line.get("by"), refused=refused)

    def _taken(self, line: dict[str, Any], at: str) -> None:
        number, by = int(line["attempt"]), str(line.get("by") or "")
        self._others += 1
        self._takeover = self._span(
            "takeover", at, stage=str(line["stage"]), attempt=number, agent=line.get("agent"), by=by
        )
        self._mark("takeover", at, stage=line.get("stage"), by=by, how="began")

    def _given_back(self, line: dict[str, Any], at: str) -> None:
        how, files, by = line.get("how"), line.get("files"), line.get("by")
        span, self._takeover = self._takeover, None
        if span is not None:
            _end(span, at)
            span.update(outcome=how, files=files)
            by = by or span["by"]  # the end of a lost takeover has no sender
        self._mark("takeover", at, stage=span and span["stage"], by=by, how=how, files=files)

    def _span(self, kind: str, at: str, **facts: Any) -> dict[str, Any]:
        span = {"kind": kind, "begin": at, "end": None, "seconds": None, **facts}
        self.spans.append(span)
        return span

    def _mark(self, kind: str, at: str, **facts: Any) -> dict[str, Any]:
        mark = {"kind": kind, "at": at, **facts}
        self.marks.append(mark)
        return mark

    _BY_TYPE: ClassVar[dict[str, Any]] = {
        "task.created": _created,
        "task.moved": _moved,
        "run.opened": _reopened,
        "attempt.opened": _opened,
        "attempt.started": _started,
        "attempt.void": _void,
        "attempt.ended": _ended,
        "runner.started": _runner,
        "runner.left": _left,
        "stop.intended": _stop,
        "watch.verdict": _judged_alive,
        "agent.rate_limit": _rate_limit,
        "attempt.swept": _swept,
        "gate.judged": _judged,
        "request.applied": _requested,
        "request.refused": _requested,
        "takeover.started": _taken,
        "takeover.ended": _given_back,
    }


def of(lines: Iterable[dict[str, Any]]) -> Timeline:
    """The timeline of a journal."""
    timeline = Timeline()
    for line in lines:
        timeline.apply(line)
    return timeline


def _end(span: dict[str, Any], at: str) -> None:
    span.update(end=at, seconds=_seconds(span["begin"], at))


def _seconds(begin: str, end: str) -> float:
    return round(max(0.0, clock.parse_iso(end) - clock.parse_iso(begin)), 3)
