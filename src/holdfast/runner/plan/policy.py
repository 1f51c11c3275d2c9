"""What follows from the end of an attempt: retry, wait, ask or end. Pure."""

from __future__ import annotations

from holdfast import clock
from holdfast.model import outcome as oc
from holdfast.model.decision import Decision, Then
from holdfast.model.spec import Limits
from holdfast.model.status import Cause, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Stop intents that decide, whatever the dying process reports.
_BY_INTENT: dict[str, tuple[Then, Status]] = {
    "stop": (Then.END, Status.KILLED),
    "interrupt": (Then.ASK, Status.INTERRUPTED),
    "deadline": (Then.END, Status.ABANDONED),
    "output": (Then.ASK, Status.INTERRUPTED),
    "budget": (Then.ASK, Status.INTERRUPTED),
    "timeout": (Then.ASK, Status.INTERRUPTED),
    "hang": (Then.RETRY, Status.HUNG),
    "session": (Then.RETRY, Status.CRASHED),
    "input": (Then.ASK, Status.INTERRUPTED),
}
#: The causes of those that are limits.
_LIMIT_CAUSES: dict[str, Cause] = {
    "budget": Cause.BUDGET,
    "timeout": Cause.TIMEOUT,
    "output": Cause.OUTPUT,
}
#: Lost ends tolerated in a row; more count as failures, because an agent that kills its own recorder and
#: runner would be restarted for ever.
LOST_LIMIT = 3


def after_attempt(
    outcome: str,
    detail: str = "",
    *,
    intent: str | None = None,
    intent_reason: str = "",
    cause: str = "",
    lost_in_a_row: int = 0,
) -> Decision:
    """What follows from an attempt that ended with `outcome`; `intent` is set if holdfast stopped it.

    `cause` is that of the intent; `lost_in_a_row` includes this attempt.
    """
    if intent in ("hang", "limit") and outcome in oc.MUST_WAIT:
        return Decision(then=Then.WAIT, status=Status.WAITING, reason=f"{outcome}: {detail}", burns=False)
    if intent in _BY_INTENT:
        then, status = _BY_INTENT[intent]
        return Decision(
            then=then,
            status=status,
            reason=intent_reason or intent,
            cause=cause or _LIMIT_CAUSES.get(intent, ""),
            fresh_session=outcome in oc.NEEDS_FRESH_SESSION,
        )
    if outcome in oc.SUCCESS:
        return Decision(then=Then.COMPLETE, status=Status.COMPLETING, reason=outcome)
    reason = f"{outcome}: {detail}" if detail else outcome
    if outcome in oc.FINAL:
        return Decision(then=Then.END, status=Status.FAILED, reason=detail or outcome, cause=Cause.FAILURE)
    if outcome in oc.NEEDS_PERSON:
        return Decision(then=Then.ASK, status=Status.INTERRUPTED, reason=reason, cause=Cause.FAILURE)
    if outcome in oc.MUST_WAIT:
        return Decision(then=Then.WAIT, status=Status.WAITING, reason=reason, burns=False)
    is_suspect = lost_in_a_row > LOST_LIMIT
    if is_suspect:
        reason += f"; the end of {lost_in_a_row} attempts in a row was lost"
    return Decision(
        then=Then.RETRY,
        status=Status.CRASHED,
        reason=reason,
        cause=Cause.FAILURE,
        burns=is_suspect or outcome not in oc.BLAMELESS,
        fresh_session=outcome in oc.NEEDS_FRESH_SESSION,
    )


def at_limit(decision: Decision, intent: str | None, limits: Limits) -> Decision:
    """At a limit of time or money: ask a person (the decision as it is) or end, as the task says."""
    if limits.on_limit != "end" or intent not in ("budget", "timeout"):
        return decision
    status = Status.TIMEOUT if intent == "timeout" else Status.ABANDONED
    return decision.evolve(then=Then.END, status=status)


def condition(intent: str | None, outcome: str) -> str:
    """The name that `interrupt_off` uses for the reason a person is asked."""
    if intent is not None:
        return intent
    return "budget" if outcome in ("max_turns", "max_budget") else "error"


#: How a task ends at a condition at which it may not ask; `failed` if not listed.
_END_WITHOUT_ASKING = {"budget": Status.ABANDONED, "output": Status.ABANDONED, "timeout": Status.TIMEOUT}


def without_asking(decision: Decision, condition: str, off: Sequence[str]) -> Decision:
    """The decision; if it asks a person about a `condition` that is switched off, the task ends instead.

    An agent that waits for input counts as hung.
    """
    if decision.then is not Then.ASK or condition not in off:
        return decision
    reason = f"{decision.reason} (not asking: interrupt_off has {condition})"
    if condition == "input":
        return decision.evolve(then=Then.RETRY, status=Status.HUNG, reason=reason)
    return decision.evolve(
        then=Then.END, status=_END_WITHOUT_ASKING.get(condition, Status.FAILED), reason=reason
    )


def available(order: Sequence[str], unavailable: dict[str, str | None], now: float) -> str | None:
    """The first agent of `order` that is not unavailable; None if all are."""
    for agent in order:
        if agent not in unavailable:
            return agent
        until = unavailable[agent]
        if until is not None and clock.parse_iso(until) <= now:
            return agent
    return None


def backoff_s(consecutive: int, limits: Limits, left_s: float | None, *, at_once: bool = True) -> float:
    """The pause before the next attempt after `consecutive` failures in a row: none after the first, then
    base, 2·base, 4·base …, capped by the maximum and by the time left until the deadline.

    `at_once` is False if an immediate retry cannot help (the program could not be executed).
    """
    doublings = consecutive - 2 if at_once else consecutive - 1
    if doublings < 0:
        return 0.0
    delay_s = min(limits.base_interval_s * 2.0 ** min(doublings, 30), limits.max_interval_s)
    return delay_s if left_s is None else min(delay_s, max(left_s, 0.0))


def wait_s(waits: int, announced_s: float | None, *, jitter: float) -> float:
    """How long to wait for a limit of the service: until the announced time, or 1, 2, 4 … 60 minutes.

    `jitter` (0 to 1) spreads the tasks that wait for the same limit over the next seconds.
    """
    if announced_s is not None and announced_s > 0:
        return announced_s + 1.0 + 4.0 * jitter
    return oc.unannounced_wait_s(waits) * (1.0 + 0.1 * jitter)


def has_retry_left(total: int, limits: Limits) -> bool:
    """Whether the total cap, which never resets, allows another retry."""
    return total < limits.max_retries


def was_healthy(lived_s: float, limits: Limits, *, made_progress: bool) -> bool:
    """Whether an attempt worked long enough to reset the count of failures in a row."""
    return made_progress and lived_s >= limits.base_interval_s
