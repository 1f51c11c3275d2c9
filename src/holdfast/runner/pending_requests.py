"""Which request of the inbox is answered next, and what the planner must know about it."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.execution import dirname
from holdfast.model.status import Status
from holdfast.packet import inbox
from holdfast.runner.ledger import Ledger
from holdfast.runner.plan.facts import PendingRequest
from holdfast.store import lock as locks
from holdfast.store.no_links import is_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.request import Request
    from holdfast.store.layout import Packet

#: How many files of the inbox are looked at for a stop, and for junk.
NEWEST, _JUNK_AT_A_TIME = 16, 500
_ANSWERS_AT_A_TIME = 8


class PendingRequests:
    """The requests in the inbox of one task."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._interval_s = ledger.task.spec.limits.base_interval_s
        #: Requests that were in the inbox at the last look, oldest first.
        self._names: list[str] = []
        self._listed_mono = float("-inf")
        #: Requests answered since the work was looked at.
        self._answered = 0

    def next(self, ready: set[str]) -> PendingRequest | None:
        """The request to answer now; None if there is none, or work goes first. `ready` are the waiter's
        names of this wake-up.

        A sender rings the bell; the timer finds requests whose sender was killed before it.
        """
        if self._must_work_first():
            return None
        now_mono = clock.mono()
        if "bell" in ready or now_mono - self._listed_mono >= self._interval_s:
            self._names = inbox.names(self._ledger.packet)
            self._listed_mono = now_mono
        while self._names and not self._is_there(self._names[0]):
            self._names.pop(0)
        if not self._names:
            return None
        self._answered += 1
        return self._checked(self._newest_stop() or self._oldest())

    def _must_work_first(self) -> bool:
        """Whether work goes before the requests that are left: an agent can fill the inbox, and a stop that
        was answered must be carried out."""
        task, packet = self._ledger.task, self._ledger.packet
        is_busy = task.status in (Status.SPAWNING, Status.RUNNING, Status.COMPLETING)
        if self._answered < _ANSWERS_AT_A_TIME or not (
            is_busy or (task.has_ended and not os.path.exists(packet.task_done))
        ):
            return False
        self._answered = 0
        if self._names:
            inbox.ring(packet)  # come back at once
        return True

    def _newest_stop(self) -> PendingRequest | None:
        """A stop among the newest of many requests: an agent can fill the inbox, and a person waits."""
        names = self._names
        for name in names[: -NEWEST - 1 : -1] if len(names) > NEWEST else ():
            if self._is_there(name):
                request = inbox.read(self._ledger.packet, name)
                if not isinstance(request, HoldfastError) and request.verb == "stop":
                    return PendingRequest(name=name, request=request)
        return None

    def _oldest(self) -> PendingRequest:
        """The oldest request. Files that are not valid are taken together, a bounded number at a time."""
        first: PendingRequest | None = None
        junk: list[str] = []
        for name in self._names[:_JUNK_AT_A_TIME]:
            request = inbox.read(self._ledger.packet, name)
            if not isinstance(request, HoldfastError):
                first = PendingRequest(name=name, request=request) if first is None else first
                break
            if first is None:
                first = PendingRequest(name=name, request=request)
            elif self._is_there(name):
                junk.append(name)
        assert first is not None
        return first.evolve(junk=tuple(junk))

    def _checked(self, pending: PendingRequest) -> PendingRequest:
        """The request, with what its verb requires to know."""
        request = pending.request
        if not isinstance(request, HoldfastError):
            if not inbox.is_admitted(self._ledger.packet, request):
                pending = pending.evolve(objection="no command of holdfast has sent this request")
            elif request.verb == "takeover":
                pending = self._with_claim(pending, request)
            elif request.verb == "retry":
                pending = self._with_amendment(pending, request)
        return pending.evolve(is_taken_over=is_taken_over(self._ledger))

    def _with_claim(self, pending: PendingRequest, request: Request) -> PendingRequest:
        """Whether the command that asks for the session still holds the lock of its takeover."""
        number, stage = request.args.get("attempt"), request.args.get("stage")
        task, packet = self._ledger.task, self._ledger.packet
        if isinstance(number, int) and isinstance(stage, str) and task.stage_spec(stage) is not None:
            pending = pending.evolve(is_claimed=_is_in_takeover(packet, number, stage))
        return pending

    def _with_amendment(self, pending: PendingRequest, request: Request) -> PendingRequest:
        """Check what a retry changes of the spec, by the rules of a manifest."""
        if "set" not in request.args:
            return pending
        from holdfast.pipeline.define import amend  # rarely needed

        try:
            return pending.evolve(amended=amend.read(self._ledger.task.spec, request.args["set"]))
        except HoldfastError as error:
            return pending.evolve(objection=str(error))

    def _is_there(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self._ledger.packet.inbox, name))


def is_taken_over(ledger: Ledger) -> bool:
    """Whether a person has the session of the task's agent."""
    taken = ledger.task.open_takeover
    return taken is not None and _is_in_takeover(ledger.packet, taken.attempt, taken.stage)


def _is_in_takeover(packet: Packet, number: int, stage: str) -> bool:
    """Whether a command holds the lock of a takeover. A link in place of its directory leads to the lock of
    something else, such as a living attempt."""
    attempt = packet.attempt(dirname(number, stage, "takeover"))
    return all(map(is_directory, (packet.attempts, attempt.path))) and locks.is_held(attempt.lock)
