"""The quick parser: correct command lines, without the cost of loading click."""

from __future__ import annotations

import os

from holdfast.views.cli.parse.command_spec import Command, defaults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class NeedsClick(Exception):
    """This command line asks for help or has a mistake: click prints the help, or finds the mistake."""


def split_command(argv: list[str]) -> tuple[list[str], list[str] | None]:
    """The words before and after the first `--`; the second is None if there is no `--`."""
    if "--" not in argv:
        return argv, None
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]


def refuse_file_names(argv: list[str]) -> None:
    """Raises UsageError for an option that is the name of a file: a shell may have put it in place of `*`,
    and a clone can bring such a file. `argv` are the words after the verb."""
    words, command = split_command(argv)
    options = [word for word in words if word.startswith("-") and word != "-"]
    # With a file named `--`, the wildcard goes on after it. Alone, it is what everybody types.
    is_end_a_name = command is not None and any(os.path.lexists(word) for word in argv if word != "--")
    for word in [*options, "--"] if is_end_a_name else options:
        if os.path.lexists(word):
            from holdfast.errors import UsageError

            raise UsageError(
                f"{word!r} is also the name of a file here: was it a wildcard?",
                hint="remove or rename the file, or write './*' instead of '*'",
            )


def parse(command: Command, argv: list[str]) -> dict[str, Any]:
    """The values of a command line. Raises NeedsClick if it is not plainly correct."""
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
    return _with_arguments(command, positional, values)


def _with_arguments(command: Command, positional: list[str], values: dict[str, Any]) -> dict[str, Any]:
    for argument in command.arguments:
        if argument.many:
            values[argument.dest], positional = positional, []
        elif positional:
            values[argument.dest] = positional.pop(0)
        value = values[argument.dest]
        if argument.synonyms and value in argument.synonyms:
            values[argument.dest] = argument.synonyms[value]
        if argument.required and not values[argument.dest]:
            raise NeedsClick
        if argument.choices and values[argument.dest] not in (None, *argument.choices):
            raise NeedsClick
    if positional:
        raise NeedsClick
    return values
