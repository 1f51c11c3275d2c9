"""The attempts succeeded: let their gates judge the work, then continue with what is next. Pure."""

from __future__ import annotations

from holdfast.model import contest, permissions
from holdfast.model.acceptance import CHECK
from holdfast.model.attempt import Attempt
from holdfast.model.decision import Decision, Then
from holdfast.model.spec import StageSpec
from holdfast.model.status import Cause, Status
from holdfast.model.task import Task
from holdfast.runner.plan import ended, policy, repair
from holdfast.runner.plan.facts import Facts, Now
from holdfast.runner.plan.moves import ask, move
from holdfast.runner.plan.start import has_workspace, open_chore, wait_for_process
from holdfast.runner.plan.step import (
    Journal,
    MarkStage,
    PassPlainGate,
    PostNotice,
    ReleaseWorkspace,
    Step,
    TriageFailure,
)

#: How many reasons a one-line message names.
_NAMED_REASONS = 3


def plan_completing(task: Task, facts: Facts, now: Now) -> Step:
    """The next step of a task that is completing."""
    if task.repairing is not None:  # the rest of a torn record
        return Journal(events=(repair.move_on(task, task.repairing),))
    # Again here: this runner may be the successor of one that was killed before it could.
    step = ended.dismiss_recorders(task.current, facts)
    if step is not None:
        return step
    failed: list[tuple[Attempt, Decision]] = []
    for attempt in task.current:
        if task.is_over(attempt.stage):
            continue
        step = _judge(task, attempt, facts, now)
        if step is not None:
            return step
        decision = _after_failure(task, attempt, facts)
        if not isinstance(decision, Decision):
            return decision
        failed.append((attempt, decision))
    if facts.remembered.workspace.is_held:
        return ReleaseWorkspace()
    if failed:
        return ended.follow_failures(task, facts, failed, now)
    step = _adopt_only(task, facts, now)
    if step is not None:
        return step
    if task.awaits_ci:
        from holdfast.runner.plan import ci  # few tasks have it

        return ci.plan_ci(task, facts, now)
    if task.stage is None:
        return move(task, Status.COMPLETED, _end_reason(task))
    if facts.interrupt_file is not None:
        return ask(task, facts, facts.interrupt_file)
    return move(task, Status.SPAWNING, f"next is {task.stage}")


def _judge(task: Task, attempt: Attempt, facts: Facts, now: Now) -> Step | None:
    """Let the gate judge a successful attempt. None if the attempt, or its gate, failed."""
    if not attempt.has_succeeded:
        return None
    quality = task.spec.quality
    if task.spec.pipeline is None and not (quality is not None and quality.looks_after):
        return PassPlainGate(number=attempt.number)
    result, stage = task.stage_state(attempt.stage).gate_result, task.stage_spec(attempt.stage)
    assert stage is not None
    if result is None:
        step = wait_for_process(facts, now) or has_workspace(task, stage, facts, now)
        return step or open_chore(task, stage, "gate", facts, judged=attempt.number)
    if not result.passed:
        return None
    if stage.contest and not stage.candidate and task.chosen is None:
        return _adopt(task, stage, facts, now)
    return MarkStage(number=attempt.number)


def _adopt_only(task: Task, facts: Facts, now: Now) -> Step | None:
    """Only one candidate passed its gate: it is chosen without a judge."""
    judge = next((stage for stage in task.due if stage.contest and not stage.candidate), None)
    if judge is None or task.chosen is not None or len(contest.survivors(task)) != 1:
        return None
    return _adopt(task, judge, facts, now)


def _adopt(task: Task, judge: StageSpec, facts: Facts, now: Now) -> Step:
    """Put the tree of the chosen candidate into the task's worktree."""
    if contest.choice(task) is None:
        # Its gate compared the number with the survivors, so this is not the judge's mistake.
        return ask(task, facts, f"{judge.name} chose a candidate that did not pass its gate")
    return wait_for_process(facts, now) or open_chore(task, judge, "adopt", facts)


def _after_failure(task: Task, attempt: Attempt, facts: Facts) -> Decision | TriageFailure | PostNotice:
    if not attempt.has_succeeded:
        return ended.decide(task, attempt, facts)
    if task.spec.pipeline is None:
        decision = _after_checks(task, attempt, facts)
    else:
        from holdfast.runner.plan import failures

        decision = failures.after_gate(task, attempt, facts)
    if not isinstance(decision, Decision):
        return decision
    return policy.without_asking(decision, "quality", task.spec.interrupt_off)


def _after_checks(task: Task, attempt: Attempt, facts: Facts) -> Decision | PostNotice:
    """The checks of a plain run failed.

    If they are the repository's, ask a person. What acceptance commands refuse is repaired or has failed, as
    in a pipeline. When the task goes on, the agent continues in its session and is given the reasons.
    """
    result = task.stage_state(attempt.stage).gate_result
    assert result is not None
    gate = "acceptance" if result.failed == CHECK else "quality gate"
    what = (
        "could not run" if result.failed == "gate_broken" else f"failed{repair.so_far(task, attempt.stage)}"
    )
    reason = f"{gate} {what}: {'; '.join(result.reasons[:_NAMED_REASONS])}"
    if attempt.number not in facts.remembered.refusals_announced:
        return PostNotice(event="quality_gate", reason=reason, attempt=attempt.number)
    if repair.is_allowed(task, result):
        return Decision(then=Then.REPAIR, status=Status.SPAWNING, reason=reason, burns=False)
    if result.cannot_start:
        return repair.ask_for_setup(task, reason)
    if result.failed == CHECK:
        return Decision(then=Then.END, status=Status.FAILED, reason=reason, cause=Cause.FAILURE)
    return Decision(then=Then.ASK, status=Status.INTERRUPTED, reason=reason, cause=Cause.CHECKS)


def _end_reason(task: Task) -> str:
    """What to know about a completed task; how its last attempt ended if there is nothing."""
    over = f"over budget: {task.over_budget}" if task.over_budget else ""
    return "; ".join(filter(None, (permissions.reason(task), over))) or task.reason
