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


@pytest.mark.parametrize("verb", ["", *verbs.VERBS])
def test_help_is_as_reviewed(verb: str, home: str) -> None:
    with open(os.path.join(FOLDER, f"{verb or 'holdfast'}.txt"), encoding="utf-8") as file:
        assert printed(*([verb] if verb else []), "--help") == file.read(), (
            "run python -m tests.snapshot.test_help"
        )


def test_no_page_is_left_over() -> None:
    assert {name.removesuffix(".txt") for name in os.listdir(FOLDER)} == {"holdfast", *verbs.VERBS}


def main() -> None:
    os.makedirs(FOLDER, exist_ok=True)
    for verb in ("", *verbs.VERBS):
        with open(os.path.join(FOLDER, f"{verb or 'holdfast'}.txt"), "w", encoding="utf-8") as file:
            file.write(printed(*([verb] if verb else []), "--help"))


if __name__ == "__main__":
    main()
