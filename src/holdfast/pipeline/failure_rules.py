"""What follows from a triaged failure of a pipeline's stage. Pure.

Two limits apply together, and the smaller one wins: each failure class has its own (`RULES`), and the
packet's retry_budget counts per signature (docs/reference/triage.md).
"""

from __future__ import annotations

from holdfast.model.decision import Decision, Then
from holdfast.model.outcome import MUST_WAIT
from holdfast.model.record import Record
from holdfast.model.status import Status
from holdfast.pipeline import budget
from holdfast.pipeline.triage import FailureClass, Triage


class Rule(Record):
    """How one failure class is treated."""

    then: Then
    #: How often `then` is tried; null: as often as retry_budget allows.
    tries: int | None = 0
    pause_s: float = 0.0
    #: Compose the prompt again, with the aggressive digest, in a new session.
    with_digest: bool = False
    #: What follows when no try is left. ASK becomes END if the task ends at its limits.
    at_last: Then = Then.END


_C = FailureClass
RULES: dict[FailureClass, Rule] = {
    _C.TRANSIENT: Rule(then=Then.RETRY, tries=None, pause_s=5.0),
    _C.PROMPT_TOO_LARGE: Rule(then=Then.RETRY, tries=1, with_digest=True),
    _C.AUTH: Rule(then=Then.ASK, at_last=Then.ASK),
    _C.TOOLING: Rule(then=Then.END),
    _C.SCOPE_VIOLATION: Rule(then=Then.END),
    _C.CONTRACT_VIOLATION: Rule(then=Then.END),
    _C.BUDGET: Rule(then=Then.ASK, at_last=Then.ASK),
    _C.TIMEOUT: Rule(then=Then.RETRY, tries=None, at_last=Then.ASK),
    _C.UNKNOWN: Rule(then=Then.RETRY, tries=1, pause_s=5.0),
}
#: Classes that are limits: `on_limit: end` turns their ASK into END.
_LIMITS = frozenset({_C.BUDGET, _C.TIMEOUT})
#: States through which a task may pass on its way to a retry.
_PASSED_THROUGH = (Status.CRASHED, Status.HUNG, Status.TIMEOUT)


class Counts(Record):
    """How often this failed before, and what is allowed."""

    #: Failures with the same signature before this one.
    seen: int
    retry_budget: int
    #: Paid calls that may still be made; null: any number. A retry needs one.
    calls_left: int | None = None
    #: What the task does at a limit: `ask` a person, or `end`.
    on_limit: str = "ask"
    #: How often the gate that refused it sent the work back before.
    repairs: int = 0


def after_failure(decision: Decision, failure: Triage, counts: Counts) -> Decision:
    """`decision`, made without knowing the packet's budgets, as its class and budgets allow."""
    kind = FailureClass(failure.failure_class)
    rule = RULES[kind]
    if failure.outcome in MUST_WAIT:
        return _retry_or_no_call_left(decision, counts, decision)
    tries = counts.retry_budget if rule.tries is None else min(rule.tries, counts.retry_budget)
    is_timeout = kind is _C.TIMEOUT
    if rule.then is Then.RETRY and counts.seen < tries:
        status = Status.TIMEOUT if is_timeout else decision.status
        retry = decision.evolve(
            then=Then.RETRY,
            status=status if status in _PASSED_THROUGH else Status.CRASHED,
            reason=f"{decision.reason} ({kind}, retry {counts.seen + 1} of {tries} for this signature)",
            pause_s=rule.pause_s,
            fresh_session=decision.fresh_session or rule.with_digest,
        )
        return _retry_or_no_call_left(retry, counts, decision)
    then = _at_limit(rule.at_last, counts) if kind in _LIMITS else rule.at_last
    return _stopped(decision, then, _why_no_retry(kind, rule, tries, counts), is_timeout=is_timeout)


def _retry_or_no_call_left(retry: Decision, counts: Counts, decision: Decision) -> Decision:
    if budget.has_call_left(counts.calls_left):
        return retry
    reason = "its paid calls are used up (budgets.paid_call_budget)"
    return _stopped(decision, _at_limit(Then.ASK, counts), reason, is_timeout=False)


def _stopped(decision: Decision, then: Then, reason: str, *, is_timeout: bool) -> Decision:
    end = Status.TIMEOUT if is_timeout else Status.FAILED
    status = Status.INTERRUPTED if then is Then.ASK else end
    return decision.evolve(then=then, status=status, reason=f"{decision.reason} ({reason})")


def _at_limit(then: Then, counts: Counts) -> Then:
    return Then.END if counts.on_limit == "end" else then


def _why_no_retry(kind: FailureClass, rule: Rule, tries: int, counts: Counts) -> str:
    if rule.then is not Then.RETRY and counts.repairs:
        return str(kind)  # it was tried again: the reason names the repairs
    if rule.then is not Then.RETRY:
        return f"{kind}: no automatic retry"
    if not tries:
        return f"{kind}: no retry is allowed (budgets.retry_budget is 0)"
    times = "once" if tries == 1 else f"{tries} times"
    return f"{kind}: retried {times} for this signature, with the same failure"
