"""Messages for a wrong command line. click finds the mistake; the wording and the hint are ours."""

from __future__ import annotations

import shlex
import shutil

import click

from holdfast import clock
from holdfast.views.cli.parse import command_spec, elsewhere
from holdfast.views.text import suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


#: Before a command that can be copied as it is.
DID_YOU_MEAN = "did you mean: "


class UnexpectedArguments(click.UsageError):
    """More arguments than the verb takes."""

    def __init__(self, extra: Sequence[str], ctx: click.Context) -> None:
        noun = "argument" if len(extra) == 1 else "arguments"
        super().__init__(f"unexpected {noun} '{' '.join(extra)}'", ctx)
        self.extra = extra


def no_such_verb(word: str, verbs: tuple[str, ...]) -> str:
    """The message for an unknown verb, with a suggestion."""
    here = elsewhere.VERBS.get(word)
    similar = f"did you mean '{here}'?" if here else suggest.did_you_mean(word, verbs)
    return f"no such verb {word!r}" + (f", {similar}" if similar else "")


def sentence(error: click.ClickException, command: command_spec.Command | None) -> str:
    """The message: what is wrong, with which option or argument of the verb `command`."""
    if isinstance(error, click.NoSuchOption):
        similar = () if _elsewhere(error, command) else error.possibilities or ()
        return f"no such option {error.option_name}" + (f", did you mean {similar[0]}?" if similar else "")
    if isinstance(error, click.BadOptionUsage):
        problem = "takes no" if _is_flag(command, error.option_name) else "needs a"
        return f"{error.option_name} {problem} value"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        if isinstance(error.param.type, click.Choice) and command is not None:
            choices = list(error.param.type.choices)
            missing = f"one of {', '.join(choices)}" if len(choices) > 1 else repr(choices[0])
            return f"{command.name}: {missing} is missing"
        return f"{_name(error)} is missing"
    if (
        isinstance(error, click.BadParameter)
        and isinstance(error.param, click.Argument)
        and isinstance(error.param.type, click.Choice)
        and command
    ):
        # The argument's name would be the list of choices, which is in the hint.
        what = "no action" if error.param.name == "action" else "there is no"
        return f"{command.name}: {what} {error.message.split(' is not one of')[0]}"
    if isinstance(error, click.BadParameter):
        return f"{_name(error)}: {error.message.rstrip('.')}"
    return error.format_message()


def hint(error: click.ClickException, command: command_spec.Command | None, argv: list[str]) -> str:
    """What to do. `command` is the verb, `argv` the words after it."""
    verb = f"holdfast {command.name}" if command is not None else "holdfast"
    if command is not None:
        special = _special(error, command, argv)
    else:
        special = _elsewhere(error, command) if isinstance(error, click.NoSuchOption) else ""
    return special or f"'{verb} --help' shows the usage"


def _special(error: click.ClickException, command: command_spec.Command, argv: list[str]) -> str:
    """A hint for this mistake; empty if the help is all there is to say."""
    if isinstance(error, click.NoSuchOption):
        is_typo = bool(error.possibilities) or not command.takes_command
        return _elsewhere(error, command) or ("" if is_typo else _correction(command, argv))
    if isinstance(error, UnexpectedArguments):
        by_unit = _with_unit(command, argv, error.extra)
        return by_unit or (_correction(command, argv) if command.takes_command else _one_too_many(command))
    if isinstance(error, click.BadOptionUsage):
        option = _option(command, error.option_name)
        return f"for example {error.option_name} {option.metavar}" if option and option.metavar else ""
    if isinstance(error, click.MissingParameter) and command.examples:
        tasks = "; 'holdfast ls' lists the tasks" if _name(error).startswith("TASK") else ""
        return f"for example: {command.examples[0]}{tasks}"
    if isinstance(error, click.BadParameter) and isinstance(getattr(error.param, "type", None), click.Choice):
        return _choice(error, command)
    return ""


def _choice(error: click.BadParameter, command: command_spec.Command) -> str:
    """What fits a choice that there is not."""
    kind = getattr(error.param, "type", None)
    choices: tuple[str, ...] = tuple(getattr(kind, "choices", ()))
    word = error.message.partition("'")[2].partition("'")[0]
    similar = suggest.did_you_mean(word, choices, elsewhere.ACTIONS)
    if sentence := elsewhere.ACTION_SENTENCES.get(f"{command.name} {word}"):
        return sentence
    what = "actions" if command.actions and isinstance(error.param, click.Argument) else "choose from"
    if isinstance(error.param, click.Argument):
        return similar or f"{what}: {', '.join(choices)}"
    return similar or f"{_name(error)} {'|'.join(choices)}"


def _one_too_many(command: command_spec.Command) -> str:
    """For a verb that takes one argument: how to give several, or what else was meant."""
    if any(option.dest == "message" for option in command.options):
        return f"'holdfast {command.name} TASK -m TEXT' passes on a message"
    if not command.arguments:
        one = "; 'holdfast show TASK' shows one task" if command.name in ("ls", "report", "status") else ""
        return f"'holdfast {command.name}' takes no arguments{one}"
    return ""


def _with_unit(command: command_spec.Command, argv: list[str], extra: Sequence[str]) -> str:
    """`--older-than 3 days` → `--older-than 3d`."""
    flags = {flag for option in command.options if option.kind != "flag" for flag in option.flags}
    for at, word in enumerate(argv[2:], 2):
        unit = clock.unit_of(word)
        if word in extra and unit and argv[at - 1].isdigit() and argv[at - 2] in flags:
            return f"did you mean {argv[at - 2]} {argv[at - 1]}{unit}?"
    return ""


def _elsewhere(error: click.NoSuchOption, command: command_spec.Command | None) -> str:
    """The counterpart of another program's option; empty if there is none."""
    name = error.option_name
    here = elsewhere.OPTIONS.get(f"{command.name} {name}" if command else "") or elsewhere.OPTIONS.get(
        name, ""
    )
    if not here.startswith("--") and not (here.startswith("-") and len(here) == 2):
        return here
    option = _option(command, here)
    if option is None:
        return ""
    value = option.metavar or "|".join(option.choices)
    return f"{' or '.join(option.flags)}{f' {value}' if value else ''}: {option.help}"


def _option(command: command_spec.Command | None, flag: str) -> command_spec.Option | None:
    return next((each for each in command.options if flag in each.flags), None) if command else None


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
