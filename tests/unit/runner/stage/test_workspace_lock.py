"""The workspace lock of a task, and how it knows that no other task writes there."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.stage.workspace_lock import WorkspaceLock
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from holdfast.workspace import lock as workspace_lock
from tests.support.journals import opened


def packet(home: str, task_id: str) -> Packet:
    spec = TaskSpec(
        task_id=task_id, task_name=task_id, goal="", agent="command", command=["true"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
    )  # fmt: skip
    return create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)


@pytest.fixture
def lock(home: str) -> Iterator[WorkspaceLock]:
    """Of a task, where another one has said that it writes."""
    ensure_home(home)
    ours = packet(home, "ours")
    ledger = Ledger(ours, load.fold(ours), opened(ours), Redactor({}))
    os.makedirs(Home(home).workspaces, exist_ok=True)
    workspace_lock.sign(Home(home), home, "other")
    lock = WorkspaceLock(ledger)
    yield lock
    lock.release()
    ledger.close()


def test_it_is_left_to_a_task_at_work(home: str, lock: WorkspaceLock) -> None:
    packet(home, "other")
    assert not lock.take()


def test_it_is_taken_where_the_other_task_is_gone(lock: WorkspaceLock) -> None:
    assert lock.take()


def test_the_lock_is_not_taken_if_its_state_is_unknown(home: str, lock: WorkspaceLock) -> None:
    manifest = packet(home, "other").manifest
    os.unlink(manifest)
    os.mkdir(manifest)  # reading it fails, for root as well
    assert not lock.take()


def test_it_is_left_to_a_task_that_a_person_has_not_handed_back(home: str, lock: WorkspaceLock) -> None:
    """The program has ended, and with it the process that held the lock; the task is still interrupted."""
    other = packet(home, "other")
    attempt = other.attempt("001-takeover")
    os.makedirs(attempt.path)
    manifest = load.read_manifest(other)
    taken_over = {"attempt": "001-takeover", "by": "ada", "ended": None}
    atomic.write_json(
        other.manifest, {**manifest, "status": "interrupted", "takeover": taken_over}, durable=False
    )
    held = locks.acquire(attempt.lock, role="takeover")
    assert not lock.take()
    held.release()
    assert lock.take()
