"""The facts of a summary, taken from the task. Pure."""

from __future__ import annotations

from holdfast.model import concerns, fan_out, next_action, permissions
from holdfast.model.next_action import NextAction, Suggestion, TaskFacts
from holdfast.model.record import Record
from holdfast.pipeline.triage import BY_OUTCOME, REMEDIES, FailureClass, remedy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model import events as ev
    from holdfast.model.spec import StageSpec
    from holdfast.model.task import Task


class StageLine(Record):
    """The progress of one stage."""

    name: str
    #: pending, running, checking (its gate), done or failed.
    state: str
    agent: str = ""
    role: str = ""
    attempts: int = 0
    #: Exit code and outcome of its last attempt.
    exit_code: int | None = None
    outcome: str = ""
    #: How long its agents and holdfast's steps around them ran.
    worked_s: float = 0.0
    failure_class: str = ""
    signature: str = ""
    output_lines: int | None = None
    #: What its report concludes: `no-go`, `1 blocker, 2 major`.
    conclusion: str = ""


class FailureView(Record):
    """The latest failure."""

    stage: str
    failure_class: str
    signature: str
    agent: str = ""
    outcome: str = ""
    detail: str = ""
    exit_code: int | None = None
    gate_failed: str = ""
    gate_reasons: tuple[str, ...] = ()
    suggested_actions: tuple[str, ...] = ()
    #: Its stderr, or the output of the commands that failed its gate; redacted.
    excerpt: str = ""
    #: The file with the rest of that output, in the packet.
    rest_in: str = ""
    #: The task has recovered from it.
    is_healed: bool = False


class SummaryView(Record):
    """The facts of a summary."""

    task_id: str
    task_name: str
    status: str
    reason: str = ""
    goal: str = ""
    updated_at: str = ""
    created_at: str = ""
    #: Of its current run; a queued task starts long after its creation.
    started_at: str = ""
    finished_at: str | None = None
    active_s: float = 0.0
    #: Which run this is. Attempts, calls, tokens and cost are of all runs, everything else of this one.
    run: int = 1
    attempts: int = 0
    retries: int = 0
    #: Why its work went back to an agent, each time.
    repairs: tuple[str, ...] = ()
    exit_code: int | None = None
    stages: tuple[StageLine, ...] = ()
    action: NextAction
    failure: FailureView | None = None
    paid_calls: int | None = None
    paid_call_budget: int | None = None
    #: Whether it made paid calls; a plain command makes none.
    has_paid: bool = True
    #: Time limit of one call.
    call_limit_s: float | None = None
    deadline_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    #: Calls whose cost is unknown.
    unpriced_calls: int = 0
    #: Takeovers whose tokens are unknown.
    uncounted_takeovers: int = 0
    budget_usd: float | None = None
    budget_tokens: int | None = None
    #: Who took over its session last, how that ended, and how many files changed; null if there was none.
    takeover: tuple[str, str, int] | None = None
    #: Questions that a person answered, with the answers; the last ones.
    answers: tuple[tuple[str, str], ...] = ()
    #: Processes that outlived the agent: the policy and some of them.
    leftovers: str = ""
    #: What reviewers and verifiers object to, one per stage.
    objections: tuple[str, ...] = ()
    #: Warnings of gates, and results of the repository's checks that did not stop the task.
    remarks: tuple[str, ...] = ()
    #: Of a fan-out: a line for each item.
    items: tuple[str, ...] = ()
    #: The end of the task's output.
    tail: str = ""


