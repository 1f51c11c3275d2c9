"""holdfast fan-out: work on the items of a plan in parallel, and merge them one by one."""

from __future__ import annotations

from holdfast.errors import UsageError
from holdfast.model.work_plan import Plan
from holdfast.packet import load
from holdfast.views import option_values
from holdfast.views.cli.commands import submit
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.parse.task_options import OPTIONS
from holdfast.views.cli.show import out
from holdfast.views.create import fan_out
from holdfast.views.create.options import TaskOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What the tasks of items cannot have in common, or always have.
_NOT_SHARED = frozenset({"file", "session", "packet", "worktree"})
_OF_QUEUE = tuple(option for option in submit.COMMAND.options if option.dest in ("priority", "pool"))

COMMAND = Command(
    name="fan-out",
    summary="Work on the items of a plan in parallel, and merge them one by one.",
    description="Each item becomes a queued task TASK.ITEM with its own worktree. Completed work is merged "
    "into the branch holdfast/TASK if it has no conflict, is in the item's scope, and passes --accept "
    "together with everything merged before. Refused work goes back to its agent, with the reason. Prints "
    "the task's id and returns. The other options are those of 'run' and apply to each item; budgets are "
    "divided among the items.",
    examples=(
        'holdfast fan-out plan.yaml --agent claude --accept "make test"',
        "holdfast fan-out plan.yaml --agent codex --budget-usd 20 --send-back 1",
        'holdfast fan-out --split "port the tests to pytest" --agent claude --accept "make test"',
    ),
    arguments=(Argument(dest="plan", metavar="[PLAN]", required=False, completes="file"),),
    options=(
        Option(
            flags=("--split",),
            dest="split",
            metavar="GOAL",
            help="Instead of a plan: what to do. The agent writes the plan first, and may change nothing.",
        ),
        Option(
            flags=("--send-back",),
            dest="send_back",
            metavar="N",
            help=f"How often work that does not fit goes back to its agent ({fan_out.TIMES}).",
        ),
        *_OF_QUEUE,
        JSON.evolve(help="Print the new manifest instead of the id."),
        *(option for option in OPTIONS if option.dest not in _NOT_SHARED),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Check the plan, create the parent task, and start its runner."""
    times = option_values.whole_number(values["send_back"], "--send-back")
    given = {name: value for name, value in values.items() if name in TaskOptions.fields}
    options = TaskOptions(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}  # pyright: ignore
    )
    plan, goal = values["plan"], values["split"] or ""
    if (plan is None) == (not goal.strip()):
        raise UsageError(
            "give a plan or a goal to split" if plan is None else "a plan and --split exclude each other",
            hint=f"for example {COMMAND.examples[0]}",
        )
    packet = fan_out.begin(
        Plan() if plan is None else fan_out.read_plan(plan),
        options,
        ask=goal,
        times=fan_out.TIMES if times is None else times,
        priority=values["priority"],
        pool=values["pool"],
        talk=out.talk,
    )
    out.task_line(packet.task_id, load.read_manifest(packet) if values["json"] else None)
    return 0
