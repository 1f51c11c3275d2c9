"""The output of --help. After a change, regenerate it: `python -m tests.snapshot.test_help`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.views.cli import verbs

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "help")


def printed(*args: str) -> str:
    """The output in a terminal of 80 columns."""
    env = {**os.environ, "COLUMNS": "80", "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *args],
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout


#: File → command line.
PAGES = {
    "start": (),
    "holdfast": ("--help",),
    **{verb: (verb, "--help") for verb in verbs.VERBS},
    **{
        f"{verb}-{action.name}": (verb, action.name, "--help")
        for verb in verbs.VERBS
        for action in verbs.load(verb).COMMAND.actions
    },
}


@pytest.mark.parametrize("name", PAGES)
def test_help_is_as_reviewed(name: str, home: str) -> None:
    with open(os.path.join(FOLDER, f"{name}.txt"), encoding="utf-8") as file:
        assert printed(*PAGES[name]) == file.read(), "run python -m tests.snapshot.test_help"


def test_no_page_is_left_over() -> None:
    assert {name.removesuffix(".txt") for name in os.listdir(FOLDER)} == set(PAGES)


def test_every_verb_with_actions_has_a_page_for_each() -> None:
    assert {verb for verb in verbs.VERBS if verbs.load(verb).COMMAND.actions} == {
        "queue", "agent", "service", "pipeline", "mcp", "notify", "skill",
    }  # fmt: skip
    for verb in verbs.VERBS:
        command = verbs.load(verb).COMMAND
        if command.actions:
            assert tuple(action.name for action in command.actions) == command.arguments[0].choices


def main() -> None:
    os.makedirs(FOLDER, exist_ok=True)
    for name, words in PAGES.items():
        with open(os.path.join(FOLDER, f"{name}.txt"), "w", encoding="utf-8") as file:
            file.write(printed(*words))


if __name__ == "__main__":
    main()
