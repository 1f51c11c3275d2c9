"""What happened in a task, from its journal: executions, gates and interrupts. Pure.

It reads the lines as JSON objects, as `model.analysis` does: a line of another version must not make the rest
unreadable. A value that a journal does not have is None.
"""

from __future__ import annotations

from holdfast.model.execution import dirname
from holdfast.model.record import Record
from holdfast.model.usage import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar


class ExecutionEntry(Record):
    """An attempt of an agent, or a chore, as views show it. (A runner has an `Execution`.)"""

    number: int
    #: Its number as shown to users: chores do not count. Null for a chore.
    ordinal: int | None = None
    attempt_id: str | None
    #: Its directory below attempts/.
    name: str
    stage: str
    #: `agent`, or what a chore does: `prepare`, `pre_work`, `gate`, `adopt`.
    kind: str
    agent: str | None
    #: fresh, resume, again or briefing; null for a chore.
    mode: str | None
    session_id: str | None = None
    #: `opened`, `running`, `ended`, or `void`: there was never a process.
    state: str = "opened"
    opened_at: str
    started_at: str | None = None
    #: When its end was noticed.
    ended_at: str | None = None
    pid: int | None = None
    lived_s: float | None = None
    outcome: str | None = None
    detail: str = ""
    exit_code: int | None = None
    exit_signal: int | None = None
    #: Why holdfast stopped it: hang, limit, stop, …
    stopped_for: str | None = None
    messages: int = 0
    tool_calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class CheckEntry(Record):
    """One check of a gate."""

    name: str
    passed: bool
    reasons: tuple[str, ...] = ()


class GateEntry(Record):
    """What a gate concluded about an attempt."""

    stage: str
    attempt: int
    #: The number of the attempt as shown to users.
    ordinal: int | None = None
    at: str
    passed: bool
    #: The first check that failed.
    failed: str = ""
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    #: The start of the output of the commands that failed.
    evidence: str = ""
    decision: str = ""
    findings: dict[str, int] = {}
    changed: int | None = None
    #: From the file with its evidence; empty if a later gate of the stage has replaced that.
    checks: tuple[CheckEntry, ...] = ()
    #: That file, relative to the packet.
    path: str | None = None


class InterruptEntry(Record):
    """A task stopped and asked a person."""

    number: int
    at: str
    question: str
    #: The stage to approve.
    approval: str | None = None
    #: `failure` or `down`; empty for everything else.
    cause: str = ""
    answered_at: str | None = None
    #: Empty if there was no message.
    answer: str = ""
    #: `resumed by ada@host`.
    how: str = ""


