"""The task specification: the validated contents of manifest.yaml, as the runner needs them."""

from __future__ import annotations

from holdfast.model.record import Record

#: Maximum length of a name derived from the goal.
_NAME_CHARS = 60
#: Where projects keep their dependencies, which git ignores.
DEPENDENCIES = (".venv", "venv", "node_modules")


def short_name(text: str) -> str:
    """A task name from a goal, a title or a command: its first line, shortened with an ellipsis."""
    line = text.partition("\n")[0]
    return line if len(line) <= _NAME_CHARS else line[: _NAME_CHARS - 1].rstrip() + "…"


class Limits(Record):
    """Limits of one task, fixed when it is created: flag > environment > configuration > adapter."""

    base_interval_s: float = 30.0
    max_interval_s: float = 300.0
    grace_s: float = 30.0
    #: Limit of the active time; null: no limit.
    deadline_s: float | None = 18000.0
    #: Retries over the whole life of the task; never reset.
    max_retries: int = 10
    #: Silence after which the grace period starts; null: silence is not limited (text-mode commands).
    stale_s: float | None = None
    #: How long an open tool call, a busy process tree or an announced wait may excuse silence.
    tool_ceiling_s: float = 3600.0
    busy_ceiling_s: float = 3600.0
    wait_ceiling_s: float = 21600.0
    #: How long the agent may retry the model's service without an answer of the model.
    retry_ceiling_s: float = 1800.0
    #: Time after the start during which silence does not count.
    dispatch_wait_s: float = 0.0
    #: Time its process may take to exit after the result.
    linger_s: float = 10.0
    #: Pause between the first stop signal and the next; null: the adapter's default.
    stop_pause_s: float | None = None
    #: Budgets over the whole life of the task; null: no limit. `on_limit` applies at each.
    budget_usd: float | None = None
    budget_tokens: int | None = None
    max_turns: int | None = None
    #: Time limit of one attempt; null: only the deadline applies.
    timeout_s: float | None = None
    #: At a budget or the time limit of an attempt: `ask` a person, or `end` the task.
    on_limit: str = "ask"
    #: Limit of the raw output of one attempt; 0: no limit.
    output_bytes: int = 10 * 1024**3
    #: Limit of the address space of each agent process; null: that of the process that created the task.
    memory_bytes: int | None = None


class StageSpec(Record):
    """One stage of a task."""

    name: str
    agent: str
    model: str | None = None
    #: `impl`, `review`, …: selects the prompt template and the gate. `run`: a plain task.
    role: str = "run"
    effort: str | None = None
    #: Adjacent stages of the same group run in parallel; the next stage waits for all of them.
    group: str | None = None
    #: Time limit of one call from the agent's configuration; the limit of the task applies as well.
    timeout_s: float | None = None
    #: A person must approve it before it starts.
    approval: bool = False
    #: It may change the workspace: its scope is checked, and it gets exclusive access.
    writes: bool = False
    #: The permission profile: read, edit or full. Empty: edit if it writes, else read.
    permissions: str = ""
    #: Best of N: the stage of the packet that the candidates and their judge stand for; empty for others.
    contest: str = ""
    #: The number of a candidate; 0 for other stages.
    candidate: int = 0
    #: Options of the adapter; they override those of the task.
    options: dict[str, object] = {}


