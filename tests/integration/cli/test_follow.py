"""Following a task on a terminal: run, attach and logs -f show tools with time and result, and usage."""

from __future__ import annotations

import re

import pytest

from holdfast.testing import Scenario
from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal

SCENARIO = (
    Scenario()
    .say("I run the tests.")
    .wait_file("go")
    .tool("Bash", arguments={"command": "pytest -q"}, output="one\ntwo\nthree\nfour\nfive\n")
    .tool("Read", arguments={"file_path": "x"}, output="no such file", fails=True)
    .announce_retry(delay_s=0.1)
    .usage(input_tokens=12_300, output_tokens=950)
    .say("All done.")
    .result("done")
)


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def check(shown: str) -> None:
    # What is left of each line when the state, which is drawn below the output, was cleared.
    text = "\n".join(line.rpartition("\r\x1b[K")[2].rstrip("\r") for line in shown.split("\n"))
    assert re.search(
        r"\[tool\] Bash \S.*\n  → \d+\.\ds: one\n    two\n    three\n    … 2 more lines\n", text
    ), text
    assert re.search(r"\[tool\] Read .*\n  → failed after \d+\.\ds: Exit code 1\n    no such file\n", text), (
        text
    )
    assert "[tool failed]" not in text
    assert "[retry in 0.1s]" in text
    assert re.search(r"\[result: ok success\]\n  → 12\.3k tokens in, 950 out, cost ", text), text
    assert text.index("I run the tests.") < text.index("[tool] Bash") < text.index("All done.")
    assert text.count("All done.") == 1


def test_attach_shows_tools_with_time_and_result() -> None:
    task = Task.play(SCENARIO)
    task.wait_for_log("I run the tests.")
    terminal = Terminal("attach", "--no-tmux", task.id, columns=120)
    terminal.read_until("I run the tests.")
    kin.go()
    assert terminal.finish() == 0
    check(terminal.text)


def test_logs_f_shows_the_same_and_a_pipe_gets_the_log() -> None:
    task = Task.play(SCENARIO)
    kin.go()
    task.wait_for("completed")
    terminal = Terminal("logs", "-f", task.id, columns=120)
    assert terminal.finish() == 0
    check(terminal.text)
    assert holdfast("logs", "-f", task.id).stdout == task.log()


def test_run_shows_the_same(home: str) -> None:
    path = SCENARIO.write_to(f"{workspace()}/scenario.json")
    kin.go()
    terminal = Terminal(
        "run", "--agent", "scripted", "-o", f"scenario={path}", "do it", columns=120, cwd=workspace()
    )
    assert terminal.finish() == 0
    check(terminal.text)
