"""The verbs, in the order of the help page, and what an agent may do with each.

A verb's module is loaded when it is used.
"""

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

#: What an agent inside an attempt may do with a verb (`permits.py` decides who asks).
READ = "read"  # it prints, and changes nothing of the user's
START = "start"  # it starts tasks, whose parent is the agent's; trust in a project needs a person
OTHERS = "others"  # not for its own task, or one that started it
STARTED = "started"  # in the home of its task, only for tasks that it started
HOME = "home"  # not in the home of its task
PERSON = "person"  # not at all: it changes the user's machine, settings or files, or speaks for a person

#: For each verb. Where it depends on action or options, the first that fits counts; "" fits always.
FOR_AGENTS: dict[str, str | tuple[tuple[str, str], ...]] = {
    "run": START,
    "submit": START,
    "fan-out": START,
    "new": START,
    "review": START,
    "ls": READ,
    "show": READ,
    "logs": READ,
    "events": READ,
    "wait": READ,
    "digest": READ,
    "attach": READ,
    "takeover": PERSON,
    "top": READ,  # its keys send requests, which are checked
    "stop": OTHERS,
    "interrupt": READ,  # it asks a person
    "resume": OTHERS,
    "approve": OTHERS,
    "reject": OTHERS,
    "retry": STARTED,
    "diff": READ,
    "apply": STARTED,
    "pr": STARTED,
    "share": (("--output=-", READ), ("", PERSON)),
    "rm": STARTED,
    "queue": (
        ("add", START),
        ("import", START),
        ("claim", HOME),
        ("release", HOME),
        ("done", HOME),
        ("priority", HOME),
        ("retry", HOME),
        ("rm", HOME),  # 'stop' ends a task that it submitted
        ("clear", HOME),
        ("pause", HOME),
        ("resume", HOME),
        ("ls", READ),
        ("show", READ),
        ("next", READ),
        ("check", READ),
        ("", READ),
    ),
    "up": HOME,
    "down": HOME,
    "status": READ,
    "serve": PERSON,
    "report": (("--html", PERSON), ("", READ)),
    "metrics": READ,
    "audit": READ,
    "archive": HOME,
    "prune": (("--yes", HOME), ("", READ)),
    "service": (("--print", READ), ("status", READ), ("install", PERSON), ("remove", PERSON)),
    "config": READ,
    "trust": (("--list", READ), ("", PERSON)),
    "agent": START,
    "pipeline": READ,
    "notify": PERSON,
    "skill": (("show", READ), ("install", PERSON), ("remove", PERSON)),
    "mcp": (("install", PERSON), ("remove", PERSON), ("", READ)),
    "doctor": READ,
    "demo": START,  # in a home of its own
    "help": READ,
    "completion": READ,
}


def load(verb: str) -> ModuleType:
    """The module of a verb, with a COMMAND and `run(values)`."""
    # As importlib.import_module does it, without loading importlib.
    return __import__(f"holdfast.views.cli.commands.{verb.replace('-', '_')}", fromlist=("run",))
