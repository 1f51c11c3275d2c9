"""The fields of manifest.yaml: one table for the check, the JSON Schema and the reference page."""

from __future__ import annotations

from holdfast.model.permissions import PROFILES
from holdfast.model.record import Record
from holdfast.model.spec import DEPENDENCIES
from holdfast.pipeline.define.intents import CI, DIGEST_POLICIES, INTENTS, WORKSPACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DAY_S = 86_400


class Field(Record):
    """One field. `*` in a path stands for any key."""

    path: str
    #: id, text, choice, whole, number, flag, texts, paths, patterns, stages, agents, variables, labels,
    #: options.
    kind: str
    about: str
    required: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    #: The value if the field is left out.
    default: object = None


FIELDS = (
    Field(path="task_id", kind="id", required=True, about="The id of the task."),
    Field(path="goal", kind="text", required=True, about="The goal in one sentence."),
    Field(
        path="project",
        kind="text",
        about="Where the agents work; relative to the packet's folder. "
        "Default: `--project`, or the current directory.",
    ),
    Field(
        path="workspace",
        kind="choice",
        choices=WORKSPACES,
        default="in_place",
        about="Work in the project itself, or in a git worktree.",
    ),
    Field(
        path="sandbox",
        kind="choice",
        choices=("off", "on"),
        about="Run agents in bubblewrap. Default: the setting `sandbox`; `off` does not override it.",
    ),
    Field(
        path="network",
        kind="text",
        about="Network of sandboxed agents: `on`, `off`, or hosts (`api.anthropic.com,*.pypi.org`). "
        "Default: the setting `network`; the stricter one holds.",
    ),
    Field(
        path="approval", kind="stages", default=(), about="Stages that start only after a person approved."
    ),
    Field(
        path="env",
        kind="variables",
        default=(),
        about="Environment variables to pass on, in addition to the usual ones.",
    ),
    Field(
        path="permissions",
        kind="choice",
        choices=PROFILES,
        about="The permission profile of the stages that write. Default: the setting `permissions`, or "
        "`edit`.",
    ),
    Field(
        path="labels",
        kind="labels",
        default=(),
        about="Labels to find the task by (`batch=nightly`). `--label` adds to them.",
    ),
    Field(path="notes", kind="text", about="Notes for people; agents do not see them."),
    Field(
        path="needs_trust",
        kind="flag",
        default=False,
        about="The packet needs `holdfast trust`, wherever it is. `holdfast new` writes it if the commands "
        "come from a plan inside a project.",
    ),
    Field(
        path="routing.intent",
        kind="choice",
        choices=tuple(INTENTS),
        required=True,
        about="What the packet is for.",
    ),
    Field(
        path="routing.agent",
        kind="text",
        about="One agent for all stages, whatever the profile names. Stages that become equal run once.",
    ),
    Field(
        path="routing.model.*",
        kind="text",
        about="The model of an agent (`routing.model.codex`); its agent file must allow it.",
    ),
    Field(
        path="routing.options.*",
        kind="options",
        about="Options of the adapter, by agent or stage name. The relative path of a file in the packet's "
        "folder is made absolute.",
    ),
    Field(
        path="routing.permissions.*",
        kind="choice",
        choices=PROFILES,
        about="The permission profile of one stage. Stages that do not write have `read`.",
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
        about="A profile of the intent's group. Default: the profile with the intent's name.",
    ),
    Field(path="routing.pipeline.flags.*", kind="flag", about="Turns stages off or on."),
    Field(path="routing.pipeline.options.*", kind="text", about="Options of the pipeline."),
    Field(
        path="routing.pipeline.on_fail.back_to",
        kind="text",
        about="The stage to which the work goes back if the acceptance commands fail. Default: the last one "
        "that wrote.",
    ),
    Field(
        path="routing.pipeline.on_fail.times",
        kind="whole",
        most=100,
        about="How often work that a gate refused goes back to an agent; 0 for never. Default: that of the "
        "profile, or 2 for `impl`.",
    ),
    Field(
        path="routing.pipeline.attempts.*",
        kind="whole",
        least=1,
        most=9,
        about="Best of N: how many candidates a stage that writes has (`attempts.codex_impl: 3`). Only with "
        "`workspace: worktree`, and for one stage.",
    ),
    Field(
        path="routing.pipeline.attempt_agents",
        kind="agents",
        about="The agents of the candidates, in turn. Default: the stage's own.",
    ),
    Field(
        path="routing.pipeline.judge",
        kind="text",
        about="The agent that chooses among the candidates. Default: the stage's own.",
    ),
    Field(
        path="scope.allow", kind="paths", required=True, about="Paths that may be changed, as in .gitignore."
    ),
    Field(
        path="scope.deny",
        kind="paths",
        required=True,
        about="Paths that must not be changed; they override `allow`.",
    ),
    Field(
        path="scope.revert",
        kind="flag",
        default=False,
        about="Revert changes outside the scope and save them as a patch. Only with `workspace: worktree`.",
    ),
    Field(
        path="acceptance.commands",
        kind="texts",
        required=True,
        about="Shell commands that must all succeed; `[]` for none. A brief may add commands.",
    ),
    Field(
        path="acceptance.setup",
        kind="texts",
        default=(),
        about="Commands that run first in the clean room, such as `npm ci`.",
    ),
    Field(
        path="acceptance.links",
        kind="paths",
        default=DEPENDENCIES,
        about="Directories of the project that git ignores and the commands need. Default: "
        + ", ".join(f"`{name}`" for name in DEPENDENCIES)
        + ".",
    ),
    Field(
        path="acceptance.clean_room",
        kind="flag",
        default=True,
        about="Run the commands on a clean checkout. `false`: where the agent worked.",
    ),
    Field(
        path="acceptance.criteria",
        kind="texts",
        required=True,
        about="What a reviewer checks, in sentences.",
    ),
    Field(
        path="acceptance.timeout_sec",
        kind="whole",
        least=1,
        most=DAY_S,
        default=600,
        about="Time limit of each command.",
    ),
    Field(
        path="gate.max_severity",
        kind="choice",
        choices=("none", "minor", "unrated", "major"),
        about="Fail a review with a finding worse than this; `none` allows no finding. Default: findings "
        "fail nothing.",
    ),
    Field(
        path="gate.checks",
        kind="texts",
        default=(),
        about="Checks of other packages that every stage must pass, by the names of their entry points "
        "(`holdfast.gates`).",
    ),
    Field(
        path="gate.ci.pull_request",
        kind="choice",
        choices=CI,
        about="After the last stage: push the branch, open a pull request with `gh`, as a draft or ready, "
        "and wait for its checks. Only with `workspace: worktree`. Default: that of the profile, or `off`.",
    ),
    Field(
        path="gate.ci.timeout_sec",
        kind="whole",
        least=1,
        most=7 * DAY_S,
        about="How long these checks may take; then a person is asked. Default: that of the profile, or "
        "3600.",
    ),
    Field(path="gate.ci.remote", kind="text", about="The remote. Default: `origin`, or the only one."),
    Field(path="gate.ci.base", kind="text", about="The branch to merge into. Default: that of the forge."),
    Field(
        path="budgets.retry_budget",
        kind="whole",
        most=100,
        required=True,
        about="Retries per error signature.",
    ),
    Field(
        path="budgets.paid_call_budget",
        kind="whole",
        least=1,
        most=10_000,
        required=True,
        about="Agent calls over the task's life, including failed ones.",
    ),
    Field(
        path="budgets.max_wallclock_sec",
        kind="whole",
        least=1,
        most=7 * DAY_S,
        required=True,
        about="Time limit of each call; always enforced.",
    ),
    Field(
        path="budgets.deadline_sec",
        kind="whole",
        least=1,
        most=365 * DAY_S,
        about="Active time of the whole task. Default: the setting `deadline`.",
    ),
    Field(path="budgets.budget_usd", kind="number", most=1_000_000, about="Maximum cost in dollars."),
    Field(
        path="budgets.budget_tokens",
        kind="whole",
        least=1,
        most=10**12,
        about="Maximum number of tokens, input and output.",
    ),
    Field(
        path="budgets.max_turns",
        kind="whole",
        least=1,
        most=1_000_000,
        about="Maximum number of turns of all agents.",
    ),
    Field(
        path="budgets.on_limit",
        kind="choice",
        choices=("ask", "end"),
        default="ask",
        about="At a limit: ask a person, or end the task.",
    ),
    Field(
        path="context.digest_policy",
        kind="choice",
        choices=DIGEST_POLICIES,
        required=True,
        about="When agents get a digest instead of the context pack.",
    ),
    Field(
        path="security.redaction_patterns",
        kind="patterns",
        default=(),
        about="Regular expressions (RE2 syntax) whose matches are masked in inputs and outputs.",
    ),
    Field(
        path="security.forbidden_paths",
        kind="paths",
        default=(),
        about="Paths that must not appear in any input.",
    ),
)


def tree() -> dict[str, Any]:
    """The fields as nested maps whose leaves are Fields."""
    root: dict[str, Any] = {}
    for field in FIELDS:
        branch = root
        *parents, last = field.path.split(".")
        for name in parents:
            branch = branch.setdefault(name, {})
        branch[last] = field
    return root
