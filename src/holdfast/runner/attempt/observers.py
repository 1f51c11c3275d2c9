"""The observers of all open executions, and what they share: the position in output.log and session locks."""

from __future__ import annotations

from holdfast.agents import registry
from holdfast.errors import LockHeld
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Execution
from holdfast.packet import session_lock
from holdfast.runner.attempt.judging import Judging
from holdfast.runner.attempt.observer import Observer
from holdfast.runner.attempt.open import Opened
from holdfast.runner.attempt.subject import Subject
from holdfast.runner.ledger import Ledger
from holdfast.runner.output.position import IngestPosition
from holdfast.runner.plan.facts import ExecutionFacts
from holdfast.runner.wake.waiter import Waiter
from holdfast.store.lock import Lock


class Observers:
    """One observer per open execution."""

    def __init__(self, ledger: Ledger, waiter: Waiter) -> None:
        self._ledger = ledger
        self._waiter = waiter
        self._observers: dict[int, Observer] = {}
        self._position: IngestPosition | None = None
        #: Locks of sessions whose id the program chose after its recorder was forked.
        self._session_locks: dict[int, Lock] = {}

    def observe(self, ready: set[str]) -> dict[int, ExecutionFacts]:
        """What can be seen of every open execution."""
        executions = self._ledger.task.open_executions
        for number in self._observers.keys() - {execution.number for execution in executions}:
            self.drop(number)
        return {execution.number: self._of(execution).observe(ready) for execution in executions}

    def begin(self, execution: Execution, opened: Opened | None = None) -> None:
        """Observe an execution: one that was just forked, or one that another runner left."""
        if self._position is None:
            self._position = IngestPosition(self._ledger.packet)
        adapter = registry.adapter(execution.agent)
        subject = Subject(self._ledger, adapter, execution, self._waiter, position=self._position)
        self._observers[execution.number] = Observer(subject, opened)

    def _of(self, execution: Execution) -> Observer:
        if execution.number not in self._observers:
            self.begin(execution)
        return self._observers[execution.number]

    def get(self, number: int) -> Observer:
        """The observer of an open execution."""
        return self._observers[number]

    def undecided(self) -> list[tuple[Execution, Judging]]:
        """Those whose judgement the planner has not followed yet."""
        return [
            (observer.subject.execution, observer.alive.judging)
            for observer in self._observers.values()
            if observer.is_alive and observer.alive.judging.pending is not None
        ]

    def judge_again(self) -> None:
        """Judge every execution again at the next plan."""
        for observer in self._observers.values():
            if observer.is_alive:
                observer.alive.judging.again()

    def lock_session(self, number: int) -> None:
        """Lock a session whose id the program chose: its recorder could not be given the lock."""
        observer = self._observers[number]
        observer.alive.session_is_unlocked = False
        attempt = observer.subject.execution
        assert isinstance(attempt, Attempt)
        assert attempt.session_id is not None
        try:
            self._session_locks[number] = session_lock.acquire(
                self._ledger.packet, attempt.agent, attempt.session_id, within_s=0.0
            )
        except LockHeld:
            return  # only an earlier runner of this task can hold so new a session, and it is exiting

    def finish(self, number: int) -> None:
        """The end is recorded: nothing more of it is read."""
        self.drop(number)
        if self._position is not None:
            self._position.end(number)

    def drop(self, number: int) -> None:
        """Stop observing an execution. Its process does not notice."""
        observer = self._observers.pop(number, None)
        if observer is not None:
            observer.close()
        lock = self._session_locks.pop(number, None)
        if lock is not None:
            lock.release()

    def close(self) -> None:
        """Stop observing all of them."""
        for number in list(self._observers):
            self.drop(number)
        if self._position is not None:
            self._position.close()
            self._position = None