class History:
    """The executions, gates and interrupts in the lines passed to `apply`."""

    def __init__(self) -> None:
        self.gates: list[GateEntry] = []
        self._executions: dict[int, dict[str, Any]] = {}
        self._used: dict[int, _Used] = {}
        #: What the last attempt of a stage had reported of its whole session.
        self._of_session: dict[str, Usage] = {}
        #: Chores and takeovers, which have numbers too.
        self._others = 0
        self._interrupts: list[dict[str, Any]] = []
        self._is_interrupted = False

    def apply(self, line: dict[str, Any]) -> None:
        """Add one line of the journal."""
        handle = self._BY_TYPE.get(str(line.get("type")))
        if handle is not None:
            try:
                handle(self, line)
            except (KeyError, TypeError, ValueError):
                return  # of another version, or damaged

    @property
    def executions(self) -> tuple[ExecutionEntry, ...]:
        """In the order of their numbers."""
        return tuple(
            ExecutionEntry(**facts, **self._used[number].usage.to_json())
            for number, facts in sorted(self._executions.items())
        )

    @property
    def interrupts(self) -> tuple[InterruptEntry, ...]:
        """In order; at most the last one is open."""
        return tuple(
            InterruptEntry(number=number, **facts) for number, facts in enumerate(self._interrupts, start=1)
        )

    # ── one function per event type ──

    def _opened(self, line: dict[str, Any]) -> None:
        number, stage, kind = int(line["attempt"]), str(line["stage"]), str(line.get("kind") or "agent")
        is_agent = kind == "agent"
        self._others += not is_agent
        self._executions[number] = {
            "number": number,
            "ordinal": number - self._others if is_agent else None,
            "attempt_id": line.get("attempt_id"),
            "name": dirname(number, stage, kind),
            "stage": stage,
            "kind": kind,
            "agent": line.get("agent") if is_agent else None,
            "mode": line.get("mode") if is_agent else None,
            "session_id": line.get("session_id"),
            "opened_at": str(line["at"]),
            "state": "opened",
            "messages": 0,
            "tool_calls": 0,
        }
        if line.get("mode") != "resume":
            self._of_session.pop(stage, None)
        self._used[number] = _Used(self._of_session.get(stage, Usage()))

    def _taken_over(self, line: dict[str, Any]) -> None:
        self._others += 1

    def _started(self, line: dict[str, Any]) -> None:
        self._executions[line["attempt"]].update(
            state="running", started_at=line.get("started_at"), pid=line.get("pid")
        )

    def _void(self, line: dict[str, Any]) -> None:
        self._executions[line["attempt"]].update(state="void", detail=str(line.get("reason") or ""))

    def _stop(self, line: dict[str, Any]) -> None:
        self._executions[line["attempt"]]["stopped_for"] = line.get("intent")

    def _ended(self, line: dict[str, Any]) -> None:
        self._executions[line["attempt"]].update(
            state="ended",
            ended_at=line.get("noticed_at") or line.get("at"),
            outcome=line.get("outcome"),
            detail=str(line.get("detail") or ""),
            exit_code=line.get("exit_code"),
            exit_signal=line.get("exit_signal"),
            lived_s=line.get("lived_s"),
        )

    def _session(self, line: dict[str, Any]) -> None:
        self._executions[line["attempt"]]["session_id"] = line["session_id"]

    def _text(self, line: dict[str, Any]) -> None:
        self._executions[line["attempt"]]["messages"] += 1

    def _tool(self, line: dict[str, Any]) -> None:
        self._executions[line["attempt"]]["tool_calls"] += 1

    def _usage(self, line: dict[str, Any]) -> None:
        reported = Usage(**{name: line.get(name) for name in Usage.fields})
        used, stage = self._used[line["attempt"]], self._executions[line["attempt"]]["stage"]
        if line.get("of_session"):
            self._of_session[stage] = reported
        used.add(reported, is_new=bool(line.get("cumulative")), is_of_session=bool(line.get("of_session")))

    def _judged(self, line: dict[str, Any]) -> None:
        self.gates.append(
            GateEntry(
                stage=str(line["stage"]),
                attempt=int(line["attempt"]),
                ordinal=(self._executions.get(line["attempt"]) or {}).get("ordinal"),
                at=str(line["at"]),
                passed=bool(line["passed"]),
                failed=str(line.get("failed") or ""),
                reasons=tuple(line.get("reasons") or ()),
                warnings=tuple(line.get("warnings") or ()),
                evidence=str(line.get("evidence") or ""),
                decision=str(line.get("decision") or ""),
                findings=line.get("findings") or {},
                changed=line.get("changed"),
            )
        )

    def _moved(self, line: dict[str, Any]) -> None:
        if self._is_interrupted:
            self._interrupts[-1].update(
                answered_at=line.get("at"),
                answer=str(line.get("answer") or ""),
                how=str(line.get("reason") or ""),
            )
        self._is_interrupted = line["new"] == "interrupted"
        if self._is_interrupted:
            self._interrupts.append(
                {
                    "at": str(line["at"]),
                    "question": str(line.get("interrupt") or line.get("reason") or ""),
                    "approval": line.get("approval"),
                    "cause": str(line.get("cause") or ""),
                }
            )

    _BY_TYPE: ClassVar[dict[str, Any]] = {
        "attempt.opened": _opened,
        "takeover.started": _taken_over,
        "attempt.started": _started,
        "attempt.void": _void,
        "attempt.ended": _ended,
        "stop.intended": _stop,
        "agent.session": _session,
        "agent.text": _text,
        "agent.tool_started": _tool,
        "agent.usage": _usage,
        "gate.judged": _judged,
        "task.moved": _moved,
    }


class _Used:
    """What one attempt reported."""

    def __init__(self, before: Usage) -> None:
        #: What earlier attempts of its session had reported of that.
        self._before = before
        self._reported, self._is_of_session = Usage(), False

    def add(self, reported: Usage, *, is_new: bool, is_of_session: bool) -> None:
        self._reported = reported if is_new else self._reported.plus(reported)
        self._is_of_session = self._is_of_session or is_of_session

    @property
    def usage(self) -> Usage:
        return self._reported.minus(self._before) if self._is_of_session else self._reported


def of(lines: Iterable[dict[str, Any]]) -> History:
    """The history in a journal."""
    history = History()
    for line in lines:
        history.apply(line)
    return history
