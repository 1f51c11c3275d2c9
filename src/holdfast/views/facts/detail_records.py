"""The records of `detail`: a stage, a budget, the position in the queue, a worktree, advice, a leftover."""

from __future__ import annotations

from holdfast.model.next_action import Suggestion
from holdfast.model.record import Record


class Stage(Record):
    """One stage, and what its attempts took."""

    name: str
    #: pending, active, done, failed or eliminated.
    state: str
    agent: str | None = None
    model: str | None = None
    role: str | None = None
    effort: str | None = None
    #: Stages of the same group run in parallel.
    group: str | None = None
    #: The number of a candidate; 0 for other stages.
    candidate: int = 0
    is_chosen: bool = False
    writes: bool | None = None
    permissions: str | None = None
    #: A person must approve it before it starts.
    needs_approval: bool | None = None
    attempt: int | None = None
    outcome: str | None = None
    #: passed or failed.
    gate: str | None = None
    decision: str = ""
    findings: dict[str, int] = {}
    session_id: str | None = None
    #: Its paid calls, how long its agents ran, and since when one runs.
    calls: int | None = None
    seconds: float | None = None
    since: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class Budget(Record):
    """What may be used of something, and what was. `used` counts from where the limit does."""

    #: cost_usd, tokens, turns, paid_calls, retries or active_s.
    name: str
    used: float | None
    #: null: no limit.
    limit: float | None
    #: More was used: some calls or takeovers were not reported.
    is_at_least: bool = False


class QueuePosition(Record):
    """The task's position in the queue."""

    state: str
    #: Why it waits; empty if it is just not its turn.
    reason: str
    #: The failed task for which it is held; empty if there is none.
    held_by: str = ""


class Worktree(Record):
    """The task's worktree."""

    path: str
    branch: str


class Advice(Record):
    """What to do next."""

    nested = {"steps": Suggestion}

    #: A name of the closed set in `model.next_action`.
    name: str
    why: str
    #: The best first.
    steps: tuple[Suggestion, ...]


class Leftover(Record):
    """A process that outlived a successful agent."""

    pid: int
    command: str
