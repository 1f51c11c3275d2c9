"""What was asked: the checked contents of manifest.yaml, as the runner needs them."""

from __future__ import annotations

from holdfast.model.record import Record


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
    #: Raw output of one attempt; 0 means no limit.
    output_bytes: int = 10 * 1024**3


class StageSpec(Record):
    """One stage as asked for."""

    name: str
    agent: str
    model: str | None = None


class TaskSpec(Record):
    """One task as asked for."""

    nested = {"limits": Limits, "stages": StageSpec}

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
