"""A command's surface as data: read by the quick parser, and by click for help, errors and completion."""

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
    #: text, flag, or many (may be repeated).
    kind: str = "text"
    metavar: str = ""
    choices: tuple[str, ...] = ()
    #: What the shell completes its value with, as for an argument.
    completes: str = ""


class Argument(Record):
    """A positional argument."""

    dest: str
    metavar: str
    required: bool = True
    many: bool = False
    choices: tuple[str, ...] = ()
    #: What the shell completes it with: a key of `complete.SOURCES`, or nothing.
    completes: str = ""


class Command(Record):
    """One verb."""

    name: str
    summary: str
    description: str = ""
    examples: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    #: Whether everything behind `--` is a command line, in `values["command"]`.
    takes_command: bool = False


class NeedsClick(Exception):
    """The quick parser does not understand: let click say what is wrong, or print the help."""


JSON = Option(flags=("--json",), dest="json", kind="flag", help="Print JSON.")
TASK = Argument(dest="task", metavar="TASK", completes="task")


def split_command(argv: list[str]) -> tuple[list[str], list[str] | None]:
    """What stands before and behind the first `--`; None when there is none."""
    if "--" not in argv:
        return argv, None
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]


def parse(command: Command, argv: list[str]) -> dict[str, Any]:
    """The values of a command line. Raises NeedsClick for anything out of the ordinary."""
    values: dict[str, Any] = defaults(command)
    if command.takes_command:
        argv, values["command"] = split_command(argv)
    by_flag = {flag: option for option in command.options for flag in option.flags}
    positional: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word == "-" or not word.startswith("-"):
            positional.append(word)
            continue
        flag, equals, attached = word.partition("=")
        option = by_flag.get(flag)
        if option is None:
            raise NeedsClick
        if option.kind == "flag":
            if equals:
                raise NeedsClick
            values[option.dest] = True
            continue
        value = attached if equals and flag.startswith("--") else next(rest, None)
        if value is None or (option.choices and value not in option.choices):
            raise NeedsClick
        if option.kind == "many":
            values[option.dest] = [*values[option.dest], value]
        else:
            values[option.dest] = value
    return _place(command, positional, values)


def defaults(command: Command) -> dict[str, Any]:
    """What each value is when nothing is given."""
    empty = {"flag": False, "text": None}
    values: dict[str, Any] = {option.dest: empty.get(option.kind, []) for option in command.options}
    values.update({argument.dest: [] if argument.many else None for argument in command.arguments})
    if command.takes_command:
        values["command"] = None
    return values


def _place(command: Command, positional: list[str], values: dict[str, Any]) -> dict[str, Any]:
    for argument in command.arguments:
        if argument.many:
            values[argument.dest], positional = positional, []
        elif positional:
            values[argument.dest] = positional.pop(0)
        if argument.required and not values[argument.dest]:
            raise NeedsClick
        if argument.choices and values[argument.dest] not in (None, *argument.choices):
            raise NeedsClick
    if positional:
        raise NeedsClick
    return values
