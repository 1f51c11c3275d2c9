"""Gather facts: everything that the planner needs to know and that is not in the journal."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.execution import dirname
from holdfast.model.status import Status
from holdfast.packet import inbox
from holdfast.runner.perform.context import Context
from holdfast.runner.plan.facts import Facts, PendingRequest
from holdfast.runner.user_files import interrupt_files
from holdfast.store import admitted
from holdfast.store import lock as locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: How many files of the inbox are looked at for a stop, and for junk.
_NEWEST, _JUNK_AT_A_TIME = 16, 500
_ANSWERS_AT_A_TIME = 8


class Gatherer:
    """Observes one task for the planner."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._interval_s = context.ledger.task.spec.limits.base_interval_s
        #: Requests that were in the inbox at the last look, oldest first.
        self._requests: list[str] = []
        self._listed_mono = float("-inf")
        #: Requests answered since the work was looked at.
        self._answered = 0
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
        request = self._request(ready) if not self._must_work_first() else None
        if request is not None:
            self._answered += 1
            return Facts(memory=context.memory, request=request)
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
                found["is_taken_over"] = self._is_taken_over()
            case _:
                found["is_closed"] = task.has_ended and os.path.exists(context.ledger.packet.task_done)
        if task.chore is not None:
            from holdfast.runner.stage import chores  # only tasks with chores pay for the import

            found["chore_result"] = chores.read_result(context.ledger, task.chore)
        interrupt_file = self._interrupt_file()
        if interrupt_file is not None and task.spec.pipeline is not None:
            found["file_asks_approval"] = interrupt_files.asked_approval(context.ledger.packet)
        return Facts(
            memory=context.memory,
            redaction_problem=context.ledger.redact.problem,
            is_admitted=self._is_admitted(),
            interrupt_file=interrupt_file,
            logins=self._logins(),
            **found,
        )

    def _is_admitted(self) -> bool:
        """Asked until it is so: a person may adopt the packet meanwhile."""
        self._was_admitted = self._was_admitted or admitted.is_admitted(self._context.ledger.packet)
        return self._was_admitted

    def _must_work_first(self) -> bool:
        """Whether work goes before the requests that are left: an agent can fill the inbox, and a stop that
        was answered must be carried out."""
        ledger = self._context.ledger
        is_busy = ledger.task.status in (Status.SPAWNING, Status.RUNNING, Status.COMPLETING)
        if self._answered < _ANSWERS_AT_A_TIME or not (
            is_busy or (ledger.task.has_ended and not os.path.exists(ledger.packet.task_done))
        ):
            return False
        self._answered = 0
        if self._requests:
            inbox.ring(ledger.packet)  # come back at once
        return True

    def _request(self, ready: set[str]) -> PendingRequest | None:
        """The request that is next.

        A sender rings the bell; the timer finds requests whose sender was killed before it.
        """
        packet, now_mono = self._context.ledger.packet, clock.mono()
        if "bell" in ready or now_mono - self._listed_mono >= self._interval_s:
            self._requests = inbox.names(packet)
            self._listed_mono = now_mono
        while self._requests and not self._is_there(self._requests[0]):
            self._requests.pop(0)
        return self._next_request() if self._requests else None

    def _next_request(self) -> PendingRequest:
        """The oldest request, but a stop among the newest first: an agent can fill the inbox, and a person
        waits. Files that are not valid are taken together, a bounded number at a time."""
        packet, names = self._context.ledger.packet, self._requests
        for name in names[: -_NEWEST - 1 : -1] if len(names) > _NEWEST else ():
            if self._is_there(name):
                request = inbox.read(packet, name)
                if not isinstance(request, HoldfastError) and request.verb == "stop":
                    return self._with_takeover(PendingRequest(name=name, request=request))
        first: PendingRequest | None = None
        junk: list[str] = []
        for name in names[:_JUNK_AT_A_TIME]:
            request = inbox.read(packet, name)
            if not isinstance(request, HoldfastError):
                first = PendingRequest(name=name, request=request) if first is None else first
                break
            if first is None:
                first = PendingRequest(name=name, request=request)
            elif self._is_there(name):
                junk.append(name)
        assert first is not None
        return self._with_takeover(self._with_amendment(first.evolve(junk=tuple(junk))))

    def _with_takeover(self, pending: PendingRequest) -> PendingRequest:
        """Whether a person has the session, and whether the one who asks for it still does."""
        request, packet = pending.request, self._context.ledger.packet
        if not isinstance(request, HoldfastError) and request.verb == "takeover":
            number, stage = request.args.get("attempt"), request.args.get("stage")
            task = self._context.ledger.task
            if isinstance(number, int) and isinstance(stage, str) and task.stage_spec(stage) is not None:
                lock = packet.attempt(dirname(number, stage, "takeover")).lock
                pending = pending.evolve(is_claimed=locks.is_held(lock))
        return pending.evolve(is_taken_over=self._is_taken_over())

    def _is_taken_over(self) -> bool:
        taken = self._context.ledger.task.open_takeover
        if taken is None:
            return False
        name = dirname(taken.attempt, taken.stage, "takeover")
        return locks.is_held(self._context.ledger.packet.attempt(name).lock)

    def _with_amendment(self, pending: PendingRequest) -> PendingRequest:
        """Check what a retry brings: that a command sent it, and what it changes of the spec, by the rules of
        a manifest."""
        request = pending.request
        if isinstance(request, HoldfastError) or request.verb != "retry":
            return pending
        if not inbox.is_admitted(self._context.ledger.packet, request):
            return pending.evolve(objection="no command of holdfast has sent this request")
        if "set" not in request.args:
            return pending
        from holdfast.pipeline.define import amend  # rarely needed

        try:
            return pending.evolve(amended=amend.read(self._context.ledger.task.spec, request.args["set"]))
        except HoldfastError as error:
            return pending.evolve(objection=str(error))

    def _is_there(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self._context.ledger.packet.inbox, name))

    def _of_executions(self, ready: set[str]) -> Facts:
        context = self._context
        executions = context.observers.observe(ready)
        heartbeat_in_s = context.memory.heartbeat_mono + self._interval_s - clock.mono()
        return Facts(
            memory=context.memory,
            executions=executions,
            redaction_problem=context.ledger.redact.problem,
            is_admitted=self._is_admitted(),
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
