"""Candidates that do not go on, because another one has passed its gate. Pure."""

from __future__ import annotations

from holdfast.model import contest
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.decision import Decision, Then
from holdfast.model.task import Task
from holdfast.runner.plan import policy
from holdfast.runner.plan.facts import Facts

#: Stops that are no failure of the candidate.
_OF_TASK = frozenset({"stop", "interrupt", "deadline"})
_REASON_CHARS = 300


def events(
    task: Task, facts: Facts, decided: list[tuple[Attempt, Decision]]
) -> tuple[ev.CandidateEliminated, ...]:
    """The candidates among these failed attempts that are eliminated.

    One that was merely cut short (a crash, a hang) is resumed, as long as the task has retries.
    """
    if not contest.survivors(task):
        return ()
    found: list[ev.CandidateEliminated] = []
    for attempt, decision in decided:
        if not task.has_own_worktree(attempt.stage) or attempt.intent_name in _OF_TASK:
            continue
        if _is_refused(task, attempt) or (facts.interrupt_file is None and _is_final(task, decision)):
            found.append(_eliminated(task, attempt, decision))
    return tuple(found)


def _is_refused(task: Task, attempt: Attempt) -> bool:
    judged = task.stage_state(attempt.stage).gate_result
    return judged is not None and not judged.passed


def _is_final(task: Task, decision: Decision) -> bool:
    if decision.then is not Then.RETRY:
        return True
    return decision.burns and not policy.has_retry_left(task.total_retries, task.spec.limits)


def _eliminated(task: Task, attempt: Attempt, decision: Decision) -> ev.CandidateEliminated:
    spec, judged = task.stage_spec(attempt.stage), task.stage_state(attempt.stage).gate_result
    return ev.CandidateEliminated(
        stage=attempt.stage,
        candidate=spec.candidate if spec is not None else 0,
        attempt=attempt.number,
        reasons=judged.reasons if judged is not None and not judged.passed else (decision.reason,),
    )


def explained(task: Task, decided: list[tuple[Attempt, Decision]], decision: Decision) -> Decision:
    """The decision after no candidate passed, with the reason of each."""
    if decision.then not in (Then.END, Then.ASK) or len(decided) < 2:
        return decision
    if not all(task.has_own_worktree(attempt.stage) for attempt, _ in decided):
        return decision
    if any(attempt.intent_name in _OF_TASK for attempt, _ in decided):
        return decision
    each = "; ".join(f"{attempt.stage}: {its.reason[:_REASON_CHARS]}" for attempt, its in decided)
    return decision.evolve(reason=f"no candidate passed: {each}")
