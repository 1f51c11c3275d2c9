"""The change feed: nothing is missed, a change is seen at once, and waiting costs nothing."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.packet import load
from holdfast.store import atomic, audit, inotify
from holdfast.store.layout import Home, Packet
from holdfast.views.facts import changes as feed
from holdfast.views.facts.changes import Changes
from holdfast.views.settle import SettleCheck, settle
from tests.support import keepers, kin
from tests.support.tasks import Task, holdfast, workspace

#: Live tasks of the figures below.
_MANY = 1000


@pytest.fixture(params=["inotify", "files"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With inotify, and without: then the files are looked at."""
    if request.param == "files":
        monkeypatch.setattr(inotify.Inotify, "open", lambda: None)
    else:
        # What the kernel reports must suffice: no scan helps.
        monkeypatch.setattr(feed, "LIVE_SCAN_S", 3600.0)
    return request.param


@pytest.fixture
def changes(home: str, way: str) -> Iterator[Changes]:
    workspace()
    watching = Changes(Home(home))
    yield watching
    watching.close()


def told(changes: Changes, task_id: str, is_it: Callable[[], bool], within_s: float = 20.0) -> None:
    """Wait until something is true, and look only when the feed says that the task changed."""
    give_up_mono = time.monotonic() + within_s
    while True:
        left_s = give_up_mono - time.monotonic()
        assert left_s > 0, f"the feed never said so of {task_id}"
        if task_id in changes.wait(left_s) and is_it():
            return


def is_in(task: Task, status: str) -> bool:
    return task.status() == status and (
        status not in ("completed", "killed") or os.path.exists(task.path("done", "_task.done"))
    )


def test_the_life_of_a_task(changes: Changes) -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    told(changes, "it", lambda: is_in(task, "running"))
    kin.go()
    told(changes, "it", lambda: is_in(task, "completed"))


def test_an_ended_task_that_is_retried(home: str, way: str) -> None:
    task = Task.shell("exit 3", "--id", "it")
    task.wait_for("failed")
    changes = Changes(Home(home))
    try:
        os.truncate(os.path.join(home, "audit.jsonl"), audit.ROTATE_BYTES + 1)
        assert holdfast("retry", "it").returncode == 0
        told(changes, "it", lambda: len(task.events("run.opened")) == 1)
        assert os.path.exists(os.path.join(home, "audit.1.jsonl")), "the audit was rotated meanwhile"

        def has_ended() -> bool:
            return os.path.exists(task.path("done", "_task.done")) and is_in(task, "failed")

        if not has_ended():  # else the feed has told both at once
            told(changes, "it", has_ended)
        assert holdfast("retry", "it").returncode == 0
        told(changes, "it", lambda: len(task.events("run.opened")) == 2)
    finally:
        changes.close()


@pytest.mark.parametrize("how", [["archive", "it"], ["rm", "it"]])
def test_a_task_that_is_archived_or_removed(changes: Changes, how: list[str]) -> None:
    task = Task.shell("true", "--id", "it")
    told(changes, "it", lambda: is_in(task, "completed"))
    assert holdfast(*how).returncode == 0
    told(changes, "it", lambda: not os.path.exists(task.packet))
    again = Task.shell("true", "--id", "it") if how[0] == "rm" else Task.shell("true", "--id", "other")
    told(changes, again.id, lambda: is_in(again, "completed"))


