"""The fields of manifest.yaml: one table, from which the check, the JSON Schema and the reference page are made."""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.pipeline.define.intents import DIGEST_POLICIES, INTENTS, WORKSPACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DAY_S = 86_400


class Field(Record):
    """One field. `*` in a path stands for any key."""

    path: str
    #: id, text, choice, whole, number, flag, texts, paths, patterns, stages, agents, variables, options.
    kind: str
    about: str
    required: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    #: What holds where it is left out; in words on the page.
    default: object = None


FIELDS = (
    Field(path="task_id", kind="id", required=True, about="The task's id."),
    Field(path="goal", kind="text", required=True, about="What is wanted, in one sentence."),
    Field(
        path="project",
        kind="text",
        about="Where the agents work; relative to the packet's folder. Default: the present directory, or --project.",
    ),
    Field(
        path="workspace",
        kind="choice",
        choices=WORKSPACES,
        default="in_place",
        about="Work in the project itself, or in a git worktree of the task's own.",
    ),
    Field(
        path="approval", kind="stages", default=(), about="Stages that start only when a person has agreed."
    ),
    Field(
        path="env", kind="variables", default=(), about="Variables that are passed on beside the usual ones."
    ),
    Field(path="notes", kind="text", about="For people; no agent sees it."),
    Field(
        path="routing.intent", kind="choice", choices=tuple(INTENTS), required=True, about="What it is for."
    ),
    Field(
        path="routing.model.*",
        kind="text",
        about="The model of an agent (`routing.model.codex`); its file must allow it.",
    ),
    Field(
        path="routing.options.*",
        kind="options",
        about="Options of an agent's adapter, by the agent's or the stage's name. A relative path of a file that is in the "
        "packet's folder is made absolute.",
    ),
    Field(
        path="routing.failover",
        kind="agents",
        default=(),
        about="Agents that take over, in this order, when one is out of quota.",
    ),
    Field(
        path="routing.pipeline.profile",
        kind="text",
        about="A profile of the intent's group. Default: the one that has the intent's name.",
    ),
    Field(path="routing.pipeline.flags.*", kind="flag", about="Turns stages off, or back on."),
    Field(path="routing.pipeline.options.*", kind="text", about="Options of the pipeline."),
    Field(
        path="scope.allow", kind="paths", required=True, about="Paths that may be changed, as in .gitignore."
    ),
    Field(
        path="scope.deny",
        kind="paths",
        required=True,
        about="Paths that must not be changed; they beat `allow`.",
    ),
    Field(
        path="scope.revert",
        kind="flag",
        default=False,
        about="Take back what lies outside the scope, and keep it as a patch. With `workspace: worktree` only.",
    ),
    Field(
        path="acceptance.commands",
        kind="texts",
        required=True,
        about="Shell commands that all must succeed; [] for none. Those of a brief hold instead.",
    ),
    Field(
        path="acceptance.criteria", kind="texts", required=True, about="What a reviewer checks, in sentences."
    ),
    Field(
        path="acceptance.timeout_sec",
        kind="whole",
        least=1,
        most=DAY_S,
        default=600,
        about="Time for each of the commands.",
    ),
    Field(
        path="budgets.retry_budget",
        kind="whole",
        most=100,
        required=True,
        about="Retries for each error signature.",
    ),
    Field(
        path="budgets.paid_call_budget",
        kind="whole",
        least=1,
        most=10_000,
        required=True,
        about="Calls of agents over the task's life; failed ones count.",
    ),
    Field(
        path="budgets.max_wallclock_sec",
        kind="whole",
        least=1,
        most=7 * DAY_S,
        required=True,
        about="Time for each call; always enforced.",
    ),
    Field(
        path="budgets.deadline_sec",
        kind="whole",
        least=1,
        most=365 * DAY_S,
        about="Active time for the whole task. Default: the setting `deadline`.",
    ),
    Field(path="budgets.budget_usd", kind="number", most=1_000_000, about="Dollars that it may cost."),
    Field(
        path="budgets.budget_tokens",
        kind="whole",
        least=1,
        most=10**12,
        about="Tokens that it may use, in and out.",
    ),
    Field(
        path="budgets.max_turns",
        kind="whole",
        least=1,
        most=1_000_000,
        about="Turns that the agents may take.",
    ),
    Field(
        path="budgets.on_limit",
        kind="choice",
        choices=("ask", "end"),
        default="ask",
        about="At a limit, ask a person or end the task.",
    ),
    Field(
        path="context.digest_policy",
        kind="choice",
        choices=DIGEST_POLICIES,
        required=True,
        about="Whether agents get the context pack or its digest.",
    ),
    Field(
        path="security.redaction_patterns",
        kind="patterns",
        default=(),
        about="Regular expressions; what they match is masked in inputs and outputs.",
    ),
    Field(
        path="security.forbidden_paths",
        kind="paths",
        default=(),
        about="Paths that must not appear in any input.",
    ),
)


def tree() -> dict[str, Any]:
    """The fields as nested maps; a leaf is a Field."""
    root: dict[str, Any] = {}
    for field in FIELDS:
        place = root
        *before, last = field.path.split(".")
        for name in before:
            place = place.setdefault(name, {})
        place[last] = field
    return root