def view_of(
    task: Task,
    *,
    updated_at: str = "",
    login: str = "",
    tail: str = "",
    has_changes: bool = False,
    has_merged: bool = False,
    output_lines: dict[str, int] | None = None,
) -> SummaryView:
    """The facts of a task.

    The journal does not have these: how to log in to the current agent, the end of the task's log, whether
    the workspace changed, whether items of a fan-out were merged, and the number of output lines of each
    stage.
    """
    spec, attempt, usage = task.spec, task.attempt, task.total_usage
    ended = attempt.ended if attempt is not None else None
    limits, pipeline, before = spec.limits, spec.pipeline, task.spending.usage_before_run
    return SummaryView(
        task_id=spec.task_id,
        task_name=spec.task_name,
        status=task.status,
        reason=task.reason,
        goal=spec.goal if spec.goal != spec.task_name else "",
        updated_at=updated_at,
        created_at=task.created_at,
        started_at=task.run_started_at or "",
        finished_at=task.finished_at,
        active_s=task.active_s,
        run=task.run,
        attempts=task.attempt_count,
        retries=task.begun_retries,
        repairs=tuple("; ".join(repair.reasons) for _, repair in task.repair_log),
        exit_code=ended.exit_code if ended is not None else None,
        stages=tuple(_stage(task, stage, (output_lines or {}).get(stage.name)) for stage in spec.stages),
        action=_action(task, action_facts(task, login=login, has_changes=has_changes, has_merged=has_merged)),
        failure=_failure(task),
        paid_calls=task.paid_calls if pipeline is not None else None,
        paid_call_budget=task.paid_limit,
        has_paid=task.paid_calls > 0,
        call_limit_s=pipeline.max_wallclock_s if pipeline is not None else limits.timeout_s,
        deadline_s=task.deadline_s,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
        unpriced_calls=len(task.spending.unpriced),
        uncounted_takeovers=len(task.spending.uncounted),
        budget_usd=_cumulative(limits.budget_usd, before.cost_usd),
        budget_tokens=_cumulative(limits.budget_tokens, before.input_tokens, before.output_tokens),
        takeover=_takeover(task),
        answers=tuple(
            (each.question, each.answer or f"none, {each.how}") for each in task.answers[-_ANSWERS:]
        ),
        leftovers=_leftovers(task),
        objections=tuple(f"{each.stage}: {each.text}" for each in concerns.of_task(task)),
        remarks=_remarks(task),
        tail=tail,
    )


def action_facts(
    task: Task, *, login: str = "", has_changes: bool = False, has_merged: bool = False
) -> TaskFacts:
    """The facts that decide on a task's next action."""
    attempt, interrupted = task.attempt, task.interrupted
    states = task.stage_states.values()
    applied = {"applied": task.applied.shown()} if task.applied is not None else {}
    return TaskFacts(
        task_id=task.spec.task_id,
        status=task.status,
        reason=task.reason,
        cause=task.cause,
        agent=attempt.agent if attempt is not None else task.spec.agent,
        login=login,
        remedy=_remedy(task),
        question="" if interrupted is None else next_action.question_in(interrupted.question, task.asked_by),
        approval=(interrupted.approval if interrupted is not None else None) or "",
        wake_at=task.waiting.wake_at if task.waiting is not None else None,
        is_past_deadline=task.is_past_deadline,
        active_s=task.active_s,
        has_changes=has_changes and task.applied is None,
        changed=next_action.most(state.gate.changed for state in states if state.gate is not None),
        has_findings=any(state.gate_result.findings for state in states if state.gate_result is not None),
        applied=next_action.applied_words(applied),
        objection=concerns.all_as_text(each.to_json() for each in concerns.of_task(task)),
        workspace=task.spec.workspace,
        has_merged=has_merged,
        denied=next(iter(permissions.denials(task)), None),
    )


def _action(task: Task, facts: TaskFacts) -> NextAction:
    """What to do next. The summary of an item is not written again after its fan-out has merged its work, or
    left it out: so it says where that is shown."""
    action, spec = next_action.for_task(facts), task.spec
    parent = spec.labels.get(fan_out.LABEL)
    if action.name != "apply" or parent is None or parent != spec.parent:
        return action
    look = Suggestion(command=f"holdfast show {parent}", does="see whether it was merged")
    why = f"its fan-out {parent} merges its work, or leaves it out"
    return action.evolve(name="read_diff", why=why, steps=(look, *action.steps[:1]))


