"""A task, folded from its journal. Only `fold.apply` changes it."""

from __future__ import annotations

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Chore, Execution
from holdfast.model.outcome import MUST_WAIT
from holdfast.model.spec import StageSpec, TaskSpec
from holdfast.model.stage_state import StageState
from holdfast.model.state import Answer, Ended, Interrupted, State, Waiting
from holdfast.model.status import ENDS, Status
from holdfast.model.task_parts import Spending, Takeover
from holdfast.model.usage import Usage
from holdfast.model.usage import budget_reached as budget_reached_by
from holdfast.model.usage import over_budget as over_budget_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Task:
    """The state of one task, and queries on it."""

    def __init__(self) -> None:
        # ── what was asked for ──
        self.spec: TaskSpec = None  # pyright: ignore[reportAttributeAccessIssue]  # set by the first event
        self.created_at = ""
        #: What people changed of its spec, in order, and the run that began with the last change.
        self.amended: tuple[dict[str, Any], ...] = ()
        self.amended_in = 0
        #: The permission profile that a `retry` set.
        self.permissions: str | None = None
        #: Commands from the brief, in addition to those of the manifest.
        self.script: str | None = None
        #: The digest of env.json; empty if it was not recorded.
        self.env_sha256 = ""
        #: The digest of inputs/user_request.md; empty if there is none, None if it was not recorded.
        self.request_sha256: str | None = None

        # ── its state ──
        self.state = State(status=Status.QUEUED)
        #: Why it is in this state, and since when.
        self.reason = ""
        #: The `Cause` of its last move, if it has one.
        self.cause = ""
        self.moved_at = ""
        #: Its number among the tasks that the keeper started; 0 for a task that was not queued.
        self.iteration = 0
        #: When a task that waited in the queue was started; null if it never waited.
        self.begun_at: str | None = None

        # ── its run, and the time it took ──
        self.run = 1
        #: When its run began to work; null while that waits in the queue.
        self.run_started_at: str | None = None
        #: How long it has waited in this run: for people; and for limits, before retries, and in the queue
        #: after its start.
        self.asked_s = 0.0
        self.waited_s = 0.0
        self.deadline_s: float | None = None
        self.active_s = 0.0
        #: Wall time up to which attempts are counted in `active_s`.
        self.counted_until = 0.0

        # ── its stages ──
        self.stage_states: dict[str, StageState] = {}
        self.stages_done: dict[str, int] = {}
        #: The workspace at the start of the task; None before its first stage.
        self.first_workspace: ev.WorkspacePrepared | None = None
        #: The digest of git's settings before the first work, for checks after it; empty if there are none.
        self.settings_before = ""
        #: Best of N: candidates that do not go on, and the one that was chosen.
        self.eliminated: dict[str, ev.CandidateEliminated] = {}
        self.chosen: ev.CandidateChosen | None = None

        # ── its executions ──
        #: The current attempts: one, or one per stage of a parallel group.
        self.current: list[Attempt] = []
        #: The chore that runs, or has ended and whose result is not journalled.
        self.chore: Chore | None = None
        #: The highest number of an execution; attempts, chores and takeovers share the numbers.
        self.last_number = 0
        self.attempt_count = 0
        self.chore_count = 0
        self.takeover_count = 0
        self.voids_in_a_row = 0

        # ── what agents report ──
        self.messages = 0
        self.tool_calls = 0
        #: The current session's to-do list, and when it was reported.
        self.progress: ev.AgentProgress | None = None
        self.progress_at = ""

        # ── what it used ──
        self.spending = Spending()
        #: Paid agent calls, failed ones included. Counted before the call.
        self.paid_calls = 0
        #: Those before the last `retry`.
        self.paid_before_run = 0
        #: How often a person resumed it after it used up its paid calls; each time grants the budget again.
        self.grants = 0

        # ── failures and retries ──
        #: Failures by signature: count, class, first_seen, last_seen.
        self.signatures: dict[str, dict[str, Any]] = {}
        self.last_failure: ev.FailureTriaged | None = None
        #: Failures in a row, and all of them.
        self.failures_in_a_row = 0
        self.total_retries = 0
        #: Attempts in a row that ended at a limit of the service.
        self.limit_waits = 0
        #: The attempt whose failure is already counted, so that a restart does not count it twice.
        self.planned_for = 0
        self.planned_delay_s = 0.0

        # ── repairs ──
        #: Repairs in this run, by the stage whose gate refused the work.
        self.repairs: dict[str, int] = {}
        #: The last result of the acceptance commands, in whichever gate.
        self.accepted: ev.GateJudged | None = None
        #: All repairs of this run that began, and when. What a person sent back is none.
        self.repair_log: list[tuple[str, ev.RepairPlanned]] = []
        #: The repair that is journalled, while the move that follows it is not.
        self.repairing: ev.RepairPlanned | None = None

        # ── what became of its work ──
        #: How its work was last applied to the project; null if it was not, or there is newer work.
        self.applied: ev.WorkApplied | None = None
        #: The last look at the checks of its pull request, of the work as it is now.
        self.ci: ev.CiLooked | None = None
        #: When the first of these looks was, and whether the task has waited since the last one.
        self.ci_since = ""
        self.ci_waited = False

        # ── people ──
        #: How often it was interrupted; the number of the last interrupt.
        self.interrupts = 0
        #: A person's answer, for the next attempt.
        self.answer: str | None = None
        #: Interrupts that a person ended, the last one last.
        self.answers: list[Answer] = []
        #: Those that no attempt has got yet.
        self.new_answers: list[Answer] = []
        #: The message of a `retry` whose first attempt has not been opened; empty without one.
        self.new_retry: str | None = None
        #: The requests that were applied or refused, by id.
        self.requests: dict[str, ev.RequestApplied | ev.RequestRefused | None] = {}
        #: The last takeover of a session by a person.
        self.takeover: Takeover | None = None
        #: How it ended, as long as the agent was not told.
        self.handback: ev.TakeoverEnded | None = None

        # ── its runner and its journal ──
        self.runner: ev.RunnerStarted | None = None
        self.runner_started_at = ""
        #: Quick deaths in a row without progress (`fold.QUICK_DEATH_S`).
        self.runner_crashes = 0
        #: Why the journal is not trusted; a person has yet to be asked.
        self.distrust = ""

    # ── its state ──

    @property
    def status(self) -> Status:
        """The name of its state."""
        return self.state.status

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.state.status in ENDS

    @property
    def is_past_deadline(self) -> bool:
        """Whether its active time is used up, or it was stopped because of that."""
        is_stopped = self.attempt is not None and self.attempt.intent_name == "deadline"
        return is_stopped or (self.deadline_s is not None and self.active_s >= self.deadline_s)

    @property
    def interrupted(self) -> Interrupted | None:
        """The interrupt it waits at, if it is interrupted."""
        return self.state if isinstance(self.state, Interrupted) else None

    @property
    def open_takeover(self) -> ev.TakeoverStarted | None:
        """The takeover whose end is not journalled."""
        takeover = self.takeover
        return takeover.started if takeover is not None and takeover.ended is None else None

    @property
    def waiting(self) -> Waiting | None:
        """The wait it is in, if it waits."""
        return self.state if isinstance(self.state, Waiting) else None

    @property
    def finished_at(self) -> str | None:
        """When it ended."""
        return self.state.finished_at if isinstance(self.state, Ended) else None

    @property
    def is_past_work(self) -> bool:
        """For a task that is completing: whether only its last files are left, as a plain run has no gate."""
        return self.chore is None and self.spec.pipeline is None and self.spec.quality is None

    @property
    def awaits_ci(self) -> bool:
        """Whether its stages are done, and the checks of its pull request have yet to pass."""
        pipeline = self.spec.pipeline
        if pipeline is None or not pipeline.ci or self.stage is not None:
            return False
        return self.ci is None or self.ci.state != "passed"

    # ── its stages ──

    @property
    def stage(self) -> str | None:
        """The first stage without a done marker."""
        for stage in self.spec.stages:
            if not self.is_over(stage.name):
                return stage.name
        return None

    def is_over(self, stage: str) -> bool:
        """Whether a stage is done, or is that of an eliminated candidate."""
        return stage in self.stages_done or stage in self.eliminated

    @property
    def due(self) -> tuple[StageSpec, ...]:
        """The stages to run next: the first without a done marker, and the rest of its parallel group."""
        stages = self.spec.stages
        first = next((index for index, stage in enumerate(stages) if not self.is_over(stage.name)), None)
        if first is None:
            return ()
        group = stages[first].group
        if group is None:
            return (stages[first],)
        due: list[StageSpec] = []
        for stage in stages[first:]:
            if stage.group != group:
                break
            if not self.is_over(stage.name):
                due.append(stage)
        return tuple(due)

    def stage_spec(self, name: str) -> StageSpec | None:
        """The stage of that name, if the task has it."""
        return next((stage for stage in self.spec.stages if stage.name == name), None)

    def stage_state(self, stage: str) -> StageState:
        """The state of a stage; a new one if nothing happened yet."""
        if stage not in self.stage_states:
            spec = self.stage_spec(stage)
            self.stage_states[stage] = StageState(stage, spec.agent if spec is not None else self.spec.agent)
        return self.stage_states[stage]

    def workspace_of(self, stage: str) -> str:
        """Where the agent of a stage works. A stage that only reads works where others have written."""
        prepared = self.stage_state(stage).workspace or next(
            (
                state.workspace
                for state in self.stage_states.values()
                if state.workspace is not None and not self.has_own_worktree(state.stage)
            ),
            None,
        )
        return prepared.path if prepared is not None else self.spec.project_dir

    def has_own_worktree(self, stage: str) -> bool:
        """Whether a stage has its own worktree: a candidate that was not chosen."""
        spec = self.stage_spec(stage)
        is_candidate = spec is not None and spec.candidate > 0
        return is_candidate and (self.chosen is None or self.chosen.chosen != stage)

    def parallel_stages(self, stage: str) -> tuple[str, ...]:
        """The stages of a stage's parallel group, itself included."""
        spec = self.stage_spec(stage)
        if spec is None or spec.group is None:
            return (stage,)
        return tuple(other.name for other in self.spec.stages if other.group == spec.group)

    # ── its executions ──

    @property
    def attempt(self) -> Attempt | None:
        """The last attempt of any stage."""
        return self.current[-1] if self.current else None

    @property
    def open_executions(self) -> list[Execution]:
        """Attempts and the chore whose end is not journalled: their processes may live."""
        executions: list[Execution] = [*self.current]
        if self.chore is not None:
            executions.append(self.chore)
        return [execution for execution in executions if execution.is_open]

    @property
    def has_undecided(self) -> bool:
        """Whether ended attempts still need a decision."""
        return any(not attempt.is_open and not attempt.is_decided for attempt in self.current)

    @property
    def is_at_limit(self) -> bool:
        """Whether a current attempt ended at a limit of the service."""
        ends = [attempt.ended for attempt in self.current if attempt.ended is not None]
        return any(ended.outcome in MUST_WAIT for ended in ends)

    @property
    def stoppable(self) -> list[Execution]:
        """The executions that a stop applies to: open ones, else ended ones without a decision. A stop
        journalled for those changes the decision."""
        if self.open_executions:
            return self.open_executions
        if self.chore is not None:
            return [self.chore]
        return [*self.current] if self.has_undecided else []

    @property
    def session_id(self) -> str | None:
        """The agent's session in the stage of the last attempt."""
        state = self.stage_states.get(self.attempt.stage) if self.attempt is not None else None
        return state.session_id if state is not None else None

    def find(self, number: int) -> Execution | None:
        """The current attempt or chore with that number."""
        if self.chore is not None and self.chore.number == number:
            return self.chore
        return self.find_attempt(number)

    def find_attempt(self, number: int) -> Attempt | None:
        """The current attempt with that number."""
        return next((attempt for attempt in self.current if attempt.number == number), None)

    @property
    def begun_retries(self) -> int:
        """The retries that have begun; `total_retries` has also one that is planned."""
        return min(self.total_retries, max(0, self.attempt_count - 1))

    @property
    def asked_by(self) -> str:
        """Who interrupted it, as in `Answer.asked_by`."""
        if self.interrupted is None:
            return ""
        return "person" if self.interrupted.by_request else self.asker_of(self.interrupted.question)

    def asker_of(self, question: str) -> str:
        """The same for the question of an interrupt that stopped its agent, also before it is recorded."""
        intent = self.attempt.intent if self.attempt is not None else None
        if intent is None or intent.intent != "interrupt" or intent.reason != question:
            return ""
        return "agent" if intent.request is None else "person"

    # ── its budgets ──

    @property
    def paid_limit(self) -> int | None:
        """How many paid calls it may make; null for any number."""
        pipeline = self.spec.pipeline
        return pipeline.paid_call_budget * (1 + self.grants) if pipeline is not None else None

    @property
    def has_no_call_left(self) -> bool:
        """Whether the due stages need more paid calls than are left."""
        return self.paid_limit is not None and self.paid_calls + len(self.due) > self.paid_limit

    @property
    def budget_reached(self) -> str | None:
        """The budget of money, tokens or turns that is used up, as a sentence; null if none is."""
        return budget_reached_by(self.run_usage, self.run_turns, self.spec.limits)

    @property
    def over_budget(self) -> str:
        """`$5.00 of $1.00`, if it used more than its budget; empty if not."""
        return over_budget_by(self.run_usage, self.run_turns, self.spec.limits)

    @property
    def has_reached_any_budget(self) -> bool:
        """Whether it has reached one of its budgets."""
        return self.has_no_call_left or self.has_used_up_budget

    @property
    def has_used_up_budget(self) -> bool:
        """Whether a budget of money, tokens or turns is used up: the task's, or one that the agent has."""
        return self.budget_reached is not None or any(
            attempt.intent_name == "budget"
            or (attempt.ended is not None and attempt.ended.outcome in ("max_turns", "max_budget"))
            for attempt in self.current
        )

    @property
    def turns(self) -> int:
        """Turns of the agent in the whole task: one per message or tool call."""
        return max(self.messages, self.tool_calls)

    @property
    def total_usage(self) -> Usage:
        """All usage so far, open attempts included."""
        total = self.spending.usage
        for attempt in self.current:
            if attempt.is_open:
                total = total.plus(self.used_by(attempt))
        return total

    @property
    def run_usage(self) -> Usage:
        """Usage since the last `retry`, or since a person resumed it at a budget."""
        return self.total_usage.minus(self.spending.usage_before_run)

    @property
    def usage_since_retry(self) -> Usage:
        """Usage since the last `retry`, for who counts each end of a task."""
        return self.total_usage.minus(self.spending.usage_before_retry)

    @property
    def run_turns(self) -> int:
        """Turns since the last `retry`."""
        return self.turns - self.spending.turns_before_run

    def used_by(self, attempt: Attempt) -> Usage:
        """What an attempt used, without what its session had used before."""
        if attempt.usage_is_of_session:
            return attempt.usage.minus(self.spending.of_sessions.get(attempt.session_id or "", Usage()))
        return attempt.usage

    def uncounted_s(self, execution: Execution, lived_s: float) -> float:
        """The part of an execution's life that does not overlap with counted parallel ones: the deadline
        limits elapsed time, not the sum over agents."""
        if execution.started is None or len(self.current) < 2:
            return lived_s
        overlap_s = self.counted_until - clock.parse_iso(execution.started.started_at)
        return max(0.0, lived_s - max(0.0, overlap_s))
