"""A full disk: a step that is repeated until there is room happens once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.errors import DiskFull
from holdfast.model import events as ev
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import inbox, load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.redact import Redactor
from holdfast.runner import main
from holdfast.runner.ledger import Ledger
from holdfast.runner.perform.context import Context
from holdfast.runner.user_files import interrupt_files
from holdfast.store import journal
from holdfast.store.journal import Journal
from holdfast.store.layout import Home, Packet
from tests.support.performing import Driver, context_of


class Full(Journal):
    """No room for this many appends."""

    refusals = 0

    def append(self, events):
        if self.refusals > 0:
            self.refusals -= 1
            raise DiskFull("there is no room")
        return super().append(events)


@pytest.fixture
def packet(home: str) -> Packet:
    ensure_home(home)
    folder = os.path.expanduser("~/.config/holdfast")
    os.makedirs(folder)
    with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as file:
        file.write('[[notify]]\non = ["interrupted"]\nto = "command"\nargv = ["true"]\n')
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="command", command=["true"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
    )  # fmt: skip
    return create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)


@pytest.fixture
def ledger(packet: Packet) -> Iterator[Ledger]:
    ledger = Ledger(packet, load.fold(packet), Full(packet.journal), Redactor({}))
    yield ledger
    ledger.close()


@pytest.fixture
def context(ledger: Ledger) -> Iterator[Context]:
    with context_of(ledger) as context:
        yield context


def hellos(packet: Packet) -> list[ev.Event]:
    return [event for _, event in journal.read(packet.journal) if isinstance(event, ev.RunnerStarted)]


def drive(context: Context, until: Status) -> list[str]:
    return Driver(context).drive(lambda: context.ledger.task.status is until)


@pytest.mark.starts_processes
@pytest.mark.req("INT-3", "INT-4")
def test_context_and_notice_of_an_interrupt_happen_once_although_the_journal_is_full_for_a_while(
    packet: Packet, context: Context
) -> None:
    assert isinstance(context.ledger._journal, Full)
    context.ledger._journal.refusals = 4
    interrupt_files.write(packet, "which one?")
    taken = drive(context, Status.INTERRUPTED)
    assert taken == [
        "SaveContext",
        "PostNotice",
        "WriteInterruptFile",
        *["Interrupt", "full"] * 4,
        "Interrupt",
    ]
    assert os.listdir(packet.interrupts) == ["1"]
    assert len(os.listdir(packet.home.outbox)) == 1


@pytest.mark.starts_processes
@pytest.mark.req("INT-3", "INT-4")
def test_the_same_question_after_a_resume_is_another_interrupt(packet: Packet, context: Context) -> None:
    """Also for a runner that finds the resume before it has left."""
    interrupt_files.write(packet, "which one?")
    drive(context, Status.INTERRUPTED)
    request = inbox.drop(packet, "resume", {}, by="me")
    assert drive(context, Status.SPAWNING) == ["AnswerRequest"]
    assert not interrupt_files.exists(packet), "put aside with the answer"
    interrupt_files.write(packet, "which one?")
    assert drive(context, Status.INTERRUPTED) == [
        "SaveContext",
        "PostNotice",
        "WriteInterruptFile",
        "Interrupt",
    ]
    kept = {"1", "2", f"{request.id}-interrupt-request.txt"}
    assert set(os.listdir(packet.interrupts)) == kept
    assert len(os.listdir(packet.home.outbox)) == 2


def test_a_runner_says_hello_once_however_often_it_begins(packet: Packet, ledger: Ledger) -> None:
    for _ in range(3):
        main._begin(ledger, ())
    assert len(hellos(packet)) == 1


def test_a_runner_with_the_number_of_a_dead_one_says_hello(packet: Packet, ledger: Ledger) -> None:
    """Pids are reused: after a reboot, or in a container, soon."""
    main._begin(ledger, ())
    runner = ledger.task.runner
    assert runner is not None
    ledger.record(runner.evolve(start_time=runner.start_time - 1))
    main._begin(ledger, ())
    assert len(hellos(packet)) == 3
