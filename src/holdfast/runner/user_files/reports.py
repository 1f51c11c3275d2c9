"""Reports derived from the journal, for users and for programs that read nothing else.

`_summary.md` is rewritten after every stage and at every stop. Pipelines also get `stats.json`,
`phase-links.json` and `last_failure.json`.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.agents import registry
from holdfast.errors import HoldfastError
from holdfast.model import events as ev
from holdfast.model.next_action import NextAction
from holdfast.pipeline.results import stage_files, summary, summary_facts
from holdfast.pipeline.triage import Failure, FailureClass, Triage, remedy
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.task import Task

_TAIL_LINES = 20


def write(ledger: Ledger) -> None:
    """Write all reports for the current state. On a full disk the old ones stay."""
    task, packet = ledger.task, ledger.packet
    items, has_merged = tuple[str, ...](), False
    if task.spec.fan_out is not None:
        from holdfast.packet import fan_out

        items = tuple(item.text for item in fan_out.items(packet, task.spec.fan_out))
        has_merged = fan_out.accepted_merges(packet) > 0
    view = summary_facts.view_of(
        task,
        updated_at=clock.iso_now(),
        login=_login(ledger),
        tail=ledger.tail(_TAIL_LINES),
        has_changes=_has_changes(task),
        has_merged=has_merged,
    ).evolve(items=items)
    try:
        text = ledger.redact(summary.render(view))
        atomic.write(packet.summary, text.encode("utf-8", "backslashreplace"), durable=False)
        if task.spec.pipeline is not None:
            _write_stats(ledger)
            _write_links(ledger)
            if task.last_failure is not None:
                _write_failure(ledger, task.last_failure, action=view.action)
    except HoldfastError:
        return  # derived: the next call writes them again


def _has_changes(task: Task) -> bool:
    """Whether the task changed files, as far as is known: only a gate counts them."""
    judged = [task.stage_state(stage.name).gate for stage in task.spec.stages if stage.writes]
    return any(gate is None or gate.changed is None or gate.changed > 0 for gate in judged)


def _write_stats(ledger: Ledger) -> None:
    task, pipeline = ledger.task, ledger.task.spec.pipeline
    assert pipeline is not None
    stats = stage_files.stats(
        task.spec.task_id,
        paid_calls=task.paid_calls,
        paid_call_budget=task.paid_limit,
        retry_budget=pipeline.retry_budget,
        completed_stages=list(task.stages_done),
        signatures=task.signatures,
        updated_at=clock.iso_now(),
    )
    atomic.write_json(ledger.packet.stats, stats, durable=False)


def _write_links(ledger: Ledger) -> None:
    task = ledger.task
    agents = {name: stage_state.agent for name, stage_state in task.stage_states.items()}
    links = stage_files.phase_links(
        task.spec.task_id,
        [stage.evolve(agent=agents.get(stage.name, stage.agent)) for stage in task.spec.stages],
        task.stages_done,
        at=clock.iso_now(),
        sessions={name: stage_state.session_id for name, stage_state in task.stage_states.items()},
    )
    atomic.write_json(ledger.packet.phase_links, links, durable=False)


def _write_failure(ledger: Ledger, failed: ev.FailureTriaged, *, action: NextAction) -> None:
    signature = ledger.task.signatures[failed.signature]
    record = stage_files.last_failure(
        _facts(failed),
        _triage(failed),
        action,
        attempt=failed.attempt,
        at=signature["last_seen"],
        count=signature["count"],
    )
    atomic.write_json(ledger.packet.last_failure, record, durable=False)


def _facts(failed: ev.FailureTriaged) -> Failure:
    return Failure(
        stage=failed.stage,
        role=failed.role,
        agent=failed.agent,
        outcome=failed.outcome,
        detail=failed.detail,
        exit_code=failed.exit_code,
        gate_failed=failed.gate_failed,
        gate_reasons=tuple(failed.gate_reasons),
        missing_program=failed.missing_program,
    )


def _triage(failed: ev.FailureTriaged) -> Triage:
    action, suggested = remedy(
        FailureClass(failed.failure_class), failed.outcome, missing_program=failed.missing_program
    )
    return Triage(
        failure_class=failed.failure_class,
        signature=failed.signature,
        outcome=failed.outcome,
        suggested_actions=suggested,
        next_action=action,
    )


def _login(ledger: Ledger) -> str:
    attempt = ledger.task.attempt
    return registry.adapter(attempt.agent).capabilities.login if attempt is not None else ""
