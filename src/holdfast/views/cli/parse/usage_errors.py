"""What is wrong with a command line, in our words. click finds the mistake; how it is told is ours."""

from __future__ import annotations

import shlex
import shutil

import click

from holdfast.views.cli.parse import command_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


#: What stands before a command that may be copied as it is.
DID_YOU_MEAN = "did you mean: "


class UnexpectedArguments(click.UsageError):
    """More arguments than the verb takes."""

    def __init__(self, extra: Sequence[str], ctx: click.Context) -> None:
        count = "is one argument" if len(extra) == 1 else f"are {len(extra)} arguments"
        super().__init__(f"'{' '.join(extra)}' {count} too many", ctx)


def sentence(error: click.ClickException, command: command_spec.Command | None) -> str:
    """What, to which, why. `command` is the verb."""
    if isinstance(error, click.NoSuchOption):
        near = () if _known(error.option_name, command) else error.possibilities or ()
        return f"no such option {error.option_name}" + (f", did you mean {near[0]}?" if near else "")
    if isinstance(error, click.BadOptionUsage):
        return (
            f"{error.option_name} {'takes no' if _is_flag(command, error.option_name) else 'needs a'} value"
        )
    if isinstance(error, click.MissingParameter) and error.param is not None:
        if isinstance(error.param.type, click.Choice) and command is not None:
            return f"{command.name}: one of {', '.join(error.param.type.choices)} is missing"
        return f"{_name(error)} is missing"
    if (
        isinstance(error, click.BadParameter)
        and isinstance(error.param, click.Argument)
        and isinstance(error.param.type, click.Choice)
        and command
    ):
        # Its name would be the list of what it may be, which the message says anyhow.
        return f"{command.name}: {error.message.rstrip('.')}"
    if isinstance(error, click.BadParameter):
        return f"{_name(error)}: {error.message.rstrip('.')}"
    return error.format_message()


def hint(error: click.ClickException, command: command_spec.Command | None, argv: list[str]) -> str:
    """What to do. `command` is the verb, `argv` what was typed behind it."""
    if (
        command is not None
        and command.takes_command
        and isinstance(error, (UnexpectedArguments, click.NoSuchOption))
    ):
        meant = _meant(command, argv)
        if meant:
            return meant
    if isinstance(error, click.NoSuchOption):
        known = _known(error.option_name, command)
        if known:
            return known
    of = f"holdfast {command.name}" if command is not None else "holdfast"
    return f"'{of} --help' shows what is possible"


#: Options that other programs have, and what stands for them here: a flag of the verb, or a sentence.
_KNOWN_ELSEWHERE = {
    "--tail": "-n",
    "--home": "HOLDFAST_HOME=DIR before the command chooses the home",
}


def _known(option: str, command: command_spec.Command | None) -> str:
    """What an option of other programs is here; empty where there is nothing like it."""
    here = _KNOWN_ELSEWHERE.get(option, "")
    if not here.startswith("-"):
        return here
    flags = [each for each in command.options if here in each.flags] if command is not None else []
    return f"{' or '.join(flags[0].flags)} {flags[0].metavar}: {flags[0].help}" if flags else ""


def _meant(command: command_spec.Command, argv: list[str]) -> str:
    """A command without the dashes before it, or a prompt without quotes."""
    at = _first_word(command, argv)
    if at is None or "--" in argv:
        return ""
    if shutil.which(argv[at]):
        return f"{DID_YOU_MEAN}{shlex.join(['holdfast', command.name, *argv[:at], '--', *argv[at:]])}"
    words = argv[at:]
    return (
        ""
        if any(word.startswith("-") for word in words)
        else f"a prompt is one argument: {' '.join(words)!r}"
    )


def _first_word(command: command_spec.Command, argv: list[str]) -> int | None:
    """Where the options end that stand before the first argument."""
    takes_value = {flag for option in command.options if option.kind != "flag" for flag in option.flags}
    is_value = False
    for at, word in enumerate(argv):
        if not is_value and not word.startswith("-"):
            return at
        is_value = not is_value and word in takes_value
    return None


def _is_flag(command: command_spec.Command | None, flag: str) -> bool:
    options = command.options if command is not None else ()
    return any(option.kind == "flag" and flag in option.flags for option in options)


def _name(error: click.BadParameter) -> str:
    """As a person types it: the flag, or the word that stands in the usage."""
    found = error.param
    if isinstance(found, click.Option):
        return found.opts[-1]
    return (found.metavar or found.name or "an argument") if found is not None else "an argument"
