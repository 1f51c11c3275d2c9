"""Stages: what is due is started, what succeeded goes through its gate, and a marker ends it.

Here is the plain run: one stage, whose gate is the attempt's own proof of success. `packet_stages` has what a written packet
needs beyond that.
"""

from __future__ import annotations

import errno
import os

from holdfast import clock
from holdfast.agents import registry
from holdfast.errors import LockHeld, UsageError
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.attempt import VOID_LIMIT, Attempt
from holdfast.model.spec import StageSpec
from holdfast.model.stage_state import StageState
from holdfast.model.status import Status
from holdfast.runner.attempt.open import Opened, open_attempt
from holdfast.runner.ledger import Ledger
from holdfast.runner.people import marks
from holdfast.runner.plan import policy
from holdfast.runner.plan.policy import Decision, Then
from holdfast.runner.settling import Settling
from holdfast.runner.stage import finish, prompts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.runner.watching import Watching

_AT_ONCE = 0.0
#: Before another try where the machine had no process to give.
_NO_FORK_S = 1.0


class Stages:
    """Starts and ends the stages of a task."""

    def __init__(
        self, ledger: Ledger, watching: Callable[[], Watching], settling: Settling, env: dict[str, Any]
    ) -> None:
        self.ledger = ledger
        self.watching = watching
        self.settling = settling
        self.env = env
        self._recorders: list[int] = []
        #: The run for which everything was found that its stages need.
        self._looked_for = 0

    # ── the start ──

    def start(self) -> float:
        """Start everything that is due, or do one thing that must come before."""
        task = self.ledger.task
        due = task.due
        if not due:
            reason = "no stage is due: name the one to run with 'holdfast retry --from'"
            self.ledger.move(Status.INTERRUPTED, reason, interrupt=reason)
            return _AT_ONCE
        if task.voids_in_a_row >= VOID_LIMIT:
            reason = f"could not be started: {task.voids_in_a_row} attempts came to nothing"
            self.settling.plan(policy.after_attempt("spawn_failed", reason), "spawn_failed", due[0].name)
            return _AT_ONCE
        if self.heeds_mark():
            return _AT_ONCE
        if any(task.stage_state(stage.name).awaits_gate for stage in due):
            # It was interrupted while the gate looked: the agent has done its part.
            if task.status is Status.SPAWNING:
                self.ledger.move(Status.RUNNING, "back to the gate")
            self.ledger.move(Status.COMPLETING, "back to the gate")
            return _AT_ONCE
        if self._looked_for != task.run and self._needs_preflight():
            from holdfast.runner.stage import preflight  # once a run; a plain command pays nothing for it

            if preflight.is_due(task) and not preflight.passes(self.ledger, self.env.get("env", {})):
                return _AT_ONCE
            self._looked_for = task.run
        if self._is_spent():
            return _AT_ONCE
        for stage in due:
            wait_s = self.make_ready(stage)
            if wait_s is not None:
                return wait_s
        return self._launch(due)

    def _needs_preflight(self) -> bool:
        """Whether there is more to look for than a directory that is there."""
        spec = self.ledger.task.spec
        is_plain = spec.agent == "command" and spec.pipeline is None and spec.bootstrap is None
        return not is_plain or not os.path.isdir(spec.project_dir)

    def _is_spent(self) -> bool:
        """Before a call: whether a budget is used up already. Then the task asks, or has ended."""
        task = self.ledger.task
        if task.spent is None:
            return False
        decision = policy.after_attempt("stopped", intent="budget", intent_reason=task.spent)
        decision = policy.at_limit(decision, "budget", task.spec.limits)
        decision = policy.unasked(decision, "budget", task.spec.interrupt_off)
        interrupt = decision.reason if decision.then is Then.INTERRUPT else None
        self.ledger.move(decision.status, decision.reason, interrupt=interrupt)
        return True

    def heeds_mark(self) -> bool:
        """Before something starts: whether a file asks for a person. Then the task waits for one."""
        mark = marks.find(self.ledger.packet, self.ledger.redact, self.ledger.task.spec.interrupt_off)
        if mark is not None:
            self.ledger.move(Status.INTERRUPTED, mark, interrupt=mark)
        return mark is not None

    def make_ready(self, stage: StageSpec) -> float | None:
        """What a stage needs before its agent can start: None when nothing is missing, else when to come again."""
        self.choose_agent(stage, self.ledger.task.stage_state(stage.name))
        return None

    def choose_agent(self, stage: StageSpec, stage_state: StageState) -> None:
        """Whoever was out may be back, or another may be there."""
        order = (stage.agent, *self.ledger.task.spec.failover)
        now = clock.now()
        if policy.available((stage_state.agent,), stage_state.unavailable, now) is not None:
            return
        new = policy.available(order, stage_state.unavailable, now)
        if new is not None and new != stage_state.agent:
            reason = f"{stage_state.agent} is out, {new} is available"
            self.ledger.record(
                ev.AgentSwitched(stage=stage.name, old=stage_state.agent, new=new, reason=reason)
            )

    def _launch(self, due: tuple[StageSpec, ...]) -> float:
        self.reap_recorders()
        composed: list[tuple[StageSpec, bytes | None]] = []
        for stage in due:
            # All of them before the first is started: nothing was paid for by then.
            try:
                prompt = prompts.compose(self.ledger, stage, self.ledger.task.stage_state(stage.name))
            except UsageError as error:
                self.cannot_start(stage, str(error))
                return _AT_ONCE
            composed.append((stage, prompt))
        for stage, prompt in composed:
            try:
                again = self._open(stage, prompt)
            except UsageError as error:
                if not self._stop_wave(f"{stage.name} cannot start: {error}"):
                    self.cannot_start(stage, str(error))
                return _AT_ONCE
            if again is not None:
                return again
        return _AT_ONCE

    def _stop_wave(self, reason: str) -> bool:
        """One of several side by side cannot start: those that have are stopped, and the task asks. False where none has."""
        started = self.ledger.task.open_attempts
        for attempt in started:
            self.ledger.record(
                ev.StopIntended(attempt=attempt.number, intent="interrupt", reason=self.ledger.redact(reason))
            )
        return bool(started)

    def _open(self, stage: StageSpec, prompt: bytes | None) -> float | None:
        adapter = registry.adapter(self.ledger.task.stage_state(stage.name).agent)
        return self.open_guarded(
            lambda: open_attempt(
                self.ledger, adapter, self.env, stage=stage, prompt=prompt, keep=self.kept_for(stage)
            )
        )

    def kept_for(self, stage: StageSpec) -> tuple[int, ...]:
        """Locks that the recorder of a stage's attempt takes over."""
        return ()

    def cannot_start(self, stage: StageSpec, reason: str) -> None:
        """What the agent should be told cannot be put together."""
        self.ledger.move(Status.FAILED, f"{stage.name} cannot start: {reason}")

    def open_guarded(self, open_one: Callable[[], Opened]) -> float | None:
        """Open an attempt and watch it. Returns when to try again where the machine had no process to give."""
        task = self.ledger.task
        before = task.attempts
        try:
            opened = open_one()
        except LockHeld as error:
            # Another attempt lives in the same session: one of them must not begin.
            if not self._stop_wave(str(error)):
                self.ledger.move(Status.INTERRUPTED, str(error), interrupt=str(error))
            return _AT_ONCE
        except OSError as error:
            attempt = task.find(task.attempts) if task.attempts > before else None
            if error.errno in (errno.ENOSPC, errno.EDQUOT) or attempt is None or not attempt.is_open:
                raise
            # No process or descriptor to be had: the machine's fault, not the task's, and it may pass.
            reason = f"the recorder could not be forked: {error.strerror}"
            self.ledger.record(ev.AttemptVoid(attempt=attempt.number, reason=reason))
            return _NO_FORK_S
        attempt = task.find(opened.attempt)
        assert attempt is not None
        self._recorders.append(opened.recorder_pid)
        self.watching().begin(attempt, opened)
        return None

    def reap_recorders(self) -> None:
        """A recorder that we forked is our child, and leaves when nothing of its attempt is left."""
        for pid in list(self._recorders):
            try:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    self._recorders.remove(pid)
            except ChildProcessError:
                self._recorders.remove(pid)

    def take_chore(self, chore: Attempt) -> float:
        """A chore has ended; a plain run has none."""
        raise AssertionError(f"a chore in a plain run: {chore.kind}")

    # ── the end ──

    def complete(self) -> float:
        """Through the gates; then on to what is next."""
        task = self.ledger.task
        failed: list[tuple[Attempt, Decision]] = []
        for attempt in list(task.current):
            self.settling.dismiss_recorder(attempt)  # once more: we may be the successor of one who could not
            if attempt.stage in task.stages_done:
                continue
            if not attempt.has_succeeded:
                failed.append((attempt, self.settling.decide(attempt)))
                continue
            wait_s = self.pass_gate(attempt)
            if wait_s is not None:
                return wait_s
            if attempt.stage not in task.stages_done:
                failed.append((attempt, self.refused(attempt)))
        mark = marks.find(self.ledger.packet, self.ledger.redact, self.ledger.task.spec.interrupt_off)
        if failed:
            self.settling.follow_failures(failed)
        elif mark is not None and task.stage is not None:
            self.ledger.move(Status.INTERRUPTED, mark, interrupt=mark)
        elif task.stage is not None:
            self.ledger.move(Status.SPAWNING, f"next is {task.stage}")
        else:
            self.ledger.move(Status.COMPLETED, task.reason)
        self.release()
        return _AT_ONCE

    def release(self) -> None:
        """Let go of what was held for the stages that are over."""

    def close(self) -> None:
        """Let go of what only the task's runner may hold."""

    def pass_gate(self, attempt: Attempt) -> float | None:
        """Let the gate look at an attempt. Returns when to come again while it does, None once it has spoken."""
        finish.pass_plain_gate(self.ledger, attempt)
        failpoint("stages.done")
        return None

    def refused(self, attempt: Attempt) -> Decision:
        """What follows where the gate did not let an attempt pass."""
        raise AssertionError(f"the plain gate of {attempt.stage} always passes")
