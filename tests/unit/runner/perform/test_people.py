"""Answers to requests: after an answer, a runner forgets what it remembered before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.model import events as ev
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import inbox, load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.perform.context import Context
from holdfast.runner.plan.facts import PreflightProblem, PreparedInterrupt, StartFailure
from holdfast.store.layout import Home
from tests.support.journals import opened
from tests.support.performing import Driver, context_of


@pytest.fixture
def context(home: str) -> Iterator[Context]:
    """A runner whose task was interrupted because something was missing."""
    ensure_home(home)
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="command", command=["true"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
    )  # fmt: skip
    packet = create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)
    ledger = Ledger(packet, load.fold(packet), opened(packet), Redactor({}))
    with context_of(ledger) as context:
        ledger.record(ev.TaskMoved(old="spawning", new="interrupted", reason="no git", interrupt="no git"))
        memory = context.remembered
        memory.preflight_run, memory.problems = 1, (PreflightProblem(text="no git"),)
        memory.start_failure = StartFailure(kind="session", stage="command_run", reason="another lives in it")
        memory.interrupting = PreparedInterrupt(question="old?", reason="old?")
        memory.is_reported = True
        yield context
    ledger.close()


def test_after_an_answer_everything_is_looked_for_again(context: Context) -> None:
    """A person fixed what was missing. A runner that has not left yet finds the answer itself."""
    inbox.drop(context.ledger.packet, "resume", {}, by="me")
    Driver(context).take_step()
    assert context.ledger.task.status is Status.SPAWNING
    memory = context.remembered
    assert (memory.preflight_run, memory.start_failure, memory.interrupting) == (0, None, None)
    assert memory.is_reported is False


def test_a_refused_request_changes_nothing_that_is_remembered_of_the_start(context: Context) -> None:
    inbox.drop(context.ledger.packet, "approve", {}, by="me")
    Driver(context).take_step()
    assert context.ledger.task.status is Status.INTERRUPTED
    assert context.remembered.start_failure is not None
