"""Gather facts: everything that the planner needs to know and that is not in the journal."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.runner.pending_requests import PendingRequests, is_taken_over
from holdfast.runner.perform.context import Context
from holdfast.runner.plan.facts import Facts
from holdfast.runner.user_files import interrupt_files
from holdfast.store import admitted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Gatherer:
    """Observes one task for the planner."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._interval_s = context.ledger.task.spec.limits.base_interval_s
        self._requests = PendingRequests(context.ledger)
        #: The wait that is measured, and when it ends on the monotonic clock.
        self._wait: tuple[str, str | None] | None = None
        self._wake_mono = 0.0
        self._has_repository: bool | None = None
        self._was_admitted = False
        #: An interrupt file was written since the last look (interrupt_file_watch).
        self.has_new_interrupt_file = False

    def gather(self, ready: set[str]) -> Facts:
        """What can be observed now. `ready` are the waiter's names of this wake-up; empty after a timeout."""
        context, task = self._context, self._context.ledger.task
        request = self._requests.next(ready)
        if request is not None:
            return Facts(remembered=context.remembered, request=request)
        if task.open_executions:
            return self._of_executions(ready)
        context.reap_recorders()
        found: dict[str, Any] = {}
        match task.status:
            case Status.WAITING:
                found["wait_left_s"], found["wait_s"] = self._wait_left_s()
            case Status.SPAWNING | Status.RUNNING:
                found["has_project"] = os.path.isdir(task.spec.project_dir)
                found["has_repository"] = self._is_in_repository()
            case Status.INTERRUPTED:
                found["is_taken_over"] = is_taken_over(context.ledger)
            case _:
                found["is_closed"] = task.has_ended and os.path.exists(context.ledger.packet.task_done)
        if task.chore is not None:
            from holdfast.runner.stage import chore_results  # only tasks with chores pay for the import

            found["chore_result"] = chore_results.read_result(context.ledger, task.chore)
        interrupt_file = self._interrupt_file()
        if interrupt_file is not None and task.spec.pipeline is not None:
            found["file_asks_approval"] = interrupt_files.asked_approval(context.ledger.packet)
        return Facts(
            remembered=context.remembered,
            problem=context.problem,
            not_admitted=self._not_admitted(),
            project_moved_to=self._project_moved_to(),
            interrupt_file=interrupt_file,
            logins=self._logins(),
            **found,
        )

    def _not_admitted(self) -> str:
        """Checked until it is empty: a person may adopt the packet in the meantime."""
        ledger = self._context.ledger
        self._was_admitted = self._was_admitted or admitted.has_first_line(ledger.packet, ledger.first_line)
        return "" if self._was_admitted else admitted.objection(ledger.packet)

    def _project_moved_to(self) -> str:
        """Where a link leads that has taken the place of the project, or of a directory above it, unless a
        person has accepted that place."""
        ledger = self._context.ledger
        now = load.moved_project(ledger.task.spec)
        return "" if not now or admitted.is_noted(ledger.packet, admitted.Kind.PROJECT, now) else now

    def _of_executions(self, ready: set[str]) -> Facts:
        context = self._context
        executions = context.observers.observe(ready)
        heartbeat_in_s = context.remembered.heartbeat_mono + self._interval_s - clock.mono()
        return Facts(
            remembered=context.remembered,
            executions=executions,
            problem=context.problem,
            not_admitted=self._not_admitted(),
            heartbeat_in_s=heartbeat_in_s,
            interrupt_file=self._interrupt_file()
            if heartbeat_in_s <= 0 or self.has_new_interrupt_file
            else None,
        )

    def _interrupt_file(self) -> str | None:
        ledger = self._context.ledger
        if ledger.task.spec.sandbox is not None:
            interrupt_files.move_from_sandbox(ledger.packet)
        return interrupt_files.find(ledger.packet, ledger.redact, ledger.task.spec.interrupt_off)

    def _logins(self) -> dict[str, str]:
        """How to log in to agents whose attempt ended for lack of a login."""
        agents = {
            attempt.agent
            for attempt in self._context.ledger.task.current
            if attempt.ended is not None and attempt.ended.outcome in ("auth", "no_auth")
        }
        if not agents:
            return {}
        from holdfast.agents import registry

        return {agent: registry.adapter(agent).capabilities.login for agent in agents}

    def _wait_left_s(self) -> tuple[float, float]:
        """Time until the wait is over, and how long it was meant to be."""
        task = self._context.ledger.task
        wake_at = task.waiting.wake_at if task.waiting is not None else None
        wake = clock.parse_iso(wake_at) if wake_at else 0.0
        wait_s = wake - clock.parse_iso(task.moved_at)
        left_s, now_mono = wake - clock.now(), clock.mono()
        if self._wait != (task.moved_at, wake_at):
            # If the clock is set back during the wait, the wait must not get longer than it was meant to be.
            self._wait = (task.moved_at, wake_at)
            self._wake_mono = now_mono + min(left_s, wait_s)
        return min(left_s, self._wake_mono - now_mono), wait_s

    def _is_in_repository(self) -> bool:
        """Whether the project is in a git repository; only pipelines need to know."""
        spec = self._context.ledger.task.spec
        if spec.pipeline is None:
            return False
        if self._has_repository is None:
            from holdfast.workspace.lock import has_repository

            self._has_repository = has_repository(spec.project_dir)
        return self._has_repository
