"""The command line on click, built from the same specs that the quick parser reads."""

from __future__ import annotations

import re
import sys

import click

from holdfast import __version__
from holdfast.errors import HoldfastError
from holdfast.views.cli import permits, verbs
from holdfast.views.cli.parse import command_spec, quick, usage_errors
from holdfast.views.cli.show import out, terminal
from holdfast.views.text import fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Columns of an example.
_EXAMPLE_COLUMNS = 76
#: A word of the shell, possibly quoted.
_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|[^ ])+""")
#: Columns that the choices of an option may take after its flag.
_CHOICES_COLUMNS = 40


class _Choice(click.Choice[str]):
    """The choices of an argument, and their synonyms."""

    def __init__(self, argument: command_spec.Argument) -> None:
        super().__init__(argument.choices)
        self._synonyms = argument.synonyms

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The choice that a word means."""
        return super().convert(self._synonyms.get(value, value), param, ctx)


class VerbCommand(click.Command):
    """A verb whose help uses only characters that the terminal shows. (click writes UTF-8 even to an ASCII
    stream.)"""

    def __init__(self, command: command_spec.Command, **given: Any) -> None:
        super().__init__(command.name, **given)
        self._groups = {option.flags[-1]: option.group for option in command.options}

    def get_help(self, ctx: click.Context) -> str:
        """The help, as it will be displayed."""
        return _plain(super().get_help(ctx))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options by group: those without one first."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                group = self._groups.get(parameter.opts[-1], "")
                groups.setdefault("Options" if group == "" else group, []).append(record)
        # click adds --help last; it belongs to the first group.
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Verbs(click.Group):
    """Loads a verb's module when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb."""
        return list(verbs.VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The click command of a verb."""
        cmd_name = verbs.ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in verbs.VERBS:
            return None
        module = verbs.load(cmd_name)
        return _command(module.COMMAND, module.run)

    def get_help(self, ctx: click.Context) -> str:
        """The help, as it will be displayed."""
        return _plain(super().get_help(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs in their sections."""
        for title, names in verbs.SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, verbs.load(name).COMMAND.summary) for name in names])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the verb. Raises UsageError, with a suggestion for a typo."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            raise click.UsageError(usage_errors.no_such_verb(args[0], verbs.VERBS), ctx) from None


def _plain(text: str) -> str:
    return "\n".join(fit_text.as_displayed(line) for line in text.split("\n"))


def _command(command: command_spec.Command, run: Any) -> click.Command:
    parameters: list[click.Parameter] = [
        click.Argument(
            [argument.dest],
            required=argument.required,
            nargs=-1 if argument.many else 1,
            type=_Choice(argument) if argument.choices else str,
            metavar=argument.metavar,
        )
        for argument in command.arguments
    ]
    parameters += [_option(option) for option in command.options]

    def callback(**values: Any) -> int:
        many = {option.dest for option in command.options if option.kind == "many"}
        many |= {argument.dest for argument in command.arguments if argument.many}
        known = {key: list(value) if key in many else value for key, value in values.items()}
        context = click.get_current_context()
        if context.args:
            raise usage_errors.UnexpectedArguments(context.args, context)
        values = {**command_spec.defaults(command), **known, **(context.obj or {})}
        permits.check(command.name, values)
        return run(values)

    return VerbCommand(
        command,
        callback=callback,
        params=parameters,
        short_help=command.summary,
        help=_help_text(command),
        # The callback reports extra arguments, with a hint.
        context_settings={"allow_extra_args": True, "allow_interspersed_args": True},
    )


def _option(option: command_spec.Option) -> click.Option:
    names = [*option.flags, option.dest]
    if option.kind == "flag":
        return click.Option(names, is_flag=True, help=option.help)
    kind = click.Choice(option.choices) if option.choices else str
    metavar, text = option.metavar or None, option.help
    if metavar is None and len("|".join(option.choices)) > _CHOICES_COLUMNS:
        # Too long to follow the flag: moved into the text, which wraps.
        metavar, text = option.dest.upper(), f"{text} One of {', '.join(option.choices)}."
    return click.Option(names, type=kind, multiple=option.kind == "many", metavar=metavar, help=text)


def _help_text(command: command_spec.Command) -> str:
    parts = [command.summary, command.description]
    if command.examples:
        lines = [f"  {line}" for example in command.examples for line in folded(example)]
        parts.append("\b\nExamples:\n" + "\n".join(lines))
    return "\n\n".join(part for part in parts if part)


def folded(example: str) -> list[str]:
    """A long example as several lines with a backslash, broken between words and never inside quotes."""
    if len(example) <= _EXAMPLE_COLUMNS:
        return [example]
    lines = [""]
    for word in _WORD.findall(example):
        # 80 columns less our indent (2) and click's (2); the backslash takes two.
        if lines[-1].strip() and len(lines[-1]) + len(word) + 2 > _EXAMPLE_COLUMNS:
            lines[-1] += "\\"
            lines.append("  ")
        lines[-1] += word + " "
    return [line.rstrip() for line in lines]


