"""The verbs, in the order of the help page. A verb's module is loaded when it is used."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

SECTIONS = {
    "Tasks": (
        "run",
        "submit",
        "fan-out",
        "new",
        "review",
        "ls",
        "show",
        "logs",
        "events",
        "wait",
        "digest",
        "attach",
        "takeover",
        "top",
        "stop",
        "interrupt",
        "resume",
        "approve",
        "reject",
        "retry",
        "diff",
        "apply",
        "pr",
        "share",
        "rm",
    ),
    "This home": (
        "queue",
        "up",
        "down",
        "status",
        "serve",
        "report",
        "metrics",
        "audit",
        "archive",
        "prune",
        "service",
        "config",
        "trust",
        "agent",
        "pipeline",
        "notify",
        "skill",
        "mcp",
        "doctor",
    ),
    "Getting started": ("demo", "help", "completion"),
}
#: Other names of a verb.
ALIASES = {"list": "ls", "ps": "ls", "kill": "stop", "log": "logs"}
VERBS = tuple(verb for section in SECTIONS.values() for verb in section)


def load(verb: str) -> ModuleType:
    """The module of a verb, with a COMMAND and `run(values)`."""
    # As importlib.import_module does it, without loading importlib.
    return __import__(f"holdfast.views.cli.commands.{verb.replace('-', '_')}", fromlist=("run",))
