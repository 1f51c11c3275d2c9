"""What was asked: the checked contents of manifest.yaml, as the runner needs them."""

from __future__ import annotations

from holdfast.model.record import Record

#: A task's name where nobody gave one; what it leaves out is in the goal.
_NAME_CHARS = 60


def short_name(text: str) -> str:
    """The first line of a goal, a title or a command as a task's name, with a mark where it goes on."""
    line = text.partition("\n")[0]
    return line if len(line) <= _NAME_CHARS else line[: _NAME_CHARS - 1].rstrip() + "…"


class Limits(Record):
    """Thresholds of one task, settled when it is made: flag, environment, configuration, adapter, in this order."""

    base_interval_s: float = 30.0
    max_interval_s: float = 300.0
    grace_s: float = 30.0
    #: Active time; null means none.
    deadline_s: float | None = 18000.0
    #: Total of retries over the task's life; never resets.
    max_retries: int = 10
    #: Silence after which the grace period starts; null leaves silence alone (text-mode commands).
    stale_s: float | None = None
    #: How long an open tool call, a busy tree or an announced wait may excuse silence.
    tool_ceiling_s: float = 3600.0
    busy_ceiling_s: float = 3600.0
    wait_ceiling_s: float = 21600.0
    #: Time after a start in which silence is not judged.
    dispatch_wait_s: float = 0.0
    #: How long a process may live on after its result before it is stopped.
    linger_s: float = 10.0
    #: Overrides the pause between the first stop signal and the next; null leaves it to the adapter.
    stop_pause_s: float | None = None
    #: Budgets over the task's whole life; null means none. At one of them the agent is stopped and a person is asked.
    budget_usd: float | None = None
    budget_tokens: int | None = None
    max_turns: int | None = None
    #: Time that one attempt may take; null means none but the deadline.
    timeout_s: float | None = None
    #: What happens at a budget or a time limit of an attempt: `ask` a person, or `end` the task.
    on_limit: str = "ask"
    #: Raw output of one attempt; 0 means no limit.
    output_bytes: int = 10 * 1024**3
    #: Address space of each process of the agent; null means what the task's maker had.
    memory_bytes: int | None = None


class StageSpec(Record):
    """One stage as asked for."""

    name: str
    agent: str
    model: str | None = None
    #: What the agent is asked to be: `impl`, `review`, … It names the prompt's template and the gate. `run`: a plain task.
    role: str = "run"
    effort: str | None = None
    #: Neighbours of one group run side by side, and the next stage waits for all of them.
    group: str | None = None
    #: Time that one call may take by the agent's configuration; the packet's own limit holds beside it.
    timeout_s: float | None = None
    #: A person must agree before it starts.
    approval: bool = False
    #: It may change the workspace: its scope is checked, and it has the workspace to itself.
    writes: bool = False
    #: Options of the adapter, over those of the task.
    options: dict[str, object] = {}


class PipelineSpec(Record):
    """What a written packet asks for beyond a plain run, checked and resolved."""

    intent: str
    #: impl, review or plan.
    group: str
    profile: str
    scope_allow: tuple[str, ...] = ()
    scope_deny: tuple[str, ...] = ()
    acceptance_commands: tuple[str, ...] = ()
    acceptance_criteria: tuple[str, ...] = ()
    #: For each of the commands.
    acceptance_timeout_s: float = 600.0
    #: Retries for each failure signature.
    retry_budget: int = 2
    paid_call_budget: int = 10
    #: Time that one call may take, whatever else is configured.
    max_wallclock_s: float = 900.0
    digest_policy: str = "auto"
    redaction_patterns: tuple[str, ...] = ()
    forbidden_paths: tuple[str, ...] = ()
    #: In a worktree: take back what lies outside the scope, and keep it as a patch.
    revert_out_of_scope: bool = False
    #: Time that the stages of one group may take together; then stragglers are stopped.
    join_timeout_s: float | None = None
    #: Where each resolved value came from, by its path (`stages.codex_impl.model`).
    sources: dict[str, str] = {}


class QualitySpec(Record):
    """What a repository asks of work that is done in it: commands before and after, and what follows where one fails."""

    #: Before the agent begins. They never stop it: what fails is told to it.
    pre_work: tuple[str, ...] = ()
    #: After it: each must exit with 0.
    post_work: tuple[str, ...] = ()
    #: After it: each must exit with 0 and print nothing.
    expect_empty: tuple[str, ...] = ()
    #: Nothing may be uncommitted after it but what was before.
    clean_git: bool = False
    #: What follows where something after it fails: `interrupt`, `warn` or `file_issue`.
    action: str = "interrupt"
    #: With `file_issue`: what is run, with the reasons on its stdin.
    issue_command: str | None = None
    #: For each of the commands.
    timeout_s: float = 600.0

    @property
    def commands(self) -> int:
        """How many there are on the larger side of the work."""
        return max(len(self.pre_work), len(self.post_work) + len(self.expect_empty))

    @property
    def looks_before(self) -> bool:
        """Whether something is to be looked at before the agent begins."""
        return bool(self.pre_work) or self.clean_git

    @property
    def looks_after(self) -> bool:
        """Whether its work goes through a gate."""
        return bool(self.post_work) or bool(self.expect_empty) or self.clean_git


class QueueSpec(Record):
    """How a task stands in the queue. Kept in the packet, from which the queue can be rebuilt."""

    #: Higher goes first.
    priority: int = 5
    pool: str = "default"
    #: Tasks that must be completed first.
    after: tuple[str, ...] = ()
    not_before: str | None = None


class TaskSpec(Record):
    """One task as asked for."""

    nested = {
        "limits": Limits,
        "stages": StageSpec,
        "pipeline": PipelineSpec,
        "quality": QualitySpec,
        "queue": QueueSpec,
    }

    schema: str = "holdfast.task/1"
    task_id: str
    task_name: str
    goal: str
    agent: str
    model: str | None = None
    #: For the agent `command`: what to run.
    command: list[str] | None = None
    #: Options of the adapter, by its own names.
    options: dict[str, object] = {}
    project_dir: str
    stages: tuple[StageSpec, ...]
    limits: Limits
    #: What happens to processes that outlive a successful agent: report, kill or keep.
    leftovers: str = "report"
    #: Names of variables that are captured beside the usual ones; never their values.
    env: tuple[str, ...] = ()
    #: The file whose variables were added; `retry` reads it again.
    env_file: str | None = None
    #: Agents that take over, in this order, when one is out of quota or unavailable.
    failover: tuple[str, ...] = ()
    #: Conditions at which nobody is asked: request, error, blocked, input, output, budget, timeout, quality.
    interrupt_off: tuple[str, ...] = ()
    #: A session of the agent that this task goes on with.
    session: str | None = None
    #: Where the agents write: `in_place`, or a `worktree` of the task's own.
    workspace: str = "in_place"
    #: The template of the bootstrap (a path, or `default`); null: none.
    bootstrap: str | None = None
    #: Variables of the bootstrap, beside those that holdfast sets.
    variables: dict[str, str] = {}
    #: The work item that this task came from: id, details, source.
    work: dict[str, object] = {}
    pipeline: PipelineSpec | None = None
    #: What the repository asks of a task without pipeline.
    quality: QualitySpec | None = None
    queue: QueueSpec | None = None