def _cumulative(budget: Any, *before: Any) -> Any:
    """A budget of this run plus what earlier runs used, to compare with the usage of all runs."""
    return None if budget is None else budget + sum(used or 0 for used in before)


def _remedy(task: Task) -> str:
    """The name of the action that helps against the failure that stopped the task; empty if none did."""
    failure_class = _open_class(task)
    if failure_class == FailureClass.CONTRACT_VIOLATION and task.last_failure is None and _has_accept(task):
        return "fix_work"
    if failure_class not in tuple(FailureClass):
        return "read_log" if failure_class else ""
    missing = task.last_failure.missing_program if task.last_failure is not None else ""
    return remedy(FailureClass(failure_class), _outcome(task), missing_program=missing)[0]


def _has_accept(task: Task) -> bool:
    """Whether it is a plain run with commands that accept its work."""
    return task.spec.quality is not None and bool(task.spec.quality.accept)


def _open_class(task: Task) -> str:
    """The class of the failure that the task has not recovered from; empty if there is none."""
    failed, attempt = task.last_failure, task.attempt
    if failed is not None and not _is_healed(task, failed):
        return failed.failure_class
    if task.has_reached_any_budget:
        return FailureClass.BUDGET
    gate_result = task.stage_state(attempt.stage).gate_result if attempt is not None else None
    if gate_result is not None and not gate_result.passed:
        return FailureClass.CONTRACT_VIOLATION
    # A plain run is not triaged: its last outcome decides, unless the end was requested.
    if attempt is None or attempt.ended is None or attempt.intent_name in _REQUESTED_ENDS:
        return ""
    return BY_OUTCOME.get(attempt.ended.outcome, "")


def _outcome(task: Task) -> str:
    """The outcome of the failure that the task has not recovered from."""
    if task.last_failure is not None and not _is_healed(task, task.last_failure):
        return task.last_failure.outcome
    ended = task.attempt.ended if task.attempt is not None else None
    return ended.outcome if ended is not None else ""


#: Answers in a summary.
_ANSWERS = 3
#: How many leftover processes of a stage are named.
_LEFTOVERS = 5
_REQUESTED_ENDS = ("stop", "interrupt", "deadline")


def _is_healed(task: Task, failed: ev.FailureTriaged) -> bool:
    """Whether the stage is done or no longer needed, or a later attempt has started."""
    if task.is_over(failed.stage):
        return True
    stage_state = task.stage_states.get(failed.stage)
    attempt = stage_state.attempt if stage_state is not None else None
    return attempt is not None and attempt.number > failed.attempt > 0


def _stage(task: Task, stage: StageSpec, output_lines: int | None) -> StageLine:
    stage_state, failed = task.stage_states.get(stage.name), task.last_failure
    attempt = stage_state.attempt if stage_state is not None else None
    ended = attempt.ended if attempt is not None else None
    triaged = attempt.triage if attempt is not None else None
    if triaged is None and failed is not None and failed.stage == stage.name and not _is_healed(task, failed):
        triaged = failed
    if stage.name in task.stages_done:
        state, triaged = "done", None
    elif stage.name in task.eliminated:
        state = "eliminated"
    elif task.has_ended and (attempt is not None or triaged is not None):
        state = "failed"
    elif stage_state is not None and stage_state.awaits_gate:
        state = "checking"
    else:
        state = "running" if attempt is not None else "pending"
    return StageLine(
        name=stage.name,
        state=state,
        agent=stage_state.agent if stage_state is not None else stage.agent,
        role=stage.role,
        attempts=stage_state.times_ran if stage_state is not None else 0,
        exit_code=ended.exit_code if ended is not None else None,
        worked_s=stage_state.worked_s if stage_state is not None else 0.0,
        outcome=_stage_outcome(task, stage, ended) if ended is not None else "",
        failure_class=triaged.failure_class if triaged is not None else "",
        signature=triaged.signature if triaged is not None else "",
        output_lines=output_lines,
        conclusion=_conclusion(task, stage),
    )


