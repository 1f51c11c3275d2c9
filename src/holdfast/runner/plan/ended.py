"""After the current attempts ended: clean up, decide, and do what follows. Pure.

Parallel attempts are decided together. Where some succeeded and some did not, the gates of the successful
ones run first (`completing`), and what the others need comes after.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.decision import Decision, Then, severity
from holdfast.model.execution import Execution
from holdfast.model.status import Cause, Status
from holdfast.model.task import Task
from holdfast.runner.plan import policy, repair, retry
from holdfast.runner.plan.facts import Facts, Now
from holdfast.runner.plan.moves import ask, move, moved_event
from holdfast.runner.plan.step import (
    CheckLeftovers,
    DismissRecorders,
    Journal,
    Step,
    Sweep,
    TriageFailure,
    Watch,
    WriteFiles,
)

#: Intents after which nothing more is done for the task, whatever else succeeded.
_FULL_STOP = frozenset({"stop", "deadline"})


def plan_ended(task: Task, facts: Facts, now: Now) -> Step:
    """The next step once no current attempt is open."""
    decided: list[tuple[Attempt, Decision]] = []
    for attempt in task.current:
        if attempt.stage in task.eliminated and attempt.intent_name not in _FULL_STOP:
            continue
        decision = decide(task, attempt, facts)
        if isinstance(decision, TriageFailure):
            return decision
        decided.append((attempt, decision))
    for attempt, decision in decided:
        step = _clean_up(task, attempt, facts, now, is_good=decision.then is Then.COMPLETE)
        if step is not None:
            return step
        if attempt.number not in facts.remembered.files_written:
            return WriteFiles(number=attempt.number)
    if not decided:
        return move(task, Status.COMPLETING, "the other candidates are eliminated")
    good = [attempt for attempt, decision in decided if decision.then is Then.COMPLETE]
    is_full_stop = any(attempt.intent_name in _FULL_STOP for attempt in task.current)
    if good and not is_full_stop:
        is_all = len(good) == len(task.current)
        ended = good[-1].ended
        some = f"{len(good)} of {len(task.current)} parallel stages succeeded"
        return move(task, Status.COMPLETING, ended.outcome if ended is not None and is_all else some)
    # The session's lock must be free for the next attempt, whatever lives on below the recorder.
    step = dismiss_recorders(task.current, facts)
    if step is not None:
        return step
    return follow_failures(
        task, facts, [pair for pair in decided if pair[0] not in good or is_full_stop], now
    )


def dismiss_recorders(attempts: list[Attempt], facts: Facts) -> Step | None:
    """Let the recorders of ended attempts leave, once in a runner's life."""
    numbers = tuple(
        attempt.number for attempt in attempts if attempt.number not in facts.remembered.recorders_dismissed
    )
    return DismissRecorders(numbers=numbers) if numbers else None


# ── clean up ──


def _clean_up(task: Task, attempt: Attempt, facts: Facts, now: Now, *, is_good: bool) -> Step | None:
    """Deal with what an attempt left running."""
    if not is_good:
        return sweep(attempt, facts, now)
    if attempt.leftovers is not None or task.spec.leftovers == "keep":
        return None
    if task.spec.leftovers == "kill":
        return sweep(attempt, facts, now)
    is_checked = attempt.number in facts.remembered.leftovers_checked
    return None if is_checked else CheckLeftovers(number=attempt.number)


def sweep(execution: Execution, facts: Facts, now: Now) -> Step | None:
    """Kill what is left of an execution; None once that is recorded."""
    if execution.swept is not None:
        return None
    due_mono = facts.remembered.sweep_due_mono.get(execution.number, 0.0)
    return Sweep(number=execution.number) if now.mono >= due_mono else Watch(wait_s=due_mono - now.mono)


# ── decide ──


def decide(task: Task, attempt: Attempt, facts: Facts) -> Decision | TriageFailure:
    """What follows from the end of one attempt. In a pipeline a failure is triaged first."""
    ended, spec = attempt.ended, task.spec
    assert ended is not None
    decision = policy.after_attempt(
        ended.outcome,
        ended.detail,
        intent=attempt.intent_name,
        intent_reason=attempt.intent.reason if attempt.intent is not None else "",
        cause=attempt.intent.cause if attempt.intent is not None else "",
        lost_in_a_row=task.stage_state(attempt.stage).lost_in_a_row,
    )
    decision = policy.at_limit(decision, attempt.intent_name, spec.limits)
    decision = _with_advice(task, attempt, decision, facts)
    if facts.interrupt_file is not None and decision.then in (Then.COMPLETE, Then.RETRY):
        # It asked for a person and left: its work is kept, and nothing continues without an answer.
        return Decision(then=Then.ASK, status=Status.INTERRUPTED, reason=facts.interrupt_file)
    if spec.pipeline is not None:
        from holdfast.runner.plan import failures

        judged = failures.after_attempt(task, attempt, decision)
        if isinstance(judged, TriageFailure):
            return judged
        decision = judged
    condition = policy.condition(attempt.intent_name, ended.outcome)
    return policy.without_asking(decision, condition, spec.interrupt_off)