def test_a_kill_of_runner_and_keeper_hides_nothing(
    changes: Changes, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    task = Task.shell(kin.WAIT, "--id", "it")
    told(changes, "it", lambda: is_in(task, "running"))
    kin.kill(task.runner_pid())
    told(changes, "it", lambda: len(task.events("runner.started")) == 2 and is_in(task, "running"))
    keepers.kill(home)
    kin.kill(task.runner_pid())
    kin.go()
    told(changes, "it", lambda: is_in(task, "completed"), within_s=40)


def test_a_home_that_does_not_exist_yet(way: str, home: str) -> None:
    shutil.rmtree(home)
    changes = Changes(Home(home))
    try:
        assert changes.wait(0.3) == set()
        task = Task.shell("true", "--id", "it")
        told(changes, "it", lambda: is_in(task, "completed"))
    finally:
        changes.close()


def test_more_events_than_the_kernel_keeps(changes: Changes, way: str, home: str) -> None:
    many(home, 3)
    assert {"t0", "t1", "t2"} <= changes.wait(5)
    touch(home, "t0")
    touch(home, "t1")
    if way == "inotify":
        _flood(home)
    touch(home, "t2")
    seen: set[str] = set()
    give_up_mono = time.monotonic() + 20
    while not {"t0", "t1", "t2"} <= seen and time.monotonic() < give_up_mono:
        seen |= changes.wait(1)
    assert {"t0", "t1", "t2"} <= seen


def test_a_thousand_live_tasks_are_seen_at_once_and_cost_nothing(home: str, way: str) -> None:
    many(home, _MANY)
    changes = Changes(Home(home))
    try:
        delays_s: list[float] = []
        for number in range(40):
            task_id = f"t{number * 25 % _MANY}"
            written: list[float] = []

            def write(task_id: str = task_id, written: list[float] = written) -> None:
                written.append(time.monotonic())
                touch(home, task_id)

            timer = threading.Timer(0.02, write)
            timer.start()
            give_up_mono = time.monotonic() + 10
            while task_id not in changes.wait(1):
                assert time.monotonic() < give_up_mono
            delays_s.append(time.monotonic() - written[0])
            timer.join()
        assert sorted(delays_s)[37] < 0.25
        changes.wait(0.5)
        if way == "files":
            return
        feed.LIVE_SCAN_S = 5.0  # as it is; the fixture restores it
        before, begun_mono = time.process_time(), time.monotonic()
        assert changes.wait(11) == set()
        used = (time.process_time() - before) / (time.monotonic() - begun_mono)
        assert used <= 0.01, f"{used:.2%} of a core"
    finally:
        changes.close()


def test_one_instance_serves_all_tasks_and_is_given_back(home: str) -> None:
    many(home, 50)

    def instances() -> int:
        found = 0
        for name in os.listdir("/proc/self/fd"):
            try:
                found += os.readlink(f"/proc/self/fd/{name}") == "anon_inode:inotify"
            except FileNotFoundError:
                continue
        return found

    before = instances()
    changes = Changes(Home(home))
    assert instances() == before + 1
    changes.close()
    assert instances() == before


def test_wait_reads_a_manifest_only_when_it_changed(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.wait_for("running")
    reads: list[float] = []
    read = load.read_manifest

    def counted(packet: Packet) -> dict[str, Any]:
        reads.append(time.monotonic())
        return read(packet)

    monkeypatch.setattr(load, "read_manifest", counted)
    began_mono = time.monotonic()
    timer = threading.Timer(2.0, kin.go)
    timer.start()
    (settled,) = settle(
        Home(home), [Home(home).packet("it")], SettleCheck(Home(home), print), timeout_s=20, say=print
    )
    timer.join()
    assert settled.manifest["status"] == "completed"
    assert len([at for at in reads if 0.3 < at - began_mono < 1.9]) <= 1


def many(home: str, count: int) -> None:
    """Packets as a live task has them, without the task."""
    for number in range(count):
        packet = os.path.join(home, "tasks", f"t{number}")
        os.makedirs(os.path.join(packet, "done"))
        touch(home, f"t{number}")


def _flood(home: str) -> None:
    """More events than the kernel keeps for a reader; of two files, since equal ones in a row count once."""
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as file:
        limit = int(file.read())
    paths = [os.path.join(home, "tasks", task_id, "manifest.json") for task_id in ("t0", "t1")]
    for _ in range(limit // 2 + 1):
        for path in paths:
            os.rename(path, path + ".tmp")
            os.rename(path + ".tmp", path)


def touch(home: str, task_id: str) -> None:
    """Write a manifest as a runner does."""
    path = os.path.join(home, "tasks", task_id, "manifest.json")
    atomic.write(path, json.dumps({"task_id": task_id}).encode(), durable=False)
