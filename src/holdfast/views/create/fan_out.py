"""Start a fan-out: check its plan, and create the task that conducts it. For every view."""

from __future__ import annotations

from holdfast import ids, own_python, paths
from holdfast.agents import registry
from holdfast.errors import UsageError
from holdfast.model import work_plan
from holdfast.model.fan_out import LABEL
from holdfast.model.spec import FanOutSpec, Limits, StageSpec, TaskSpec, short_name
from holdfast.store import foreign
from holdfast.store.layout import Home
from holdfast.views.create import from_options, queue_options, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.work_plan import Plan
    from holdfast.store.layout import Packet
    from holdfast.views.create.new_task import Talk
    from holdfast.views.create.options import TaskOptions

TIMES, MAX_TIMES = 2, 10
_GOAL_CHARS, _SHOWN = 500, 5
_DESCRIBED = "docs/guides/fan-out.md describes a plan"


def read_plan(path: str) -> Plan:
    """The plan in a file: YAML, JSON, or a report with a block of JSON. Raises UsageError, UnreadableFile."""
    from holdfast.pipeline.define import yaml_file

    foreign.refuse_way_out(path)
    data = yaml_file.contents(path)
    if path.endswith(".md"):
        plan = work_plan.in_report(data.decode("utf-8", "replace"))
    else:
        problems: list[Any] = []
        node = yaml_file.parse(data, path, problems)
        if problems or node is None:
            raise UsageError(
                f"{path}, line {problems[0].line}: {problems[0].message}", hint=problems[0].hint or _DESCRIBED
            )
        plan = work_plan.of(yaml_file.plain(node))
    return _usable(plan, f"the plan {path}")


def checked_plan(data: object) -> Plan:
    """The plan in a value. Raises UsageError."""
    return _usable(work_plan.of(data), "the plan")


def _usable(plan: Plan, name: str) -> Plan:
    if plan.problems:
        raise UsageError(
            f"{name} cannot be used: {'; '.join(plan.problems[:_SHOWN])}",
            hint=_DESCRIBED,
        )
    return plan


def begin(
    plan: Plan,
    options: TaskOptions,
    *,
    ask: str = "",
    times: int = TIMES,
    priority: str | None = None,
    pool: str | None = None,
    may_be_full: bool = True,
    talk: Talk,
) -> Packet:
    """Create the parent and start its runner. `options` are those of each item; id and name are the parent's.

    With `ask`, an agent writes the plan, and `plan` is empty. `may_be_full` as in `start.submit`. Raises
    UsageError, DuplicateTask, ….
    """
    home = Home(paths.ensure_home(paths.home()))
    prompt = ask or plan.items[0].prompt
    given = options.evolve(prompt=prompt, worktree=True, id=None, name=None)
    shared = from_options.read(given.values(), verb="fan-out", talk=talk)
    if not may_be_full:
        start.refuse_full(shared.spec)
    queue = queue_options.read(home, shared.settings, priority=priority, pool=pool, after=(), not_before=None)
    fan_out = FanOutSpec(
        items=plan.items,
        ask=ask,
        child=shared.spec.evolve(queue=queue).to_json(),
        times=min(times, MAX_TIMES),
    )
    goal = shared.spec.goal if ask else plan.goal or _titles(plan)
    parent = _parent(fan_out, options, shared.spec, goal)
    return start.begin(home, shared.evolve(spec=parent, prompt=None), talk=talk)


def _titles(plan: Plan) -> str:
    return "; ".join(item.title for item in plan.items)[:_GOAL_CHARS]


def _parent(fan_out: FanOutSpec, options: TaskOptions, child: TaskSpec, goal: str) -> TaskSpec:
    """The task that conducts the others. It has no budget of its own, because it calls no model."""
    name = options.name or short_name(goal)
    task_id = ids.new_task_id(name) if options.id is None else ids.check_task_id(options.id)
    longest = max((item.id for item in fan_out.items), key=len, default="x" * work_plan.ID_CHARS)
    if not ids.is_safe_name(f"{task_id}.{longest}", 64):
        raise UsageError(
            f"the ids of its items would be longer than 64 characters: {task_id}.…",
            hint="give a shorter --id",
        )
    needed = [
        name for each in (child.agent, *child.failover) for name in registry.adapter(each).capabilities.env
    ]
    return TaskSpec(
        task_id=task_id,
        task_name=name,
        goal=goal,
        labels={**child.labels, LABEL: task_id},
        agent="command",
        command=own_python.command("holdfast.fanout"),
        project_dir=child.project_dir,
        project_real=child.project_real,
        stages=(StageSpec(name="fan_out", agent="command"),),
        limits=Limits(deadline_s=None, base_interval_s=child.limits.base_interval_s),
        # A later `retry` captures what its tasks need.
        env=tuple(dict.fromkeys((*child.env, *needed))),
        env_file=child.env_file,
        trust=child.trust,
        workspace="worktree",
        fan_out=fan_out,
    )
