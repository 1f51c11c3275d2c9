"""An observer watches one open execution through its states: starting, alive, dying, ended.

It only observes, and acts when told; the planner decides. Each state has the data and the actions that exist
in it, and says itself what it turns into. A runner that adopts an agent makes the same observer as the one
that started it.
"""

from __future__ import annotations

from holdfast.runner.attempt.alive import Alive
from holdfast.runner.attempt.dying import Dying
from holdfast.runner.attempt.ended import Ended
from holdfast.runner.attempt.open import Opened
from holdfast.runner.attempt.starting import Starting
from holdfast.runner.attempt.subject import Subject
from holdfast.runner.plan.facts import ExecutionFacts


class Observer:
    """What a runner holds in memory about one open execution."""

    def __init__(self, subject: Subject, opened: Opened | None) -> None:
        self.subject = subject
        self._state: Starting | Alive | Dying | Ended = Starting(subject, opened)

    def observe(self, ready: set[str]) -> ExecutionFacts:
        """What can be seen now. `ready` are the waiter's names of this wake-up."""
        self._state = self._state.advance(ready)
        return self._state.facts(ready)

    @property
    def starting(self) -> Starting:
        """Its state before the start is journalled."""
        assert isinstance(self._state, Starting)
        return self._state

    @property
    def alive(self) -> Alive:
        """Its state while the process lives."""
        assert isinstance(self._state, Alive)
        return self._state

    @property
    def ended(self) -> Ended:
        """Its state after the end."""
        assert isinstance(self._state, Ended)
        return self._state

    @property
    def is_alive(self) -> bool:
        """Whether its process lives, as far as the last look knows."""
        return isinstance(self._state, Alive)

    def begin(self) -> None:
        """The start is journalled."""
        self._state = self.starting.begin()

    def wake_recorder(self) -> float:
        """Wake the recorder, which owes a record; returns for how long."""
        assert isinstance(self._state, (Starting, Dying))
        return self._state.record.wake(self.subject.directory.lock)

    def close(self) -> None:
        """Stop watching. The agent does not notice."""
        self.subject.close()
