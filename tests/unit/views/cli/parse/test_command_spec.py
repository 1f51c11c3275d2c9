"""The quick parser and click read the same specs, and agree."""

from __future__ import annotations

import pytest

from holdfast.views.cli import verbs
from holdfast.views.cli.complete import SOURCES
from holdfast.views.cli.parse import command_spec, quick

COMMAND = command_spec.Command(
    name="try",
    summary="Try.",
    arguments=(
        command_spec.Argument(dest="first", metavar="A"),
        command_spec.Argument(dest="rest", metavar="B", many=True, required=False),
    ),
    options=(
        command_spec.Option(flags=("-f", "--flag"), dest="flag", kind="flag", help=""),
        command_spec.Option(flags=("-t", "--text"), dest="text", help=""),
        command_spec.Option(flags=("--many",), dest="many", kind="many", help=""),
        command_spec.Option(flags=("--choice",), dest="choice", choices=("a", "b"), help=""),
    ),
)


def test_values_are_placed_wherever_they_stand() -> None:
    found = quick.parse(
        COMMAND, ["x", "-f", "--text=1", "y", "--many", "2", "--many=3", "z", "--choice", "a"]
    )
    assert found == {
        "first": "x",
        "rest": ["y", "z"],
        "flag": True,
        "text": "1",
        "many": ["2", "3"],
        "choice": "a",
    }


def test_what_is_not_given_has_its_default() -> None:
    assert quick.parse(COMMAND, ["x"]) == {
        "first": "x", "rest": [], "flag": False, "text": None, "many": [], "choice": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--help"],
        ["x", "--txt", "1"],
        ["x", "--text"],
        ["x", "--flag=1"],
        ["x", "--choice", "c"],
        ["x", "-t1"],
        ["--", "x"],
    ],
)
def test_what_is_out_of_the_ordinary_is_left_to_click(argv: list[str]) -> None:
    with pytest.raises(quick.NeedsClick):
        quick.parse(COMMAND, argv)


def test_a_command_behind_two_dashes_is_taken_whole() -> None:
    command = COMMAND.evolve(takes_command=True)
    found = quick.parse(command, ["x", "--", "make", "--flag", "--", "y"])
    assert found["command"] == ["make", "--flag", "--", "y"]
    assert found["flag"] is False
    assert quick.parse(command, ["x"])["command"] is None


def test_an_argument_may_have_choices() -> None:
    command = command_spec.Command(
        name="c", summary="", arguments=(command_spec.Argument(dest="a", metavar="A", choices=("on", "off")),)
    )
    assert quick.parse(command, ["on"]) == {"a": "on"}
    with pytest.raises(quick.NeedsClick):
        quick.parse(command, ["of"])


@pytest.mark.parametrize("verb", verbs.VERBS)
def test_a_verb_is_whole(verb: str) -> None:
    command = verbs.load(verb).COMMAND
    assert command.name == verb
    assert command.summary.endswith(".")
    assert command.examples
    dests = [thing.dest for thing in (*command.arguments, *command.options)]
    assert len(dests) == len(set(dests))
    for thing in (*command.arguments, *command.options):
        assert thing.completes == "" or thing.completes in SOURCES, thing
    for option in command.options:
        assert option.help.endswith((".", ")")), option
        assert option.kind in ("flag", "text", "many")


@pytest.mark.parametrize("verb", verbs.VERBS)
def test_click_finds_the_same_defaults(verb: str) -> None:
    import click

    from holdfast.views.cli.parse import click_app

    command = verbs.load(verb).COMMAND
    made = click_app.cli.get_command(click.Context(click_app.cli), verb)
    assert made is not None
    words = [
        argument.choices[0] if argument.choices else "x"
        for argument in command.arguments
        if argument.required
    ]
    context = made.make_context(verb, list(words))
    parsed = quick.parse(command, list(words))
    for name, value in context.params.items():
        assert (list(value) if isinstance(value, tuple) else value) == parsed[name], name
