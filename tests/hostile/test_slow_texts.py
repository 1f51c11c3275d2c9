"""Texts that are slow to parse: a project's settings and an agent's report are refused or read at once."""

from __future__ import annotations

import os
import time

import pytest

from holdfast.model import conclusion
from tests.support.tasks import holdfast, workspace

pytestmark = pytest.mark.usefixtures("home")
#: Generous: the machine may be busy. Without a limit these take minutes.
WITHIN_S = 10.0


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 40_000 + "=1\n",
        "[a" + ".a" * 2_000 + "]\n" + "".join(f"x{number}=1\n" for number in range(60_000)),
        "a=1" + "0" * 100_000 + "\n",
        "a=" + "[" * 100_000 + "\n",
    ],
    ids=["dotted key", "dotted table", "long number", "deep list"],
)
def test_settings_of_a_project_are_refused_at_once(text: str) -> None:
    project = workspace()
    os.mkdir(os.path.join(project, ".holdfast"))
    with open(os.path.join(project, ".holdfast", "config.toml"), "w", encoding="utf-8") as file:
        file.write(text)
    began = time.monotonic()
    done = holdfast("config", "show", cwd=project)
    assert done.returncode == 2, done.stderr
    assert "config.toml is not valid TOML" in done.stderr
    assert time.monotonic() - began < WITHIN_S


@pytest.mark.parametrize("line", ["_" * 50_000, "candidate" + "_" * 50_000, " " * 50_000 + "x"])
def test_the_choice_of_a_judge_is_read_at_once(line: str) -> None:
    began = time.monotonic()
    assert conclusion.read("judge", f"## Choice\n{line}\n").decision == ""
    assert time.monotonic() - began < WITHIN_S
