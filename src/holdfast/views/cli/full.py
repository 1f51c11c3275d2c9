"""The whole command line on click, built from the same specs that the quick path reads."""

from __future__ import annotations

import click

from holdfast import __version__
from holdfast.errors import HoldfastError
from holdfast.views.cli import spec, verbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Verbs(click.Group):
    """Loads a verb's module when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb."""
        return list(verbs.VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The click command of a verb."""
        if cmd_name not in verbs.VERBS:
            return None
        module = verbs.load(cmd_name)
        return _command(module.COMMAND, module.run)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs in their sections."""
        for title, names in verbs.SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, verbs.load(name).COMMAND.summary) for name in names])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """With a suggestion for a typo."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            hint = verbs.near(args[0], verbs.VERBS)
            raise click.UsageError(
                f"no such command: {args[0]!r}" + (f"; {hint}" if hint else ""), ctx
            ) from None


def _command(command: spec.Command, run: Any) -> click.Command:
    parameters: list[click.Parameter] = [
        click.Argument(
            [argument.dest],
            required=argument.required,
            nargs=-1 if argument.many else 1,
            type=click.Choice(argument.choices) if argument.choices else str,
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
        return run({**spec.defaults(command), **known, **(context.obj or {})})

    return click.Command(
        command.name,
        callback=callback,
        params=parameters,
        short_help=command.summary,
        help=_help_text(command),
    )


def _option(option: spec.Option) -> click.Option:
    names = [*option.flags, option.dest]
    if option.kind == "flag":
        return click.Option(names, is_flag=True, help=option.help)
    kind = click.Choice(option.choices) if option.choices else str
    return click.Option(
        names, type=kind, multiple=option.kind == "many", metavar=option.metavar or None, help=option.help
    )


def _help_text(command: spec.Command) -> str:
    parts = [command.summary, command.description]
    if command.examples:
        parts.append("\b\nExamples:\n" + "\n".join(f"  {example}" for example in command.examples))
    return "\n\n".join(part for part in parts if part)


cli = click.version_option(__version__, prog_name="holdfast")(
    Verbs(
        "holdfast",
        help="holdfast runs coding agents and commands on long tasks and does not let go.",
        epilog="'holdfast VERB --help' shows options and examples; 'holdfast help' lists topics.",
        options_metavar="",
        subcommand_metavar="VERB …",
    )
)


def run(argv: list[str]) -> int:
    """Run a command line through click; returns its exit status."""
    obj: dict[str, Any] = {}
    if argv and argv[0] in verbs.VERBS and verbs.load(argv[0]).COMMAND.takes_command:
        argv, obj["command"] = spec.split_command(argv)
    try:
        result = cli.main(args=argv, prog_name="holdfast", standalone_mode=False, obj=obj)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.ClickException as error:
        click.echo(f"error: {error.format_message()}", err=True)
        context = getattr(error, "ctx", None)
        if context is not None:
            click.echo(f"hint: '{context.command_path} --help' shows what is possible", err=True)
        return 2
    except click.exceptions.Abort:
        return 130
    except HoldfastError:
        raise
    return result if isinstance(result, int) else 0
