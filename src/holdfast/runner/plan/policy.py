"""What follows from the end of an attempt. Pure: facts in, a decision out; nothing is written and nobody sleeps."""

from __future__ import annotations

from enum import StrEnum

from holdfast import clock
from holdfast.model import outcome as oc
from holdfast.model.record import Record
from holdfast.model.spec import Limits
from holdfast.model.status import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Then(StrEnum):
    """What to do next."""

    COMPLETE = "complete"
    RETRY = "retry"
    WAIT = "wait"
    INTERRUPT = "interrupt"
    END = "end"


class Decision(Record):
    """What follows."""

    then: Then
    #: The state that the task passes through (crashed, hung), or its end.
    status: Status
    reason: str
    #: Whether a retry is burned.
    burns: bool = True
    fresh_session: bool = False
    #: The least pause before a retry.
    pause_s: float = 0.0


#: Intents that end or park the task whatever the dying process reports.
_BY_INTENT: dict[str, tuple[Then, Status]] = {
    "stop": (Then.END, Status.KILLED),
    "interrupt": (Then.INTERRUPT, Status.INTERRUPTED),
    "deadline": (Then.END, Status.ABANDONED),
    "output": (Then.INTERRUPT, Status.INTERRUPTED),
    "budget": (Then.INTERRUPT, Status.INTERRUPTED),
    "timeout": (Then.INTERRUPT, Status.INTERRUPTED),
    "hang": (Then.RETRY, Status.HUNG),
    "session": (Then.RETRY, Status.CRASHED),
    "input": (Then.INTERRUPT, Status.INTERRUPTED),
}


def after_attempt(
    kind: str, detail: str = "", *, intent: str | None = None, intent_reason: str = ""
) -> Decision:
    """The decision on an attempt that ended with outcome `kind`, stopped by us for `intent` or not."""
    if intent in ("hang", "limit") and kind in oc.MUST_WAIT:
        return Decision(then=Then.WAIT, status=Status.WAITING, reason=f"{kind}: {detail}", burns=False)
    if intent in _BY_INTENT:
        then, status = _BY_INTENT[intent]
        fresh = kind in oc.NEEDS_FRESH_SESSION
        return Decision(then=then, status=status, reason=intent_reason or intent, fresh_session=fresh)
    if kind in oc.SUCCESS:
        return Decision(then=Then.COMPLETE, status=Status.COMPLETING, reason=kind)
    reason = f"{kind}: {detail}" if detail else kind
    if kind in oc.FINAL:
        return Decision(then=Then.END, status=Status.FAILED, reason=detail or kind)
    if kind in oc.NEEDS_PERSON:
        return Decision(then=Then.INTERRUPT, status=Status.INTERRUPTED, reason=reason)
    if kind in oc.MUST_WAIT:
        return Decision(then=Then.WAIT, status=Status.WAITING, reason=reason, burns=False)
    return Decision(
        then=Then.RETRY,
        status=Status.CRASHED,
        reason=reason,
        burns=kind not in oc.BLAMELESS,
        fresh_session=kind in oc.NEEDS_FRESH_SESSION,
    )


#: What is followed when the attempts of one wave ended in several ways: the gravest.
_GRAVITY = (Then.COMPLETE, Then.RETRY, Then.WAIT, Then.INTERRUPT, Then.END)


def gravity(decision: Decision) -> int:
    """How much a decision outweighs others."""
    return _GRAVITY.index(decision.then)


def at_limit(decision: Decision, intent: str | None, limits: Limits) -> Decision:
    """What the task wants at a limit of time or money: to ask, as decided, or to end."""
    if limits.on_limit != "end" or intent not in ("budget", "timeout"):
        return decision
    status = Status.TIMEOUT if intent == "timeout" else Status.ABANDONED
    return decision.evolve(then=Then.END, status=status)


def condition(intent: str | None, outcome: str) -> str:
    """What `interrupt_off` calls the reason for which a person is asked."""
    if intent is not None:
        return intent
    return "budget" if outcome in ("max_turns", "max_budget") else "error"


#: Condition → how a task ends that may not ask; `failed` where it is not listed.
_UNASKED = {"budget": Status.ABANDONED, "output": Status.ABANDONED, "timeout": Status.TIMEOUT}


def unasked(decision: Decision, why: str, off: Sequence[str]) -> Decision:
    """The decision of a task that asks nobody at the condition `why`: it ends. Who waits for input is as good as hung."""
    if decision.then is not Then.INTERRUPT or why not in off:
        return decision
    reason = f"{decision.reason} (nobody is asked: interrupt_off has {why})"
    if why == "input":
        return decision.evolve(then=Then.RETRY, status=Status.HUNG, reason=reason)
    return decision.evolve(then=Then.END, status=_UNASKED.get(why, Status.FAILED), reason=reason)


def available(order: Sequence[str], unavailable: dict[str, str | None], now: float) -> str | None:
    """The first agent of the order that is not known to be out; None when all are."""
    for agent in order:
        if agent not in unavailable:
            return agent
        until = unavailable[agent]
        if until is not None and clock.parse_iso(until) <= now:
            return agent
    return None


def backoff_s(consecutive: int, limits: Limits, left_s: float | None, *, at_once: bool = True) -> float:
    """The pause before the next attempt after `consecutive` failures in a row: none after the first, then
    base, 2·base, 4·base …, capped by the maximum and by what is left of the deadline.

    `at_once` is False where trying again at once cannot help (the program could not even be executed).
    """
    doublings = consecutive - 2 if at_once else consecutive - 1
    if doublings < 0:
        return 0.0
    delay_s = min(limits.base_interval_s * 2.0 ** min(doublings, 30), limits.max_interval_s)
    return delay_s if left_s is None else min(delay_s, max(left_s, 0.0))


def wait_s(waits: int, announced_s: float | None, *, jitter: float) -> float:
    """How long to wait for a limit to be lifted: until the announced time, or 1, 2, 4 … minutes, an hour at most.

    `jitter` (0 to 1) spreads those who wait for the same limit over the next few seconds.
    """
    if announced_s is not None and announced_s > 0:
        return announced_s + 1.0 + 4.0 * jitter
    return min(60.0 * 2.0 ** min(max(waits, 1) - 1, 10), 3600.0) * (1.0 + 0.1 * jitter)


def has_retry_left(total: int, limits: Limits) -> bool:
    """Whether the cap that never resets allows another retry."""
    return total < limits.max_retries


def was_healthy(lived_s: float, limits: Limits, *, made_progress: bool) -> bool:
    """Whether an attempt went well for long enough to forget the failures before it."""
    return made_progress and lived_s >= limits.base_interval_s
