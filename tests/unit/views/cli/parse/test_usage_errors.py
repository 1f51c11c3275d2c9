"""Usage errors: what is wrong, where, and what to do."""

from __future__ import annotations

import pytest

from holdfast.views.cli import entry, verbs
from holdfast.views.cli.parse import click_app


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    assert click_app.run(list(argv)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.splitlines()


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["ls", "--jsn"], "no such option --jsn, did you mean --json?"),
        (["ls", "--xyzzy"], "no such option --xyzzy"),
        (["ls", "-z"], "no such option -z"),
        (["ls", "--json=yes"], "--json takes no value"),
        (["show", "one", "two"], "unexpected argument 'two'"),
        (["show", "one", "two", "three"], "unexpected arguments 'two three'"),
        (["rnu"], "no such verb 'rnu', did you mean 'run'?"),
        (["xyzzy"], "no such verb 'xyzzy'"),
    ],
)
def test_a_mistake_is_an_error_and_a_hint(
    capsys: pytest.CaptureFixture[str], argv: list[str], error: str
) -> None:
    of = f"holdfast {argv[0]}" if argv[0] in verbs.VERBS else "holdfast"
    assert told(capsys, *argv) == [f"error: {error}", f"hint: '{of} --help' shows the usage"]


@pytest.mark.parametrize(
    ("argv", "error", "hint"),
    [
        (
            ["logs", "it", "--tail", "3"],
            "no such option --tail",
            "-n or --lines N: Print only the last N lines.",
        ),
        (
            ["ls", "--home", "x"],
            "no such option --home",
            "HOLDFAST_HOME=DIR before the command chooses the home",
        ),
        (
            ["--home", "x", "ls"],
            "no such option --home",
            "HOLDFAST_HOME=DIR before the command chooses the home",
        ),
        (["audit", "--tail"], "no such option --tail", "'holdfast audit --help' shows the usage"),
        (["ls", "--state"], "--state needs a value", "for example --state STATE"),
        (
            ["show"],
            "TASK is missing",
            "for example: holdfast show 20260131-fix; 'holdfast ls' lists the tasks",
        ),
        (
            ["run", "--leftovers", "eat"],
            "--leftovers: 'eat' is not one of 'report', 'kill', 'keep'",
            "--leftovers report|kill|keep",
        ),
        (["notify"], "notify: 'test' is missing", "for example: holdfast notify test"),
        (["config"], "config: one of show, path is missing", "for example: holdfast config show"),
        (["config", "hide"], "config: no action 'hide'", "choose from: show, path"),
        (
            ["config", "trust"],
            "config: no action 'trust'",
            "'holdfast trust' allows the settings of a project",
        ),
        (["config", "shwo"], "config: no action 'shwo'", "did you mean 'show'?"),
        (
            ["prune", "--older-than", "3", "days"],
            "unexpected argument 'days'",
            "did you mean --older-than 3d?",
        ),
    ],
)
def test_an_option_of_other_programs_leads_to_ours(
    capsys: pytest.CaptureFixture[str], argv: list[str], error: str, hint: str
) -> None:
    assert told(capsys, *argv) == [f"error: {error}", f"hint: {hint}"]


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["run", "echo", "hi there"], "holdfast run -- echo 'hi there'"),
        (["run", "-d", "--id", "it", "echo", "hi"], "holdfast run -d --id it -- echo hi"),
        (["run", "ls", "-la"], "holdfast run -- ls -la"),
    ],
)
def test_a_command_without_its_dashes_is_recognized_and_explained(
    capsys: pytest.CaptureFixture[str], argv: list[str], meant: str
) -> None:
    assert told(capsys, *argv)[-1] == f"hint: did you mean: {meant}"


def test_a_prompt_without_its_quotes_is_recognized_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["run", "--agent", "scripted", "xyzzy", "the", "tests"]
    assert told(capsys, *argv)[-1] == "hint: quote the prompt: 'xyzzy the tests'"


@pytest.mark.parametrize("verb", ["", *verbs.VERBS])
def test_h_is_help(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    words = [verb] if verb else []
    assert entry.run([*words, "-h"]) == 0
    short = capsys.readouterr().out
    assert entry.run([*words, "--help"]) == 0
    assert short == capsys.readouterr().out
    assert "-h, --help" in short


def test_the_help_tells_of_vv(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["--help"]) == 0
    assert "'holdfast -vv VERB …'" in " ".join(capsys.readouterr().out.split())
    assert entry.run(["-vv", "help", "states"]) == 0