class PipelineSpec(Record):
    """The validated and resolved settings of a task with a pipeline."""

    intent: str
    #: impl, review or plan.
    group: str
    profile: str
    scope_allow: tuple[str, ...] = ()
    scope_deny: tuple[str, ...] = ()
    acceptance_commands: tuple[str, ...] = ()
    acceptance_criteria: tuple[str, ...] = ()
    #: Per command.
    acceptance_timeout_s: float = 600.0
    #: Commands that prepare a clean room, and directories of the project that it gets.
    acceptance_setup: tuple[str, ...] = ()
    acceptance_links: tuple[str, ...] = DEPENDENCIES
    #: False: the commands run where the agent worked.
    acceptance_clean: bool = True
    #: The worst severity of a finding with which a review passes its gate; empty: findings fail nothing.
    max_severity: str = ""
    #: Checks of other packages that every stage must pass.
    checks: tuple[str, ...] = ()
    #: The gate after the last stage: a pull request whose checks must pass, as `draft` or `ready`; empty: no
    #: such gate.
    ci: str = ""
    #: How long its checks may take.
    ci_timeout_s: float = 3600.0
    #: The remote, and its address when the task was created: nothing is pushed to another one.
    ci_remote: str = ""
    ci_url: str = ""
    #: The branch to merge into; empty: the default of the forge.
    ci_base: str = ""
    #: How often work that its gate refused goes back to an agent, and the stage to which it goes if the
    #: acceptance or the checks of a pull request failed; null: the last stage before it that writes.
    repair_times: int = 0
    repair_to: str | None = None
    #: Retries per failure signature.
    retry_budget: int = 2
    paid_call_budget: int = 10
    #: Time limit of one call, regardless of other settings.
    max_wallclock_s: float = 900.0
    digest_policy: str = "auto"
    redaction_patterns: tuple[str, ...] = ()
    forbidden_paths: tuple[str, ...] = ()
    #: In a worktree: revert changes outside the scope, and keep them as a patch.
    revert_out_of_scope: bool = False
    #: Time limit of a parallel group; stages still running then are stopped.
    join_timeout_s: float | None = None
    #: The source of each resolved value, by path (`stages.codex_impl.model`).
    sources: dict[str, str] = {}


class QualitySpec(Record):
    """The checks of a plain run: commands before and after the work, and what to do if one fails.

    All but the acceptance commands are the repository's.
    """

    #: Run before the agent starts. Failures do not stop it; they are added to its prompt.
    pre_work: tuple[str, ...] = ()
    #: Run after the agent: each must exit with 0.
    post_work: tuple[str, ...] = ()
    #: Run after the agent: each must exit with 0 and print nothing.
    expect_empty: tuple[str, ...] = ()
    #: The agent must leave no uncommitted changes except those that existed before.
    clean_git: bool = False
    #: If a check after the agent fails: `interrupt`, `warn` or `file_issue`.
    action: str = "interrupt"
    #: With `file_issue`: the command to run, with the reasons on stdin.
    issue_command: str | None = None
    #: Per command.
    timeout_s: float = 600.0
    #: The acceptance commands of `--accept`: they run last, in a clean room, whatever `action` is.
    accept: tuple[str, ...] = ()
    #: How often work that they refuse goes back to the agent's session.
    repair_times: int = 0

    @property
    def commands(self) -> int:
        """The number of commands before or after the work, whichever is larger.

        Those of `accept` run once more on the tree of the task's start.
        """
        after = len(self.post_work) + len(self.expect_empty) + 2 * len(self.accept)
        return max(len(self.pre_work), after)

    @property
    def looks_before(self) -> bool:
        """Whether there are checks before the agent starts."""
        return bool(self.pre_work) or self.clean_git

    @property
    def looks_after(self) -> bool:
        """Whether there are checks after the work."""
        return bool(self.post_work) or bool(self.expect_empty) or self.clean_git or bool(self.accept)


class QueueSpec(Record):
    """The queue settings of a task. Kept in the packet, so that the queue can be rebuilt."""

    #: Higher runs first.
    priority: int = 5
    pool: str = "default"
    #: Tasks that must be completed first.
    after: tuple[str, ...] = ()
    not_before: str | None = None


class SandboxSpec(Record):
    """The sandbox of a task's agents."""

    #: Whether they have network.
    network: bool = True
    #: Without network: the hosts that they reach through a proxy (`api.example.com`, `*.example.com:8443`).
    hosts: tuple[str, ...] = ()


