"""What follows from a failure of a stage. Pure: a triage in, a decision out; the runner acts on it.

Two limits hold together: each class has its own (`RULES`), and the packet's retry_budget counts for each signature
(docs/reference/triage.md). The smaller one wins.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.outcome import MUST_WAIT
from holdfast.model.record import Record
from holdfast.pipeline import budget
from holdfast.pipeline.triage import FailureClass, Triage


class Follow(StrEnum):
    """What to do next."""

    RETRY = "retry"
    #: Compose the prompt anew, with the aggressive digest, then try again.
    RETRY_WITH_DIGEST = "retry_with_digest"
    #: Until the service's limit is lifted; no retry is burned.
    WAIT = "wait"
    #: A person.
    ASK = "ask"
    STOP = "stop"


class Next(Record):
    """What follows from a failure."""

    then: Follow
    pause_s: float = 0.0
    reason: str
    #: The state in which the task ends, or from which it asks: `failed` or `timeout`.
    status: str = "failed"
    #: The class that decided: `budget` where a budget forbids a try that the failure itself would allow.
    failure_class: str = ""


class Rule(Record):
    """How one class is treated."""

    #: What is tried first, and how often at most; null: as often as retry_budget allows.
    then: Follow
    tries: int | None = 0
    pause_s: float = 0.0
    #: What follows when nothing is left to try. `ask` becomes `stop` where the task ends at its limits.
    at_last: Follow = Follow.STOP


_C, _F = FailureClass, Follow
RULES: dict[FailureClass, Rule] = {
    _C.TRANSIENT: Rule(then=_F.RETRY, tries=None, pause_s=5.0),
    _C.PROMPT_TOO_LARGE: Rule(then=_F.RETRY_WITH_DIGEST, tries=1),
    _C.AUTH: Rule(then=_F.ASK, at_last=_F.ASK),
    _C.TOOLING: Rule(then=_F.STOP),
    _C.SCOPE_VIOLATION: Rule(then=_F.STOP),
    _C.CONTRACT_VIOLATION: Rule(then=_F.STOP),
    _C.BUDGET: Rule(then=_F.ASK, at_last=_F.ASK),
    _C.TIMEOUT: Rule(then=_F.RETRY, tries=None, at_last=_F.ASK),
    _C.UNKNOWN: Rule(then=_F.RETRY, tries=1, pause_s=5.0),
}
#: Classes that are limits: `on_limit: end` turns their `ask` into `stop`.
_LIMITS = frozenset({_C.BUDGET, _C.TIMEOUT})


def decide(
    found: Triage,
    seen: int,
    retry_budget: int,
    *,
    paid_left: int | None,
    on_limit: str = "ask",
) -> Next:
    """What follows from `found`, of whose signature there were `seen` failures before.

    `paid_left` is how many paid calls may still be made (None: any number); a retry needs one. `on_limit` is the task's:
    `ask` a person, or `end`.
    """
    kind = FailureClass(found.failure_class)
    rule = RULES[kind]
    if found.outcome in MUST_WAIT:
        if not budget.has_call_left(paid_left):
            return _no_call_left(on_limit)
        return Next(then=Follow.WAIT, reason=f"{found.outcome}: it waits", failure_class=kind)
    allowed = retry_budget if rule.tries is None else min(rule.tries, retry_budget)
    if rule.then in (Follow.RETRY, Follow.RETRY_WITH_DIGEST) and seen < allowed:
        if not budget.has_call_left(paid_left):
            return _no_call_left(on_limit)
        return Next(
            then=rule.then,
            pause_s=rule.pause_s,
            reason=f"{kind}, retry {seen + 1} of {allowed} for this signature",
            failure_class=kind,
        )
    return Next(
        then=_at_limit(rule.at_last, on_limit) if kind in _LIMITS else rule.at_last,
        reason=_why_not(kind, rule, allowed),
        status="timeout" if kind is FailureClass.TIMEOUT else "failed",
        failure_class=kind,
    )


def _no_call_left(on_limit: str) -> Next:
    return Next(
        then=_at_limit(Follow.ASK, on_limit),
        reason="its paid calls are used up (budgets.paid_call_budget)",
        failure_class=FailureClass.BUDGET,
    )


def _at_limit(follow: Follow, on_limit: str) -> Follow:
    return Follow.STOP if on_limit == "end" else follow


def _why_not(kind: FailureClass, rule: Rule, allowed: int) -> str:
    if rule.then not in (Follow.RETRY, Follow.RETRY_WITH_DIGEST):
        return f"{kind}: trying again cannot help"
    if not allowed:
        return f"{kind}: no retry is allowed (budgets.retry_budget is 0)"
    times = "once" if allowed == 1 else f"{allowed} times"
    return f"{kind}: tried again {times} for this signature, and it failed the same way"
