"""The summary alone gives the state of the task, the reason, and the next command."""

from __future__ import annotations

import os
import re
import shlex

import pytest

from holdfast.testing import Scenario
from holdfast.views.cli import verbs
from holdfast.views.cli.parse import quick
from tests.support import kin
from tests.support.packets import WORK, Written, played
from tests.support.tasks import Task, holdfast, workspace

EAGER = ("--base-interval", "0.2s", "--stale", "none")


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


class Summary:
    """What an orchestrating model takes from `_summary.md`."""

    def __init__(self, task: Task) -> None:
        self.text = task.read("outputs", "_summary.md").decode()
        lines = self.text.splitlines()
        assert len(lines) <= 80
        self.state = lines[0].rpartition(": ")[2]
        self.conclusion = lines[2]
        self.action = self._one(r"^- next_action: \*\*(\w+)\*\*")
        self.commands = re.findall(r"^- (?:command|then): `(.+)`$", self.text, re.MULTILINE)

    def _one(self, pattern: str) -> str:
        (found,) = re.findall(pattern, self.text, re.MULTILINE)
        return found

    def check(self, state: str, action: str, reason: str) -> None:
        assert (self.state, self.action) == (state, action)
        assert reason in self.conclusion
        assert re.search(r"^## Stages$", self.text, re.MULTILINE)
        for command in self.commands:
            program, verb, *words = shlex.split(command)
            assert program == "holdfast"
            values = quick.parse(verbs.load(verb).COMMAND, words)
            assert values, command

    def follow(self, **said: str) -> None:
        """Do what it says, with the words of a person in their places."""
        command = self.commands[-1]
        for name, text in said.items():
            command = command.replace(name, text)
        _, *words = shlex.split(command)
        done = holdfast(*words, cwd=workspace())
        assert done.returncode == 0, done.stderr


@pytest.mark.req("CTX-6")
def test_a_question_is_answered_by_the_summary_alone() -> None:
    scenario = (
        Scenario().interrupt_request("which database?", once=True).hang(once=True).say("thanks").result("ok")
    )
    task = Task.play(scenario, *EAGER)
    task.wait_for("interrupted")
    summary = Summary(task)
    summary.check("interrupted", "answer", "which database?")
    summary.follow(ANSWER="the test database")
    task.wait_for("completed")
    assert "the test database" in task.memory().starts()[1].prompt
    Summary(task).check("completed", "none", "")


@pytest.mark.req("CTX-6")
def test_a_limit_that_asks_and_an_end_at_a_limit() -> None:
    script = "test $HOLDFAST_RESUME_COUNT = 1 || exec sleep 60"
    task = Task.shell(script, "--timeout", "1s")
    task.wait_for("interrupted")
    summary = Summary(task)
    summary.check("interrupted", "raise_time", "its 1.0s limit")
    summary.follow()
    task.wait_for("completed")
    task = Task.shell(script, "--deadline", "1s")
    task.wait_for("abandoned")
    summary = Summary(task)
    summary.check("abandoned", "raise_time", "its deadline of 1.0s is over")
    summary.follow()
    task.wait_for_event("run.opened")
    task.wait_for("completed")


@pytest.mark.req("CTX-6")
def test_a_failure_and_a_stop() -> None:
    task = Task.shell("test -e mended || { echo no mended here; exit 3; }")
    task.wait_for("failed")
    summary = Summary(task)
    summary.check("failed", "read_log", "exit status 3")
    assert "no mended here" in summary.text
    with open(os.path.join(workspace(), "mended"), "w", encoding="utf-8"):
        pass
    summary.follow()
    task.wait_for_event("run.opened")
    task.wait_for("completed")
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    task.stop()
    Summary(task).check("killed", "retry", "stopped")


@pytest.mark.req("CTX-6")
def test_a_pipeline_that_needs_a_person_or_fails() -> None:
    packet = Written({"scripted_brief": None, "scripted_impl": None}, approval=["scripted_impl"])
    task = packet.start()
    task.wait_for("interrupted", within_s=30)
    summary = Summary(task)
    summary.check("interrupted", "approve", "1 of 2 stages done")
    assert "### scripted_brief (scripted/brief) — done" in summary.text
    assert "### scripted_impl (scripted/impl) — pending" in summary.text
    summary.follow()
    task.wait_for("completed", within_s=30)
    outside = Scenario().write(WORK, content="x\n").write("elsewhere.txt", content="x\n")
    packet = Written({"scripted_impl": played("impl", before=outside)}, task_id="two", project=packet.project)
    task = packet.run(end="failed")
    summary = Summary(task)
    summary.check("failed", "fix_scope", "elsewhere.txt")
