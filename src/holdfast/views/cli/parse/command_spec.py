"""What a verb accepts, as data: read by the quick parser, and by click for help, errors and completion."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Option(Record):
    """A flag, or an option with a value."""

    flags: tuple[str, ...]
    dest: str
    help: str
    #: `text`, `flag`, or `many` (may be repeated).
    kind: str = "text"
    metavar: str = ""
    choices: tuple[str, ...] = ()
    #: How the shell completes its value: a key of `complete.SOURCES`, or empty.
    completes: str = ""
    #: The heading in the help; empty means the plain list of options.
    group: str = ""


class Argument(Record):
    """A positional argument."""

    dest: str
    metavar: str
    required: bool = True
    many: bool = False
    choices: tuple[str, ...] = ()
    #: Other words that mean one of the choices, such as `list` for `ls`.
    synonyms: dict[str, str] = {}
    #: How the shell completes it: a key of `complete.SOURCES`, or empty.
    completes: str = ""


class Action(Record):
    """One action of a verb such as `queue`, with its own help page."""

    name: str
    summary: str
    #: What follows the action, as the usage shows it.
    usage: str = ""
    description: str = ""
    examples: tuple[str, ...] = ()
    #: The options of the verb that apply to it, by `dest`.
    options: tuple[str, ...] = ("json",)
    #: How the shell completes what follows it: a key of `complete.SOURCES`, or empty.
    completes: str = ""


class Command(Record):
    """One verb."""

    name: str
    summary: str
    description: str = ""
    examples: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    #: If the first argument is an action: all of them.
    actions: tuple[Action, ...] = ()
    #: Whether everything after `--` is a command line, in `values["command"]`.
    takes_command: bool = False


JSON = Option(flags=("--json",), dest="json", kind="flag", help="Print JSON.")
TASK = Argument(dest="task", metavar="TASK", completes="task")


def actions_help(actions: tuple[Action, ...]) -> str:
    """The list of actions, for the help of their verb."""
    names = [f"{action.name} {action.usage}".strip() for action in actions]
    width = max(map(len, names)) + 2
    lines = [f"  {name:{width}}{action.summary}" for name, action in zip(names, actions, strict=True)]
    return "\b\nActions:\n" + "\n".join(lines)


def defaults(command: Command) -> dict[str, Any]:
    """The values of a command line without options and arguments."""
    empty = {"flag": False, "text": None}
    values: dict[str, Any] = {option.dest: empty.get(option.kind, []) for option in command.options}
    values.update({argument.dest: [] if argument.many else None for argument in command.arguments})
    if command.takes_command:
        values["command"] = None
    return values
