"""Messages for a wrong command line. click finds the mistake; the wording and the hint are ours."""

from __future__ import annotations

import shlex
import shutil

import click

from holdfast.views.cli.parse import command_spec, suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


#: Before a command that can be copied as it is.
DID_YOU_MEAN = "did you mean: "

#: Verbs of other programs, and the command that does the same here.
_VERBS_ELSEWHERE = {
    "ps": "ls",
    "list": "ls",
    "kill": "stop",
    "cancel": "stop",
    "start": "run",
    "exec": "run",
    "version": "--version",
}
#: Options of other programs, and a flag of the verb or a sentence that does the same here.
_OPTIONS_ELSEWHERE = {
    "--tail": "-n",
    "--home": "HOLDFAST_HOME=DIR before the command chooses the home",
}


class UnexpectedArguments(click.UsageError):
    """More arguments than the verb takes."""

    def __init__(self, extra: Sequence[str], ctx: click.Context) -> None:
        noun = "argument" if len(extra) == 1 else "arguments"
        super().__init__(f"unexpected {noun} '{' '.join(extra)}'", ctx)


def no_such_verb(word: str, verbs: tuple[str, ...]) -> str:
    """The message for an unknown verb, with a suggestion."""
    elsewhere = _VERBS_ELSEWHERE.get(word)
    similar = f"did you mean '{elsewhere}'?" if elsewhere else suggest.did_you_mean(word, verbs)
    return f"no such verb {word!r}" + (f", {similar}" if similar else "")


def sentence(error: click.ClickException, command: command_spec.Command | None) -> str:
    """The message: what is wrong, with which option or argument of the verb `command`."""
    if isinstance(error, click.NoSuchOption):
        similar = () if _elsewhere(error.option_name, command) else error.possibilities or ()
        return f"no such option {error.option_name}" + (f", did you mean {similar[0]}?" if similar else "")
    if isinstance(error, click.BadOptionUsage):
        problem = "takes no" if _is_flag(command, error.option_name) else "needs a"
        return f"{error.option_name} {problem} value"
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
        # The argument's name would be the list of choices, which is in the message already.
        return f"{command.name}: {error.message.rstrip('.')}"
    if isinstance(error, click.BadParameter):
        return f"{_name(error)}: {error.message.rstrip('.')}"
    return error.format_message()


def hint(error: click.ClickException, command: command_spec.Command | None, argv: list[str]) -> str:
    """What to do. `command` is the verb, `argv` the words after it."""
    is_extra = isinstance(error, (UnexpectedArguments, click.NoSuchOption))
    if command is not None and command.takes_command and is_extra:
        correction = _correction(command, argv)
        if correction:
            return correction
    if isinstance(error, click.NoSuchOption):
        elsewhere = _elsewhere(error.option_name, command)
        if elsewhere:
            return elsewhere
    verb = f"holdfast {command.name}" if command is not None else "holdfast"
    return f"'{verb} --help' shows the usage"


def _elsewhere(option: str, command: command_spec.Command | None) -> str:
    """The counterpart of another program's option; empty if there is none."""
    here = _OPTIONS_ELSEWHERE.get(option, "")
    if not here.startswith("-"):
        return here
    flags = [each for each in command.options if here in each.flags] if command is not None else []
    return f"{' or '.join(flags[0].flags)} {flags[0].metavar}: {flags[0].help}" if flags else ""


def _correction(command: command_spec.Command, argv: list[str]) -> str:
    """For a command without `--`, or a prompt without quotes: how to type it."""
    at = _first_argument(command, argv)
    if at is None or "--" in argv:
        return ""
    if shutil.which(argv[at]):
        return f"{DID_YOU_MEAN}{shlex.join(['holdfast', command.name, *argv[:at], '--', *argv[at:]])}"
    words = argv[at:]
    if any(word.startswith("-") for word in words):
        return ""
    return f"quote the prompt: {' '.join(words)!r}"


def _first_argument(command: command_spec.Command, argv: list[str]) -> int | None:
    """The position of the first word that is not an option or an option's value."""
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
    """The flag, or the argument as the usage names it."""
    parameter = error.param
    if isinstance(parameter, click.Option):
        return parameter.opts[-1]
    return (parameter.metavar or parameter.name or "an argument") if parameter is not None else "an argument"
