"""holdfast help: every verb and topic, and the lists in topics are complete."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

import holdfast as package
from holdfast import errors
from holdfast.model.status import EXIT_STATUS, Status
from holdfast.views.cli import entry, verbs
from holdfast.views.cli.commands import help as help_verb
from tests.support.tasks import holdfast

SOURCE = os.path.dirname(os.path.abspath(package.__file__))
_VARIABLE = re.compile(r"\b((?:HOLDFAST|MONITOR|AGENT_CLI)_[A-Z_]+[A-Z])\b")


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    """Use an empty home."""


def variables() -> set[str]:
    """Every variable of holdfast in the source; the scripted agent's are documented in its guide."""
    found: set[str] = set()
    for folder, _, files in os.walk(SOURCE):
        if os.path.relpath(folder, SOURCE).split(os.sep)[0] == "testing" or folder.endswith("topics"):
            continue
        for name in files:
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found |= set(_VARIABLE.findall(file.read()))
    return found


def test_the_overview_lists_every_topic_and_every_verb() -> None:
    done = holdfast("help")
    assert done.returncode == 0
    for name in (*help_verb.topics(), *verbs.VERBS):
        assert re.search(rf"^  {name} +\S", done.stdout, re.MULTILINE), name
    assert {"environment", "exit-codes", "files", "states"} <= set(help_verb.topics())


@pytest.mark.parametrize("topic", help_verb.topics())
def test_a_topic_fits_a_terminal_of_80_columns(topic: str) -> None:
    done = holdfast("help", topic)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == help_verb.read(topic)
    assert too_wide(done.stdout) == []


@pytest.mark.parametrize(
    "words", [["--help"], ["help"], *([verb, "--help"] for verb in verbs.VERBS)], ids=" ".join
)
def test_every_help_fits_a_terminal_of_80_columns(words: list[str]) -> None:
    done = holdfast(*words, env={"COLUMNS": "80"})
    assert (done.returncode, done.stderr) == (0, "")
    assert too_wide(done.stdout) == []


def too_wide(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line) > 80]


def test_a_long_example_is_folded_so_that_it_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    from holdfast.views.cli.parse.click_app import folded

    example = "holdfast verb --first 'one two' " + " ".join(f"--option-{n} value" for n in range(9))
    lines = folded(example)
    assert max(map(len, lines)) <= 76
    assert "".join(line.removesuffix("\\").lstrip() for line in lines) == example
    assert folded("holdfast ls") == ["holdfast ls"]


@pytest.mark.parametrize("verb", verbs.VERBS)
def test_a_folded_example_is_the_same_to_a_shell(verb: str) -> None:
    from holdfast.views.cli.parse.click_app import folded

    for example in verbs.load(verb).COMMAND.examples:
        # Inside quotes, the indent after a backslash would be part of the argument.
        pasted = "\n".join(folded(example)).replace("\\\n", "")
        assert shlex.split(pasted) == shlex.split(example)


def test_a_usage_breaks_no_word() -> None:
    usage = holdfast("queue", "--help", env={"COLUMNS": "80"}).stdout.partition("\n\n")[0]
    assert (
        " ".join(usage.split())
        == "Usage: holdfast queue [OPTIONS] [ACTION] [TASK|JSON|SOURCE|POOL] [PRIORITY]"
    )


def test_every_exit_status_is_explained() -> None:
    page = help_verb.read("exit-codes")
    listed = {int(number) for number in re.findall(r"^    (\d+) ", page, re.MULTILINE)}
    classes = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.HoldfastError)
    ]
    ends = set(EXIT_STATUS.values())
    assert {kind.exit_status for kind in classes} | ends | {entry.BUG, 130} == listed
    for status, number in EXIT_STATUS.items():
        assert re.search(rf"\b{status} {number}\b", page), status


def test_every_state_is_explained() -> None:
    listed = re.findall(r"^    ([a-z]+)  +\S", help_verb.read("states"), re.MULTILINE)
    assert sorted(listed) == sorted(Status)


def test_every_variable_is_explained() -> None:
    page = help_verb.read("environment")
    missing = {name for name in variables() if not re.search(rf"\b{name}\b", page)}
    assert missing == set()
    gone = set(_VARIABLE.findall(page)) - variables() - {"HOLDFAST_SCRIPTED_STATE"}
    assert gone == set(), "these are explained and used nowhere"


def test_every_file_of_the_page_exists_in_the_layout() -> None:
    from holdfast.store.layout import AttemptDir, Home, Packet

    known = {
        os.path.basename(path)
        for thing in (Home("/h"), Packet("/h/p"), AttemptDir("/h/a"))
        for path in vars(thing).values()
    }
    page = help_verb.read("files")
    for name in re.findall(r"^ +([a-z_/]+\.[a-z]+)", page, re.MULTILINE):
        assert os.path.basename(name) in known, name


@pytest.mark.parametrize("verb", verbs.VERBS)
def test_every_verb_has_help_with_examples(verb: str) -> None:
    done = holdfast(verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: holdfast {verb}" in done.stdout
    assert f"holdfast {verb}" in done.stdout.partition("Examples:")[2]
    assert holdfast("help", verb).stdout == done.stdout


@pytest.mark.parametrize("verb", verbs.VERBS)
def test_examples_use_options_that_exist(verb: str) -> None:
    command = verbs.load(verb).COMMAND
    flags = {flag for option in command.options for flag in option.flags} | {"--help"}
    for example in command.examples:
        for part in re.split(r"[|(]", example.partition(" -- ")[0]):
            words = part.split()
            if words[:2] == ["holdfast", verb]:
                assert {word for word in words if re.fullmatch(r"--?[a-z-]+", word)} <= flags, example


def test_no_arguments_show_the_overview_and_a_typo_suggests() -> None:
    bare = holdfast()
    assert bare.returncode == 0
    examples = [line for line in bare.stdout.splitlines() if line.startswith("  holdfast ")]
    assert [line.split()[1] for line in examples] == ["run", "ls", "logs", "resume", "report"]
    assert "'holdfast --help' lists all verbs" in bare.stdout
    assert holdfast("--version").stdout == f"holdfast, version {package.__version__}\n"
    for args, words in (
        (["rnu"], "did you mean 'run'?"),
        (["help", "exit-code"], "did you mean 'exit-codes'?"),
        (["help", "xyzzy"], "topics: environment"),
        (["help", "queue", "imprt"], "did you mean 'import'?"),
    ):
        done = holdfast(*args)
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(("words", "shows"), [(["ls"], False), (["-vv", "ls"], True)])
def test_a_bug_is_70_and_shows_its_traceback_only_when_asked(
    home: str, words: list[str], shows: bool
) -> None:
    planted = (
        "import sys; from holdfast.views.cli import entry; from holdfast.views.cli.commands import ls; "
        "ls.run = lambda values: 1 / 0; sys.exit(entry.run(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", planted, *words], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 70, done.stderr
    assert ("Traceback" in done.stderr) is shows
    assert "error: " in done.stderr


def test_a_directory_in_place_of_the_index_is_no_trouble(home: str) -> None:
    os.mkdir(os.path.join(home, "index.db"))
    os.mkdir(os.path.join(home, "tasks"))
    done = holdfast("ls")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_full_disk_behind_stdout_is_reported() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 3
    told, hint = done.stderr.splitlines()
    assert told == "error: cannot write the output: No space left on device"
    assert hint.startswith("hint: ")
