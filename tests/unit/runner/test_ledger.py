"""The ledger: a fact is durable when `record` returns, and shown no later than the next sleep."""

from __future__ import annotations

import json
import os
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
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet
from tests.support.journals import opened

_HELLO = ev.RunnerStarted(pid=4321, boot_id="b", start_time=1, version="0")


@pytest.fixture
def ledger(home: str) -> Iterator[Ledger]:
    ensure_home(home)
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="command", command=["true"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
    )  # fmt: skip
    packet = create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)
    ledger = Ledger(packet, load.fold(packet), opened(packet), Redactor({}))
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


@pytest.mark.starts_processes
def test_a_fact_that_is_not_shown_is_shown_with_the_next_one(ledger: Ledger) -> None:
    ledger.record(_HELLO, shown=False)
    ledger.record(ev.TaskMoved(old=Status.SPAWNING, new=Status.INTERRUPTED, reason="why", interrupt="why"))
    assert runner_shown(ledger.packet) == 4321


def inodes(packet: Packet) -> list[int]:
    return [os.stat(path).st_ino for path in (packet.manifest, packet.current_session)]


def look(ledger: Ledger, at: str, **more: object) -> None:
    for name, value in {"last_checked_at": at, **more}.items():
        setattr(ledger.observed, name, value)
    ledger.beat()
    ledger.catch_up()


def test_a_look_without_news_renews_times_in_place(ledger: Ledger) -> None:
    """A file that is put in the place of another waits for the disk."""
    packet = ledger.packet
    ledger.record(_HELLO)
    look(ledger, "2026-01-01T00:00:00.000Z")
    files, before = inodes(packet), atomic.read_json(packet.manifest)
    look(ledger, "2026-01-01T00:00:30.000Z")
    assert inodes(packet) == files
    manifest = load.read_manifest(packet)
    assert manifest["last_checked_at"] == manifest["heartbeat"]["last_check"] == "2026-01-01T00:00:30.000Z"
    times = ("last_checked_at", "heartbeat")
    assert before is not None
    assert {**manifest, **{name: before[name] for name in times}} == before
    # The first progress has no row yet; the second one has.
    look(ledger, "2026-01-01T00:01:00.000Z", last_progress_at="2026-01-01T00:00:59.000Z")
    assert inodes(packet)[0] != files[0]
    files = inodes(packet)
    look(ledger, "2026-01-01T00:01:30.000Z", last_progress_at="2026-01-01T00:01:29.000Z")
    assert inodes(packet) == files
    assert load.read_manifest(packet)["last_progress_at"] == "2026-01-01T00:01:29.000Z"


@pytest.mark.parametrize("what", ["fact", "observed", "not yet shown", "replaced", "moved", "gone", "pipe"])
def test_a_heartbeat_with_news_or_a_replaced_file_rewrites_it(ledger: Ledger, what: str) -> None:
    packet = ledger.packet
    ledger.record(_HELLO)
    look(ledger, "2026-01-01T00:00:00.000Z")
    more: dict[str, object] = {}
    match what:
        case "fact":
            ledger.record(_HELLO.evolve(pid=4322))
        case "observed":
            more = {"verdict": "quiet"}
        case "not yet shown":
            ledger.record(_HELLO.evolve(pid=4322), shown=False)
        case "replaced":
            with open(packet.manifest, "w", encoding="utf-8") as file:
                file.write("x" * 5000)
        case "moved":
            with open(packet.manifest, "r+", encoding="utf-8") as file:
                text = file.read()
                file.seek(0)
                file.write(" " + text)
        case _:
            os.unlink(packet.manifest)
            if what == "pipe":
                os.mkfifo(packet.manifest)
    look(ledger, "2026-01-01T00:00:30.000Z", **more)
    manifest = atomic.read_json(packet.manifest)
    assert manifest is not None
    assert manifest["last_checked_at"] == "2026-01-01T00:00:30.000Z"
    assert manifest["verdict"] == more.get("verdict")
    assert manifest["runner"]["pid"] == (4322 if what in ("fact", "not yet shown") else 4321)


def test_words_that_look_like_a_time_of_ours_are_left_alone(ledger: Ledger) -> None:
    words = '"last_checked_at": "2026-01-01T00:00:00.000Z"'
    ledger.task.spec = ledger.task.spec.evolve(goal=words, task_name=words)
    manifest = load.read_manifest(ledger.packet)
    of_another = {"of_another": {"last_check": "2026-01-01T00:00:00.000Z"}}
    atomic.write_json(ledger.packet.manifest, {**manifest, **of_another}, durable=False)
    ledger.record(_HELLO)
    look(ledger, "2026-01-01T00:00:00.000Z")
    files = inodes(ledger.packet)
    look(ledger, "2026-01-01T00:00:30.000Z")
    assert inodes(ledger.packet) == files
    manifest = load.read_manifest(ledger.packet)
    assert (manifest["goal"], manifest["last_checked_at"]) == (words, "2026-01-01T00:00:30.000Z")
    assert manifest["of_another"] == {"last_check": "2026-01-01T00:00:00.000Z"}