def _with_advice(task: Task, attempt: Attempt, decision: Decision, facts: Facts) -> Decision:
    """What only the task's history or the adapter knows."""
    assert attempt.ended is not None
    if attempt.ended.outcome == "context_too_long" and task.stage_state(attempt.stage).overflows > 1:
        reason = f"{decision.reason}; a fresh session ran out of room too: split the task"
        return Decision(then=Then.ASK, status=Status.INTERRUPTED, reason=reason, cause=Cause.FAILURE)
    login = facts.logins.get(attempt.agent)
    if attempt.ended.outcome in ("auth", "no_auth") and login:
        resume = f"'holdfast resume {task.spec.task_id}'"
        return decision.evolve(reason=f"{decision.reason}; log in with '{login}', then {resume}")
    return decision


# ── follow ──


def follow_failures(task: Task, facts: Facts, decided: list[tuple[Attempt, Decision]], now: Now) -> Step:
    """Do what the most severe decision asks for."""
    attempt, decision = max(decided, key=lambda pair: severity(pair[1]))
    if any(task.has_own_worktree(each.stage) for each, _ in decided):
        from holdfast.runner.plan import elimination  # few tasks have candidates

        eliminated = elimination.events(task, facts, decided)
        if eliminated:
            return Journal(events=eliminated)
        decision = elimination.explained(task, decided, decision)
    others = [pair for pair in decided if pair[0] is not attempt]
    handover = _hand_over(task, attempt, decision, now)
    # Whichever decision is followed, a session that cannot continue is not resumed later.
    before = () if decision.then is Then.RETRY else retry.fresh_sessions(task, others)
    if handover is not None:
        return Journal(events=(*before, *handover))
    assert attempt.ended is not None
    match decision.then:
        case Then.RETRY if attempt.swept is not None and attempt.swept.unkillable:
            question = f"the last attempt left processes that cannot be killed: {attempt.swept.proof}"
            return ask(task, facts, question, reason=decision.reason, cause=decision.cause)
        case Then.RETRY:
            events = retry.retry_events(
                task, decision, now, outcome=attempt.ended.outcome, stage=attempt.stage, others=others
            )
            return Journal(events=events)
        case Then.REPAIR:
            refused = [each for each, its in decided if its.then is Then.REPAIR]
            return Journal(events=(*before, *repair.after_gates(task, refused)))
        case Then.WAIT:
            wake_at = _wake_at(task, attempt, facts, now)
            return Journal(
                events=(*before, moved_event(task, Status.WAITING, decision.reason, wake_at=wake_at))
            )
        case Then.ASK:
            return ask(task, facts, decision.reason, cause=decision.cause, before=before)
        case Then.END | Then.COMPLETE:
            return move(task, decision.status, decision.reason, cause=decision.cause, before=before)


def _hand_over(task: Task, attempt: Attempt, decision: Decision, now: Now) -> tuple[ev.Event, ...] | None:
    """Another agent takes over if this one is unavailable and the task names one that is not."""
    state, stage = task.stage_state(attempt.stage), task.stage_spec(attempt.stage)
    if attempt.intent is not None and attempt.intent_name not in ("hang", "limit"):
        return None  # it was stopped for a reason that holds for every agent
    if stage is None or not task.spec.failover or attempt.agent not in state.unavailable:
        return None
    new = policy.available((stage.agent, *task.spec.failover), state.unavailable, now.wall)
    if new is None or new == attempt.agent:
        return None
    reason = f"{attempt.agent}: {decision.reason}"
    return (
        ev.AgentSwitched(stage=attempt.stage, old=attempt.agent, new=new, reason=reason),
        moved_event(task, Status.WAITING, reason, wake_at=clock.iso(now.wall)),
        moved_event(task, Status.SPAWNING, f"{new} takes over", old=Status.WAITING),
    )


def _wake_at(task: Task, attempt: Attempt, facts: Facts, now: Now) -> str:
    """When the service's limit is over, or another agent of the failover list is back."""
    assert attempt.ended is not None
    resets_at = attempt.ended.resets_at
    announced_s = clock.parse_iso(resets_at) - now.wall if resets_at else None
    times = [now.wall + policy.wait_s(task.limit_waits, announced_s, jitter=facts.remembered.jitter)]
    stage, state = task.stage_spec(attempt.stage), task.stage_state(attempt.stage)
    for agent in (stage.agent if stage is not None else attempt.agent, *task.spec.failover):
        until = state.unavailable.get(agent) if agent != attempt.agent else None
        times += [clock.parse_iso(until)] if until is not None else []
    return clock.iso(min(times))