cli = click.version_option(__version__, prog_name="holdfast")(
    Verbs(
        "holdfast",
        help="holdfast runs coding agents and commands on long tasks, and keeps them going.",
        epilog="'holdfast VERB --help' shows options and examples; 'holdfast help' lists topics; "
        "'holdfast -vv VERB …' shows the traceback of a bug.",
        context_settings={"help_option_names": ["-h", "--help"]},
        options_metavar="",
        subcommand_metavar="VERB …",
    )
)


def run(argv: list[str]) -> int:
    """Run a command line through click; returns its exit status."""
    obj: dict[str, Any] = {}
    argv = [verbs.ALIASES.get(argv[0], argv[0]), *argv[1:]] if argv else argv
    if not argv:
        return _start_page()
    if _prints_action(argv):
        return 0
    typed = argv
    if argv and argv[0] in verbs.VERBS and verbs.load(argv[0]).COMMAND.takes_command:
        argv, obj["command"] = quick.split_command(argv)
    try:
        result = cli.main(args=argv, prog_name="holdfast", standalone_mode=False, obj=obj)
    except click.ClickException as error:
        command = verbs.load(typed[0]).COMMAND if typed and typed[0] in verbs.VERBS else None
        out.talk(f"error: {usage_errors.sentence(error, command)}")
        _print_hint(usage_errors.hint(error, command, typed[1:]))
        return 2
    except click.exceptions.Abort:
        return 130
    except SystemExit as error:
        # This is how click reports that the reader of our output is gone; entry.run handles that.
        raise BrokenPipeError from error
    except HoldfastError:
        raise
    return result if isinstance(result, int) else 0


def _prints_action(argv: list[str]) -> bool:
    """Print the help of an action (`queue import --help`), if that is asked for."""
    if argv[0] not in verbs.VERBS or not {"-h", "--help"} & set(argv[1:]):
        return False
    command: command_spec.Command = verbs.load(argv[0]).COMMAND
    words = [word for word in argv[1:] if not word.startswith("-")]
    if not command.actions or not words:
        return False
    name = command.arguments[0].synonyms.get(words[0], words[0])
    action = next((each for each in command.actions if each.name == name), None)
    if action is None:
        return False
    page = command_spec.Command(
        name=action.name,
        summary=action.summary[0].upper() + action.summary[1:] + ".",
        description=action.description,
        examples=action.examples,
        arguments=(command_spec.Argument(dest="rest", metavar=action.usage, required=False),)
        if action.usage
        else (),
        # Without "For import: …", which the page says already.
        options=tuple(
            option.evolve(help=re.sub(r"^For [a-z ,]+: (.)", lambda match: match[1].upper(), option.help))
            for option in command.options
            if option.dest in action.options
        ),
    )
    context = click.Context(cli, info_name="holdfast", help_option_names=["-h", "--help"])
    group = click.Context(click.Group(command.name), info_name=command.name, parent=context)
    shown = _command(page, run)
    print(shown.get_help(click.Context(shown, info_name=action.name, parent=group)))
    return True


#: What a newcomer needs first: command, meaning.
_START = (
    (
        'holdfast run --agent claude "fix the failing tests"',
        "start a task and follow it; Ctrl-C only detaches",
    ),
    ("holdfast ls", "what runs, what waits, what needs you"),
    ("holdfast logs -f TASK", "its output, as it comes"),
    ('holdfast resume TASK -m "yes, go on"', "answer a task that asks"),
    ("holdfast report", "in the morning: what happened, and what needs you"),
)


def _start_page() -> int:
    """`holdfast` alone: five verbs with an example each, and where the rest is."""
    lines = ["holdfast runs coding agents and commands on long tasks, and keeps them going.", ""]
    for command, meaning in _START:
        lines += [f"  {command}", f"      {meaning}"]
    lines += [
        "",
        "'holdfast run -d …' returns at once. 'holdfast demo' shows a recovery, for free.",
        "'holdfast --help' lists all verbs, 'holdfast VERB --help' explains one,",
        "'holdfast help' lists topics.",
    ]
    print(_plain("\n".join(lines)))
    return 0


def _print_hint(hint: str) -> None:
    """Print the hint. A command that does not fit is printed on its own line, to be copied whole."""
    before, did_you_mean, command = hint.partition(usage_errors.DID_YOU_MEAN)
    room = terminal.width(sys.stderr)
    if not did_you_mean or room is None or fit_text.cell_width(f"hint: {hint}") <= room:
        out.talk(f"hint: {hint}")
        return
    out.talk(f"hint: {before}{did_you_mean.rstrip()}")
    out.step(command, "")
