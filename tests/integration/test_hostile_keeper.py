"""A keeper with broken packets and stopped processes: the other tasks are still guarded."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from holdfast.packet import inbox
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home, Packet
from tests.support import keepers, kin, processes
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("with_keeper")


def ring(home: str) -> None:
    """Have the keeper check now instead of every 15 s."""
    inbox.ring_keeper(Home(home))


def looks(home: str, until: Callable[[], object], what: str, journal: str | None = None) -> None:
    """Ring until something is true."""
    eventually(lambda: ring(home) or until(), 30, what, journal=journal)


def assert_guarded(home: str, task: Task, keeper: int) -> None:
    """Its runner comes back, by the same keeper."""
    count = len(task.events("runner.started"))
    task.kill_runner()
    task.wait_for_event("runner.started", count + 1)
    task.runner_pid()
    assert keepers.pid(home) == keeper


# ── broken packets ──


def test_a_bell_that_became_a_directory_costs_nobody_the_keeper(home: str) -> None:
    """Its runner is stopped and a request waits, so the keeper wants to ring."""
    bad, good = Task.shell(kin.WAIT), Task.shell(kin.WAIT)
    keeper = keepers.wait_for(home)
    bad.agent_pid()
    good.agent_pid()
    runner = bad.runner_pid()
    ring(home)
    os.kill(runner, signal.SIGSTOP)
    os.unlink(bad.path("bell"))
    os.mkdir(bad.path("bell"))
    request = inbox.drop(Packet(bad.packet), "stop", {}, by="a test")
    path = Packet(bad.packet).request(request.id)
    long_ago = os.stat(path).st_mtime - 60
    os.utime(path, (long_ago, long_ago))
    looks(home, lambda: kin.state(runner) not in ("T", "t"), "the keeper wakes the runner", bad.packet)
    assert_guarded(home, good, keeper)
    good.stop()
    # Its bell cannot be rung any more; the next runner creates a new one.
    if bad.status() != "killed":
        bad.kill_runner()
    bad.wait_for("killed")


def test_an_inbox_that_became_a_file_costs_nobody_the_keeper(home: str) -> None:
    bad, good = Task.shell(kin.WAIT), Task.shell(kin.WAIT)
    keeper = keepers.wait_for(home)
    bad.agent_pid()
    good.agent_pid()
    os.rmdir(bad.path("inbox"))
    with open(bad.path("inbox"), "w", encoding="utf-8"):
        pass
    bad.kill_runner()
    assert_guarded(home, good, keeper)
    assert keepers.status(home)["counts"] == {"running": 2}
    bad.wait_for_event("runner.started", 2)
    eventually(lambda: os.path.isdir(bad.path("inbox")), what="the inbox is mended")
    bad.stop()
    good.stop()


@pytest.mark.parametrize(
    "text",
    ['{"status": "weird"}', '{"status": 5}', '{"status": ["a"]}', '{"status": null}', "[]", "\x00", ""],
)
def test_a_manifest_that_makes_no_sense_costs_nobody_the_keeper(home: str, text: str) -> None:
    bad = kin.make("--", "true", task_id="bad")
    with open(bad.path("manifest.json"), "w", encoding="utf-8") as file:
        file.write(text)
    good = Task.shell(kin.WAIT)
    keeper = keepers.wait_for(home)
    good.agent_pid()
    ring(home)
    assert_guarded(home, good, keeper)
    good.stop()


@pytest.mark.parametrize("makes", [os.mkdir, lambda path: os.symlink("/nowhere/else", path)])
def test_a_lock_that_is_none_costs_nobody_the_keeper(home: str, makes: Callable[[str], None]) -> None:
    """Of a task, and of the seed."""
    bad, good = kin.make("--", "true", task_id="bad"), Task.shell(kin.WAIT)
    keeper = keepers.wait_for(home)
    good.agent_pid()
    makes(bad.path("runner.lock"))
    seed = Home(home).seed_lock
    eventually(lambda: locks.is_held(seed) and lock_owner.owner(seed), what="the seed lives")
    owner = lock_owner.owner(seed)
    assert owner is not None
    os.kill(owner.pid, signal.SIGKILL)
    os.unlink(seed)
    makes(seed)
    ring(home)
    assert_guarded(home, good, keeper)
    os.rmdir(seed) if os.path.isdir(seed) else os.unlink(seed)
    looks(home, lambda: locks.is_held(seed), "a seed lives")
    good.stop()


def test_a_task_without_an_environment_is_parked(home: str) -> None:
    bad = kin.make("--", "true", task_id="bad")
    with open(bad.path("env.json"), "w", encoding="utf-8") as file:
        file.write("{")
    good = Task.shell(kin.WAIT)
    keeper = keepers.wait_for(home)
    assert "env.json was changed" in bad.wait_for("interrupted")["interrupt"]["reason"]
    assert_guarded(home, good, keeper)
    assert len(bad.events("runner.started")) == 1
    good.stop()


# ── stopped and killed processes ──


def test_a_stopped_runner_without_a_request_is_shown_and_woken(home: str) -> None:
    task = Task.shell(kin.WAIT)
    keepers.wait_for(home)
    task.agent_pid()
    runner = task.runner_pid()
    ring(home)
    os.kill(runner, signal.SIGSTOP)
    eventually(lambda: kin.state(runner) == "T")
    # As if the last check was long ago.
    long_ago = os.stat(task.path("manifest.json")).st_mtime - 200
    os.utime(task.path("manifest.json"), (long_ago, long_ago))
    attention = keepers.status(home)["attention"]
    assert [line for line in attention if task.id in line and "does not respond" in line], attention
    looks(home, lambda: kin.state(runner) not in ("T", "t"), "the keeper wakes the runner", task.packet)
    kin.go()
    task.wait_for("completed")
    assert keepers.status(home)["attention"] == []


def test_a_runner_that_looks_seldom_is_not_taken_for_a_stopped_one(home: str) -> None:
    task = Task.shell(kin.WAIT, "--base-interval", "5m", "--stale", "none")
    task.agent_pid()
    eventually(lambda: task.manifest()["last_checked_at"])
    long_ago = os.stat(task.path("manifest.json")).st_mtime - 200
    os.utime(task.path("manifest.json"), (long_ago, long_ago))
    assert keepers.status(home)["attention"] == []
    task.stop()


def test_a_killed_seed_is_started_again(home: str) -> None:
    done = holdfast("up")
    assert done.returncode == 0, done.stderr
    lock = Home(home).seed_lock
    eventually(lambda: locks.is_held(lock) and lock_owner.owner(lock), what="the seed lives")
    first = lock_owner.owner(lock)
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    eventually(lambda: not processes.is_alive(first.pid), what="the seed is gone")

    def another() -> bool:
        found = lock_owner.owner(lock)
        return locks.is_held(lock) and found is not None and found.pid != first.pid

    looks(home, another, "another seed lives")
    task = Task.shell("exit 0")
    task.wait_for("completed")
