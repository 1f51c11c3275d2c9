"""holdfast mcp: tools for agents that orchestrate tasks, as a server of the Model Context Protocol."""

from __future__ import annotations

from holdfast.errors import UsageError
from holdfast.views.cli.parse.command_spec import Action, Argument, Command, Option, actions_help
from holdfast.views.mcp.install import PROGRAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ACTIONS = (
    Action(
        name="install",
        summary="add the server to an agent's settings",
        description="Runs the agent's own command, such as 'claude mcp add', with the absolute path of this "
        "holdfast. A server that is already there stays. The agent still asks you before it uses a tool.",
        examples=("holdfast mcp install --for claude", "holdfast mcp install --for codex --for gemini"),
        options=("for",),
    ),
    Action(
        name="remove",
        summary="remove it from there",
        examples=("holdfast mcp remove --for claude",),
        options=("for",),
    ),
)

COMMAND = Command(
    name="mcp",
    summary="Serve tools for orchestrating agents (MCP).",
    description="Without an action: answers the Model Context Protocol on stdin and stdout until stdin ends; "
    "an agent's program starts it. Its tools are start, digest, wait, show, say and stop; its resources the "
    "summary, findings and gate results of tasks. An agent inside a task may not answer, approve or stop its "
    "own task.\n\n" + actions_help(_ACTIONS),
    examples=(
        "holdfast mcp install --for claude",
        "holdfast mcp remove --for codex",
        "holdfast mcp",
    ),
    arguments=(
        Argument(dest="action", metavar="[install|remove]", required=False, choices=("install", "remove")),
    ),
    actions=_ACTIONS,
    options=(
        Option(
            flags=("--for",),
            dest="for",
            kind="many",
            choices=tuple(PROGRAMS),
            metavar="AGENT",
            help="With install and remove: the agent's program (repeatable).",
        ),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Serve, or change an agent's settings."""
    if values["action"] is None:
        if values["for"]:
            raise UsageError("--for needs an action", hint="'holdfast mcp install --for AGENT'")
        from holdfast.views.mcp import server

        return server.serve()
    if not values["for"]:
        raise UsageError(
            f"'{values['action']}' needs --for AGENT", hint=f"the agents are {', '.join(PROGRAMS)}"
        )
    from holdfast.views.cli.show import out
    from holdfast.views.mcp import install

    for agent in dict.fromkeys(values["for"]):
        done = install.add(agent) if values["action"] == "install" else install.remove(agent)
        out.talk(f"{agent}: {done.sentence}")
    return 0
