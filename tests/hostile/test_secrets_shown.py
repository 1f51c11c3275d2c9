"""Secrets that the journal must have are masked where it is shown, and nothing shown steers the terminal."""

from __future__ import annotations

import os

import pytest

from holdfast.testing import Scenario
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal

pytestmark = pytest.mark.usefixtures("home")

TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
OWN = "k7Hq2mZr9xW4-own"


def test_the_command_line_of_a_task_is_shown_without_secrets() -> None:
    words = ("--env", "MY_TOKEN", "--", "sh", "-c", f": {TOKEN} {OWN}")
    task = Task.start(*words, env={"MY_TOKEN": OWN})
    task.wait_for("completed")
    path = os.path.join(workspace(), "exported.jsonl")
    for words in (("--json",), (), ("--timeline", "--json"), ("--export", path)):
        shown = holdfast("events", task.id, *words, env={"MY_TOKEN": OWN})
        assert shown.returncode == 0, shown.stderr
        assert TOKEN not in shown.stdout
        assert OWN not in shown.stdout
    with open(path, encoding="utf-8") as file:
        assert TOKEN not in file.read()
    assert TOKEN in task.read("events.jsonl").decode()  # the command itself is not changed


def test_a_persons_answer_is_shown_without_secrets() -> None:
    scenario = Scenario().say("hm").hang().resumed(Scenario().say("thanks"))
    task = Task.play(scenario)
    task.wait_for_event("agent.text")
    assert holdfast("interrupt", task.id, "-m", "Which token?").returncode == 0
    task.wait_for("interrupted")
    assert holdfast("resume", task.id, "-m", f"use {TOKEN}").returncode == 0
    task.wait_for("completed")
    assert TOKEN in task.memory().starts()[-1].prompt
    for words in (("events", "--json"), ("events",), ("show",), ("show", "--json"), ("report", "--json")):
        shown = holdfast(words[0], *([] if words[0] == "report" else [task.id]), *words[1:])
        assert TOKEN not in shown.stdout, words
    for name in ("manifest.json", "outputs/_summary.md"):
        assert TOKEN not in task.read(name).decode(), name


def test_json_on_a_terminal_has_no_control_characters() -> None:
    task = Task.shell("true", "--name", "one \u009b2J two \u0085 three \x7f")
    task.wait_for("completed")
    for words in (("show", task.id, "--json"), ("ls", "--json"), ("events", task.id, "--json")):
        terminal = Terminal(*words, env={"LC_ALL": "C.UTF-8"})
        assert terminal.finish() == 0
        shown = terminal.output.decode()
        assert "two" in shown
        assert not any(0x7F <= ord(char) < 0xA0 for char in shown), words
    assert "\u009b" in holdfast("show", task.id, "--json", env={"LC_ALL": "C.UTF-8"}).stdout
