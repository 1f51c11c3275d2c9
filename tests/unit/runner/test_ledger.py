"""The ledger: a fact is durable when `record` returns, and shown no later than the next sleep."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import pytest

from holdfast.model import events as ev
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.store.journal import Journal
from holdfast.store.layout import Home, Packet

_HELLO = ev.RunnerStarted(pid=4321, boot_id="b", start_time=1, version="0")


@pytest.fixture
def ledger(home: str) -> Iterator[Ledger]:
    ensure_home(home)
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="command", command=["true"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
    )  # fmt: skip
    packet = create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)
    ledger = Ledger(packet, load.fold(packet), Journal(packet.journal), Redactor({}))
    yield ledger
    ledger.close()


def runner_shown(packet: Packet) -> int | None:
    with open(packet.manifest, encoding="utf-8") as file:
        runner = json.load(file)["runner"]
    return runner and runner["pid"]


def test_a_fact_that_is_not_shown_is_durable_and_waits_for_the_next_sleep(ledger: Ledger) -> None:
    ledger.record(_HELLO, shown=False)
    assert load.fold(ledger.packet).runner == _HELLO
    assert runner_shown(ledger.packet) is None
    ledger.catch_up()
    assert runner_shown(ledger.packet) == 4321
    before = os.stat(ledger.packet.manifest).st_ino
    ledger.catch_up()
    assert os.stat(ledger.packet.manifest).st_ino == before, "once is enough"


def test_a_fact_that_is_not_shown_is_shown_with_the_next_one(ledger: Ledger) -> None:
    ledger.record(_HELLO, shown=False)
    ledger.move(Status.INTERRUPTED, "why", interrupt="why")
    assert runner_shown(ledger.packet) == 4321


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges names")
def test_a_heartbeat_waits_for_no_disk_and_a_fact_is_renamed_into_place(ledger: Ledger) -> None:
    """Told apart by what only an exchange can do: take the place of a directory."""
    packet = ledger.packet

    def is_written(path: str, *, is_news: bool) -> bool:
        os.unlink(path)
        os.mkdir(path)
        ledger.show(is_news=is_news)
        ledger.catch_up()
        is_file = os.path.isfile(path)
        if not is_file:
            os.rmdir(path)
            ledger.show(is_news=is_news)
            ledger.catch_up()
        return is_file

    ledger.record(_HELLO)
    ledger.catch_up()
    assert is_written(packet.manifest, is_news=False)
    assert is_written(packet.current_session, is_news=False)
    assert not is_written(packet.manifest, is_news=True)
    assert not is_written(packet.current_session, is_news=True)
    # A heartbeat that is the first to show a fact shows news.
    ledger.record(_HELLO.evolve(pid=4322), shown=False)
    assert not is_written(packet.manifest, is_news=False)
