"""Parts of a `Task` whose fields change together. Only `fold.apply` changes them."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.usage import Usage


class Takeover:
    """A person goes on, or went on, in the agent's session."""

    def __init__(self, started: ev.TakeoverStarted, started_at: str) -> None:
        self.started = started
        self.started_at = started_at
        #: How it ended; null: not yet.
        self.ended: ev.TakeoverEnded | None = None
        self.ended_at = ""


class Spending:
    """Tokens and money: what a task used, from where its budgets count, and what was not reported."""

    def __init__(self) -> None:
        #: Of ended attempts; `Task.total_usage` includes open ones.
        self.usage = Usage()
        #: Usage and turns before the last `retry`, or before a person resumed it at a budget.
        self.usage_before_run, self.turns_before_run = Usage(), 0
        #: Usage before the last `retry`.
        self.usage_before_retry = Usage()
        #: Usage of each session at the end of its last attempt, for programs that report usage per session.
        self.of_sessions: dict[str, Usage] = {}
        #: Ended attempts and takeovers whose cost was not reported, and their sessions.
        self.unpriced: dict[int, str | None] = {}
        #: Takeovers whose tokens were not reported, and their sessions.
        self.uncounted: dict[int, str | None] = {}

    def begin_run(self, turns: int) -> None:
        """Budgets count from here."""
        self.usage_before_run, self.turns_before_run = self.usage, turns

    def begin_retry(self, turns: int) -> None:
        """An end was counted before this; the next one counts from here."""
        self.usage_before_retry = self.usage
        self.begin_run(turns)
