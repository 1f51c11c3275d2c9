"""A full disk: what is tried again and again is told once."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import DiskFull
from holdfast.model import events as ev
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.redact import Redactor
from holdfast.runner import main
from holdfast.runner.ledger import Ledger
from holdfast.store import journal
from holdfast.store.journal import Journal
from holdfast.store.layout import Home, Packet


class Full(Journal):
    """No room for so many appends."""

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
def ledger(packet: Packet):
    ledger = Ledger(packet, load.fold(packet), Full(packet.journal), Redactor({}))
    yield ledger
    ledger.close()


def hellos(packet: Packet) -> list[ev.Event]:
    return [event for _, event in journal.read(packet.journal) if isinstance(event, ev.RunnerStarted)]


@pytest.mark.starts_processes
@pytest.mark.req("INT-3", "INT-4")
def test_an_interrupt_is_kept_and_told_once(packet: Packet, ledger: Ledger) -> None:
    assert isinstance(ledger._journal, Full)
    ledger._journal.refusals = 4
    for _ in range(4):
        with pytest.raises(DiskFull):
            ledger.move(Status.INTERRUPTED, "which one?", interrupt="which one?")
    ledger.move(Status.INTERRUPTED, "which one?", interrupt="which one?")
    assert os.listdir(packet.interrupts) == ["1"]
    assert len(os.listdir(packet.home.outbox)) == 1
    # Another question is another interrupt.
    ledger.move(Status.SPAWNING, "resumed")
    ledger.move(Status.INTERRUPTED, "which one?", interrupt="which one?")
    assert sorted(os.listdir(packet.interrupts)) == ["1", "2"]


def test_a_runner_says_hello_once_however_often_it_begins(packet: Packet, ledger: Ledger) -> None:
    for _ in range(3):
        main._begin(ledger, None)
    assert len(hellos(packet)) == 1


def test_a_runner_with_the_number_of_a_dead_one_says_hello(packet: Packet, ledger: Ledger) -> None:
    """Numbers come round: after a reboot, or in a container, soon."""
    main._begin(ledger, None)
    runner = ledger.task.runner
    assert runner is not None
    ledger.record(runner.evolve(start_time=runner.start_time - 1))
    main._begin(ledger, None)
    assert len(hellos(packet)) == 3
