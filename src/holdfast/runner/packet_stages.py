"""Stages of a written packet, of a task with a worktree, or in a repository with checks of its own: approvals, budgets of
calls, the workspace, gates.

Chores stand around the agent, each a process of ours that is run, watched and swept like an agent: `prepare` records what
stood in the workspace before, `pre_work` asks the repository's own checks, `gate` looks at what is there afterwards.
"""

from __future__ import annotations

from holdfast.failpoints import failpoint
from holdfast.model.attempt import VOID_LIMIT, Attempt
from holdfast.model.spec import StageSpec
from holdfast.model.status import WAITS, Status
from holdfast.runner import failures, quality
from holdfast.runner.plan import approval as confirmation
from holdfast.runner.plan import policy
from holdfast.runner.plan.policy import Decision, Then
from holdfast.runner.stage import chores, finish, prompts
from holdfast.runner.stage.workspace_lock import WorkspaceLock
from holdfast.runner.stages import Stages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.runner.ledger import Ledger
    from holdfast.runner.settling import Settling
    from holdfast.runner.watching import Watching

_AT_ONCE = 0.0
#: Before another look where the workspace is taken.
_TAKEN_S = 1.0


class PacketStages(Stages):
    """Starts and ends the stages of a packet."""

    def __init__(
        self, ledger: Ledger, watching: Callable[[], Watching], settling: Settling, env: dict[str, Any]
    ) -> None:
        super().__init__(ledger, watching, settling, env)
        self._workspace_lock = WorkspaceLock(ledger)

    def make_ready(self, stage: StageSpec) -> float | None:
        """A person's approval, a call that may still be made, and the workspace; then as with any stage."""
        task, stage_state = self.ledger.task, self.ledger.task.stage_state(stage.name)
        reason = confirmation.question(task, stage)
        if reason is not None:
            self.ledger.record(
                self.ledger.moved(Status.INTERRUPTED, reason, interrupt=reason, approval=stage.name)
            )
            return _AT_ONCE
        if failures.is_out_of_calls(self.ledger):
            return _AT_ONCE
        if stage.writes and not self._takes_workspace():
            return self._await_workspace()
        if chores.needs_prepare(task, stage) and stage_state.workspace is None:
            return self._do_chore(stage, "prepare")
        if quality.needs_pre_work(task, stage_state):
            return self._do_chore(stage, "pre_work")
        return super().make_ready(stage)

    def kept_for(self, stage: StageSpec) -> tuple[int, ...]:
        """The workspace lock outlives us for as long as the agent writes."""
        return self._workspace_lock.descriptors if stage.writes else ()

    def cannot_start(self, stage: StageSpec, reason: str) -> None:
        """Triaged like every failure of a packet."""
        failures.stop_before_call(self.ledger, stage.name, outcome="compose_failed", reason=reason)

    def release(self) -> None:
        """Others may write now."""
        self._workspace_lock.release()

    def close(self) -> None:
        """A lock that we keep would keep out whoever drives the task next, which may be us."""
        self._workspace_lock.close()

    def _takes_workspace(self) -> bool:
        """Whether we have it now. What we said while we waited does not hold any more then."""
        has_it = self._workspace_lock.take()
        if has_it and str(self.ledger.seen.get("verdict")).startswith(WAITS):
            self.ledger.seen["verdict"] = None
            self.ledger.show()
        return has_it

    def _await_workspace(self) -> float:
        said = f"{WAITS}the workspace, in which {self._workspace_lock.writer or 'another task'} writes"
        if self.ledger.seen.get("verdict") != said:
            self.ledger.seen["verdict"] = said
            self.ledger.show()
        return _AT_ONCE if self.heeds_mark() else _TAKEN_S

    def _do_chore(self, stage: StageSpec, kind: str, *, judged: int = 0) -> float:
        self.reap_recorders()
        if self.ledger.task.voids_in_a_row >= VOID_LIMIT:
            reason = f"the {kind} of {stage.name} cannot be started: its recorders die at once"
            self.ledger.move(Status.INTERRUPTED, reason, interrupt=reason)
            return _AT_ONCE
        again = self.open_guarded(
            lambda: chores.open_chore(
                self.ledger,
                self.env,
                stage=stage.name,
                kind=kind,
                judged=judged,
                keep=self.kept_for(stage),
            )
        )
        return _AT_ONCE if again is None else again

    def take_chore(self, chore: Attempt) -> float:
        """Clean up behind a chore, and take in what it found."""
        again = None if chore.swept is not None else self.settling.sweep_up(chore)
        if again is not None:
            return again
        finish.write_attempt(self.ledger, chore)
        failpoint("packet_stages.chore_swept")
        if chore.intent is not None and chore.intent_name != "timeout":
            decision = policy.after_attempt(
                "stopped", intent=chore.intent_name, intent_reason=chore.intent.reason
            )
            interrupt = decision.reason if decision.then is Then.INTERRUPT else None
            chores.drop(
                self.ledger, chore, self.ledger.moved(decision.status, decision.reason, interrupt=interrupt)
            )
            self.release()
        else:
            chores.take(self.ledger, chore)
        return _AT_ONCE

    def pass_gate(self, attempt: Attempt) -> float | None:
        """Let the gate look at an attempt; hand on what it says to later stages; then the marker."""
        task, stage = self.ledger.task, attempt.stage
        if task.spec.pipeline is None and not quality.has_gate(task):
            return super().pass_gate(attempt)
        stage_state = task.stage_state(stage)
        spec = next(spec for spec in task.spec.stages if spec.name == stage)
        if stage_state.gate_result is None:
            if spec.writes and not self._takes_workspace():
                return self._await_workspace()
            return self._do_chore(spec, "gate", judged=attempt.number)
        if stage_state.gate_result.passed:
            prompts.hand_off(self.ledger, spec, attempt)
            failpoint("packet_stages.handed_off")
            finish.mark_stage(self.ledger, attempt)
            failpoint("packet_stages.done")
        return None

    def refused(self, attempt: Attempt) -> Decision:
        """By triage; in a repository with checks of its own, a person is asked."""
        is_plain = self.ledger.task.spec.pipeline is None
        judge = quality.refused if is_plain else failures.judge_gate
        return policy.unasked(judge(self.ledger, attempt), "quality", self.ledger.task.spec.interrupt_off)