def _stage_outcome(task: Task, stage: StageSpec, ended: ev.AttemptEnded) -> str:
    gate = task.stage_state(stage.name).gate_result
    is_refused = gate is not None and not gate.passed and stage.name not in task.stages_done
    return "refused by its gate" if is_refused and ended.outcome == "success" else ended.outcome


def _conclusion(task: Task, stage: StageSpec) -> str:
    if task.chosen is not None and task.chosen.chosen == stage.name:
        return "chosen" if task.chosen.by == "judge" else "chosen: the only one that passed its gate"
    if stage.name in task.eliminated:
        return "; ".join(task.eliminated[stage.name].reasons[:2])
    gate = task.stage_state(stage.name).gate_result
    return concerns.as_text(gate.decision, gate.findings) if gate is not None else ""


def _failure(task: Task) -> FailureView | None:
    failed = task.last_failure
    if failed is None:
        return None
    known = failed.failure_class in REMEDIES
    gate = task.stage_state(failed.stage).gate if failed.stage in task.stage_states else None
    evidence = gate.evidence if gate is not None and gate.attempt == failed.attempt else ""
    return FailureView(
        stage=failed.stage,
        failure_class=failed.failure_class,
        signature=failed.signature,
        agent=failed.agent,
        outcome=failed.outcome,
        detail=failed.detail,
        exit_code=failed.exit_code,
        gate_failed=failed.gate_failed,
        gate_reasons=failed.gate_reasons,
        suggested_actions=REMEDIES[FailureClass(failed.failure_class)][1] if known else (),
        excerpt=evidence or failed.excerpt,
        rest_in=f"outputs/{failed.stage}.artifact.md" if evidence else "",
        is_healed=_is_healed(task, failed),
    )


def _remarks(task: Task) -> tuple[str, ...]:
    remarks: list[str] = []
    for name, stage_state in task.stage_states.items():
        if stage_state.gate_result is not None and stage_state.gate_result.passed:
            remarks += [f"{name}: {warning}" for warning in stage_state.gate_result.warnings]
    remarks += [
        f"{stage.name}: tools were denied ({tools}); its role only reads"
        for stage, tools in permissions.denied_stages(task)
        if permissions.is_read_only(task.spec, stage)
    ]
    if task.spec.quality is None:
        return tuple(remarks)
    for stage_state in task.stage_states.values():
        for when, result in (("before", stage_state.pre_work), ("after", stage_state.gate_result)):
            if result is not None:
                remarks += [f"{when} the work: {reason}" for reason in result.reasons]
    return tuple(remarks)


def _leftovers(task: Task) -> str:
    """What the attempts of all stages left running, with the policy and the stage."""
    parts: list[str] = []
    for name, stage_state in task.stage_states.items():
        found = [item for event in stage_state.leftovers for item in event.processes]
        if not found:
            continue
        listed = ", ".join(f"{item['pid']} {item['command']}" for item in found[:_LEFTOVERS])
        more = f" and {len(found) - _LEFTOVERS} more" if len(found) > _LEFTOVERS else ""
        stage = f" of {name}" if len(task.spec.stages) > 1 else ""
        parts.append(f"({stage_state.leftovers[-1].policy}){stage}: {listed}{more}")
    return "; ".join(parts)


def _takeover(task: Task) -> tuple[str, str, int] | None:
    if task.takeover is None:
        return None
    started, ended = task.takeover.started, task.takeover.ended
    words = {"handed_back": "handed back", "kept": "kept", "lost": "lost"}
    how, files = (words.get(ended.how, ended.how), ended.files) if ended is not None else ("not ended", 0)
    return started.by or "unknown", how, files
