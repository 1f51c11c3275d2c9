"""What is known of a task, and the questions that can be asked of it. `fold.apply` alone changes it."""

from __future__ import annotations

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.spec import StageSpec, TaskSpec
from holdfast.model.stage_state import StageState
from holdfast.model.status import ENDS, Status
from holdfast.model.usage import Usage, budget_reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Task:
    """One task, folded from its journal."""

    def __init__(self) -> None:
        self.spec: TaskSpec = None  # pyright: ignore[reportAttributeAccessIssue]  # set by the first event
        self.status = Status.QUEUED
        self.reason = ""
        self.created_at = ""
        #: When it came into its present state.
        self.moved_at = ""
        self.finished_at: str | None = None
        #: When a task that waited for its turn had it; null for one that never waited.
        self.begun_at: str | None = None
        self.wake_at: str | None = None
        self.interrupt: str | None = None
        self.interrupted_at: str | None = None
        self.is_marked = False
        #: What a person answered; handed to the next attempt.
        self.answer: str | None = None
        self.run = 1
        self.deadline_s: float | None = None
        self.stages_done: dict[str, int] = {}
        self.stage_states: dict[str, StageState] = {}
        #: The attempts that run side by side now, or did last; one, unless a group of stages is due.
        self.current: list[Attempt] = []
        #: The chore of ours that runs now, or ended and was not taken in.
        self.chore: Attempt | None = None
        #: The highest number so far, and how many of them were chores.
        self.attempts = 0
        self.chores = 0
        self.voids_in_a_row = 0
        #: Calls of agents that cost something, failed ones too. Counted before the call.
        self.paid_calls = 0
        #: How often a person let it go on past its budget of calls: each time it is there once more.
        self.grants = 0
        #: How often each failure was seen: signature → count, class, first_seen, last_seen.
        self.signatures: dict[str, dict[str, Any]] = {}
        self.last_failure: ev.FailureTriaged | None = None
        #: Which one it is of those that its keeper dispatched; 0 for a task that came by another way.
        self.iteration = 0
        #: The commands of the brief, which hold instead of those of the manifest.
        self.script: str | None = None
        #: The stage for which a person's approval is awaited.
        self.approval: str | None = None
        self.consecutive = 0
        self.total_retries = 0
        #: Attempts in a row that ended at a limit of the service.
        self.waits = 0
        #: Failures of the current attempt already counted (its number), so that a restart does not count twice.
        self.planned_for = 0
        self.planned_delay_s = 0.0
        self.active_s = 0.0
        #: Up to when (wall time) attempts were counted in it.
        self.counted_until = 0.0
        #: What was used up before the last `retry`.
        self.usage_before_run, self.turns_before_run = Usage(), 0
        #: Of the attempts that have ended; `total_usage` has the open one too.
        self.usage = Usage()
        #: What each session had reported by its last attempt's end, where it counts on.
        self.session_usage: dict[str, Usage] = {}
        self.messages = 0
        self.tool_calls = 0
        #: How far the present session is with its own list, and since when.
        self.progress: ev.AgentProgress | None = None
        self.progress_at = ""
        self.requests: dict[str, ev.RequestApplied | ev.RequestRefused | None] = {}
        self.runner_crashes = 0
        self.runner: ev.RunnerStarted | None = None
        self.runner_started_at = ""

    @property
    def has_ended(self) -> bool:
        """Whether the task is in one of its ends."""
        return self.status in ENDS

    @property
    def stage(self) -> str | None:
        """The stage that is due: the first one without a marker."""
        for stage in self.spec.stages:
            if stage.name not in self.stages_done:
                return stage.name
        return None

    @property
    def due(self) -> tuple[StageSpec, ...]:
        """The stages that are due together: the first one without a marker, and its neighbours of the same group."""
        stages = self.spec.stages
        first = next((at for at, stage in enumerate(stages) if stage.name not in self.stages_done), None)
        if first is None:
            return ()
        group = stages[first].group
        if group is None:
            return (stages[first],)
        found: list[StageSpec] = []
        for stage in stages[first:]:
            if stage.group != group:
                break
            if stage.name not in self.stages_done:
                found.append(stage)
        return tuple(found)

    @property
    def attempt(self) -> Attempt | None:
        """The last attempt of an agent, of whichever stage."""
        return self.current[-1] if self.current else None

    @property
    def open_attempts(self) -> list[Attempt]:
        """Every process of the task that may live: agents and a chore."""
        everything = [*self.current, self.chore] if self.chore is not None else self.current
        return [attempt for attempt in everything if attempt.is_open]

    @property
    def is_unsettled(self) -> bool:
        """Attempts have ended, and nothing was decided about them yet."""
        return any(not attempt.is_open and not attempt.is_settled for attempt in self.current)

    @property
    def present(self) -> list[Attempt]:
        """The attempts that a stop is for: those that may live, else those that ended and were not dealt with. The intent
        decides what follows."""
        if self.open_attempts:
            return self.open_attempts
        if self.chore is not None:
            return [self.chore]
        return self.current if self.is_unsettled else []

    @property
    def session_id(self) -> str | None:
        """The session of the last attempt's stage."""
        stage_state = self.stage_states.get(self.attempt.stage) if self.attempt is not None else None
        return stage_state.session_id if stage_state is not None else None

    @property
    def paid_limit(self) -> int | None:
        """How many calls it may make; null: any number."""
        pipeline = self.spec.pipeline
        return pipeline.paid_call_budget * (1 + self.grants) if pipeline is not None else None

    @property
    def has_no_call_left(self) -> bool:
        """Whether what is due needs more calls than are left."""
        return self.paid_limit is not None and self.paid_calls + len(self.due) > self.paid_limit

    @property
    def spent(self) -> str | None:
        """Which budget of money, tokens or turns is used up, in words; null when none is."""
        return budget_reached(self.run_usage, self.run_turns, self.spec.limits)

    @property
    def is_spent(self) -> bool:
        """Whether it stands at one of its budgets."""
        return self.has_no_call_left or self.is_used_up

    @property
    def is_used_up(self) -> bool:
        """Whether it stands at a budget of money, tokens or turns: ours, or one that the agent's program counts."""
        return self.spent is not None or any(
            attempt.intent_name == "budget"
            or (attempt.ended is not None and attempt.ended.outcome in ("max_turns", "max_budget"))
            for attempt in self.current
        )

    @property
    def turns(self) -> int:
        """Turns of the agent over the whole task: one for each time that it spoke or called tools."""
        return max(self.messages, self.tool_calls)

    @property
    def total_usage(self) -> Usage:
        """Everything so far, open attempts included."""
        total = self.usage
        for attempt in self.current:
            if attempt.is_open:
                total = total.plus(self.used_by(attempt))
        return total

    @property
    def run_usage(self) -> Usage:
        """The same since the last `retry`, or since a person let it go on past a budget: they begin anew with it."""
        return self.total_usage.minus(self.usage_before_run)

    @property
    def run_turns(self) -> int:
        """Turns since the last `retry`."""
        return self.turns - self.turns_before_run

    def fresh_s(self, attempt: Attempt, lived_s: float) -> float:
        """Of an attempt's life the time that no other attempt of its wave was counted for: the deadline is about time that
        passed, not about how many worked in it."""
        if attempt.started is None or len(self.current) < 2:
            return lived_s
        return max(0.0, lived_s - max(0.0, self.counted_until - clock.parse_iso(attempt.started.started_at)))

    def used_by(self, attempt: Attempt) -> Usage:
        """What an attempt used, without what its session had before it."""
        if attempt.usage_is_of_session:
            return attempt.usage.minus(self.session_usage.get(attempt.session_id or "", Usage()))
        return attempt.usage

    def stage_state(self, stage: str) -> StageState:
        """The stage_state of a stage; a new one where nothing happened yet."""
        if stage not in self.stage_states:
            agent = next((spec.agent for spec in self.spec.stages if spec.name == stage), self.spec.agent)
            self.stage_states[stage] = StageState(stage, agent)
        return self.stage_states[stage]

    def beside(self, stage: str) -> tuple[str, ...]:
        """The stages that run side by side with one, itself included."""
        group = next((spec.group for spec in self.spec.stages if spec.name == stage), None)
        if group is None:
            return (stage,)
        return tuple(spec.name for spec in self.spec.stages if spec.group == group)

    def find(self, number: int) -> Attempt | None:
        """The attempt of a number, if it is one of the present ones."""
        for attempt in self.current:
            if attempt.number == number:
                return attempt
        return self.chore if self.chore is not None and self.chore.number == number else None
