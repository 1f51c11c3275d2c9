"""holdfast skill: teach agents to use holdfast."""

from __future__ import annotations

import sys

from holdfast.views import skill
from holdfast.views.cli.parse.command_spec import JSON, Action, Argument, Command, actions_help
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.views.skill import Copy

_ACTIONS = (
    Action(
        name="show",
        summary="print the skill",
        description="With --json, also where it can be installed and what is there now.",
        examples=("holdfast skill show", "holdfast skill show --json | jq '.copies[]'"),
    ),
    Action(
        name="install",
        summary="install it, or bring it up to date",
        description="A file that holdfast did not write, or that was changed since, is never replaced "
        "(exit 3).",
        examples=("holdfast skill install",),
    ),
    Action(
        name="remove",
        summary="remove it, unless it was changed",
        examples=("holdfast skill remove",),
    ),
)

COMMAND = Command(
    name="skill",
    summary="Teach agents to use holdfast.",
    description="A skill (SKILL.md, the format of agentskills.io) tells an agent how to start tasks, see "
    "what changed in few tokens, answer questions, and find its tasks again. It is installed into "
    "~/.agents/skills (Codex, Gemini, Copilot, OpenCode, Pi, OpenClaw) and ~/.claude/skills (Claude "
    "Code).\n\n" + actions_help(_ACTIONS),
    examples=("holdfast skill show", "holdfast skill install", "holdfast skill remove"),
    arguments=(
        Argument(dest="action", metavar="show|install|remove", choices=("show", "install", "remove")),
    ),
    actions=_ACTIONS,
    options=(JSON,),
)


def run(values: dict[str, Any]) -> int:
    """Run the action."""
    if values["action"] == "show":
        if values["json"]:
            return _print_json(skill.copies())
        sys.stdout.write(skill.text())
        return 0
    copies = skill.install() if values["action"] == "install" else skill.remove()
    if values["json"]:
        return _print_json(copies)
    for copy in copies:
        if copy.did:
            out.talk(f"{copy.did} {copy.path} ({copy.readers})")
        elif copy.state == skill.CURRENT:
            out.talk(f"{copy.path} is up to date")
    if values["action"] == "remove" and not any(copy.did for copy in copies):
        out.talk("the skill is not installed")
    return 0


def _print_json(copies: list[Copy]) -> int:
    out.data(
        {
            "schema": "holdfast.skill/1",
            "name": skill.NAME,
            "text": skill.text(),
            "copies": [copy.to_json() for copy in copies],
        }
    )
    return 0