class PlanItem(Record):
    """One item of a fan-out's plan."""

    id: str
    title: str
    prompt: str
    #: Items whose work must be merged before this one starts.
    depends_on: tuple[str, ...] = ()
    #: Files, and directories with a final slash, that it may change; empty: any.
    scope: tuple[str, ...] = ()


class FanOutSpec(Record):
    """A task whose items become tasks of their own, and which merges their work."""

    nested = {"items": PlanItem}

    #: Empty if an agent writes the plan.
    items: tuple[PlanItem, ...] = ()
    #: What that agent is asked to split into items.
    ask: str = ""
    #: The spec that the tasks of items share. Id, name and goal are those of the item; the budgets are those
    #: of all of them together.
    child: dict[str, object]
    #: How often work that does not fit the others goes back to its agent.
    times: int = 2

    @property
    def quality(self) -> QualitySpec:
        """The acceptance commands of its items, which run again at every merge."""
        data = self.child.get("quality")
        return QualitySpec.from_json(data) if isinstance(data, dict) else QualitySpec()  # pyright: ignore


class TaskSpec(Record):
    """One task."""

    nested = {
        "limits": Limits,
        "stages": StageSpec,
        "pipeline": PipelineSpec,
        "quality": QualitySpec,
        "queue": QueueSpec,
        "sandbox": SandboxSpec,
        "fan_out": FanOutSpec,
    }

    schema: str = "holdfast.task/1"
    task_id: str
    task_name: str
    goal: str
    #: What its user calls it by, to find it again: `--label key=value`.
    labels: dict[str, str] = {}
    agent: str
    model: str | None = None
    #: For the agent `command`: the command line.
    command: list[str] | None = None
    #: Options of the adapter.
    options: dict[str, object] = {}
    project_dir: str
    #: Its real path when the task was created: a link that takes its place later is not followed. Empty:
    #: unknown, as in tasks of older versions.
    project_real: str = ""
    stages: tuple[StageSpec, ...]
    limits: Limits
    #: Policy for processes that outlive a successful agent: report, kill or keep.
    leftovers: str = "report"
    #: Names of environment variables to capture in addition to the usual ones; never their values.
    env: tuple[str, ...] = ()
    #: A file with more variables; `retry` reads it again.
    env_file: str | None = None
    #: A digest of its variables: in a project, an agent can change them. Empty without any.
    env_file_sha256: str = ""
    #: What the project brought and the user trusted: `by` (`holdfast trust` or `--trust-project`), `project`,
    #: `parts` (file → digest), and `env_file` (the SHA-256 of the project's environment file). The same of a
    #: packet or work item inside a project is in `packet` or `items`.
    trust: dict[str, object] = {}
    #: Agents that take over, in this order, if one is out of quota or unavailable.
    failover: tuple[str, ...] = ()
    #: Conditions that ask no person: request, error, blocked, input, output, budget, timeout, quality.
    interrupt_off: tuple[str, ...] = ()
    #: A session of the agent to continue.
    session: str | None = None
    #: Where the agents write: `in_place`, or in a `worktree` of the task.
    workspace: str = "in_place"
    #: The branch at which the worktree starts; null: what is checked out in the project.
    base: str | None = None
    #: The bootstrap template (a path, or `default`); null: no bootstrap.
    bootstrap: str | None = None
    #: Variables of the bootstrap, in addition to those that holdfast sets.
    variables: dict[str, str] = {}
    #: The work item of this task: id, details, source.
    work: dict[str, object] = {}
    pipeline: PipelineSpec | None = None
    #: The repository's checks, for a task without a pipeline.
    quality: QualitySpec | None = None
    queue: QueueSpec | None = None
    #: The task whose agent started this one, or whose plan has it as an item; null: a person did.
    parent: str | None = None
    #: The items of a fan-out; null for other tasks.
    fan_out: FanOutSpec | None = None
    #: Agents run in bubblewrap; null: they do not.
    sandbox: SandboxSpec | None = None
    #: What a person should know about this task from its start, such as a budget that no agent can keep.
    notes: tuple[str, ...] = ()
