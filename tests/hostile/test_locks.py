"""Lock files that vanish: a cleaner of stale `*.lock` files must not give a task a second owner."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast import seed_client, spawn
from holdfast.packet import inbox
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home, Packet
from tests.support import keepers, kin, processes
from tests.support.tasks import ENDS, Task, holdfast, workspace
from tests.support.waiting import eventually

_CLEANER = """
import os, sys, time
while True:
    for folder, _, files in os.walk(sys.argv[1]):
        for name in files:
            if name.endswith(".lock") or name == "lock":
                try:
                    os.unlink(os.path.join(folder, name))
                except FileNotFoundError:
                    pass
    time.sleep(0.003)
"""

#: Writes one line per agent, and a complaint if two agents run at once.
AGENT = (
    'echo $$ >> "agents.$HOLDFAST_TASK"; mkdir "busy.$HOLDFAST_TASK" || echo "$HOLDFAST_TASK" >> overlaps; '
    + kin.WAIT
    + 'rmdir "busy.$HOLDFAST_TASK"'
)
ROUNDS = 40 if os.environ.get("HOLDFAST_HOSTILE_FULL") else 8


@contextlib.contextmanager
def cleaner(home: str) -> Iterator[None]:
    """Remove every lock file of the home, every few milliseconds."""
    process = subprocess.Popen([sys.executable, "-c", _CLEANER, home])
    try:
        yield
        assert process.poll() is None, "the cleaner failed"
    finally:
        process.kill()
        process.wait(timeout=10)


def lines(name: str) -> list[str]:
    try:
        with open(os.path.join(workspace(), name), encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def runners(task: Task) -> list[int]:
    """Living processes that journalled their start as the task's runner."""
    return [event["pid"] for event in task.events("runner.started") if processes.is_alive(event["pid"])]


def try_runner(task: Task) -> int:
    """Start a runner as a keeper does; the pid."""
    return spawn.execute("holdfast.runner", [task.packet], Home(os.environ["HOLDFAST_HOME"]), role="runner")


def assert_one_life(task: Task) -> None:
    """One agent, one attempt, one end."""
    assert len(lines(f"agents.{task.id}")) == 1
    assert len(task.events("attempt.opened")) == 1
    assert len(task.events("attempt.ended")) == 1
    assert [state for state in task.moves() if state in ENDS] == ["completed"]


@pytest.mark.parametrize("with_keeper", [False, True])
def test_one_runner_one_agent_one_end_while_a_cleaner_removes_all_locks(
    home: str, monkeypatch: pytest.MonkeyPatch, *, with_keeper: bool
) -> None:
    if with_keeper:
        monkeypatch.delenv("HOLDFAST_KEEPER")
    chance = random.Random(seed := random.randrange(10**6))
    print(f"seed {seed}")
    with cleaner(home):
        tasks = [Task.shell(AGENT) for _ in range(3)]
        for task in tasks:
            task.agent_pid()
        # Four kills: after the fifth, the task is parked.
        left = {task.id: 4 for task in tasks}
        for _ in range(ROUNDS):
            task = chance.choice(tasks)
            if left[task.id] and chance.random() < 0.5:
                left[task.id] -= 1
                found = runners(task)
                if found:
                    kin.kill(found[0])
            if with_keeper and chance.random() < 0.3 and keepers.pid(home):
                os.kill(keepers.pid(home), signal.SIGKILL)
            rivals = [try_runner(task) for _ in range(3)]
            eventually(lambda task=task: runners(task), 30, "a runner lives", journal=task.packet)
            for rival in rivals:
                eventually(
                    lambda rival=rival, task=task: not processes.is_alive(rival) or rival in runners(task),
                    30,
                    "a rival leaves",
                )
            assert len(runners(task)) == 1, (seed, task.events("runner."))
        kin.go()
        for task in tasks:
            task.wait_for("completed", within_s=60)
            assert_one_life(task)
    assert lines("overlaps") == []
    wake(home)


def wake(home: str) -> None:
    """Make keeper and seed restore their lock files, which the test needs to stop them."""
    seed_client.ask(Home(home), {"verb": "ping"})
    eventually(lambda: not inbox.ring_keeper(Home(home)) or keepers.pid(home), what="the keeper is known")


@pytest.mark.parametrize("name", ["keeper", "seed"])
def test_keeper_and_seed_stay_the_only_ones_without_their_lock_files(
    home: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    assert holdfast("up").returncode == 0
    path = os.path.join(home, f"{name}.lock")
    owner = eventually(
        lambda: lock_owner.owner(path) if locks.is_held(path) else None, what=f"the {name} lives"
    )
    assert owner is not None
    if name == "seed":
        eventually(lambda: seed_client.ask(Home(home), {"verb": "ping"}), what="the seed answers")
    os.unlink(path)
    assert locks.is_held(path)
    shown = json.loads(holdfast("status", "--json").stdout)[name]
    assert shown is None or shown["pid"] == owner.pid  # never 0: a script may pass it to kill
    second = subprocess.run(
        [sys.executable, "-P", "-m", f"holdfast.{name}"], capture_output=True, timeout=30, check=False
    )
    assert second.returncode == 75, second.stderr
    wake(home)
    eventually(lambda: lock_owner.owner(path) == owner, what="the lock file is back")
    assert processes.is_alive(owner.pid)


_RUNNER_ON_NFS = """
import errno, fcntl, os, stat, sys
flock = fcntl.flock
def of_nfs(descriptor, operation):
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    flock(descriptor, operation)
fcntl.flock = of_nfs
from holdfast.runner.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_runner_that_lost_its_lock_leaves_without_writing(home: str) -> None:
    """Where only files can be locked."""
    task = kin.make("--", "sh", "-c", AGENT)
    runner = subprocess.Popen(
        [sys.executable, "-c", _RUNNER_ON_NFS, task.packet], stderr=subprocess.PIPE, start_new_session=True
    )
    agent = task.agent_pid()
    before = eventually(lambda: task.manifest()["last_checked_at"] and task.read("events.jsonl"))
    os.unlink(task.path("runner.lock"))
    inbox.ring(Packet(task.packet))
    complaint = runner.communicate(timeout=15)[1].decode()
    assert "its lock was removed; another runner may have the task" in complaint
    assert task.read("events.jsonl") == before
    assert processes.is_alive(agent)
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    kin.go()
    task.wait_for("completed")
    assert_one_life(task)


def test_a_recorder_whose_lock_file_is_gone_is_not_taken_for_dead(home: str) -> None:
    """Its exit record arrives, also if the home was renamed in the meantime."""
    task = Task.shell(AGENT + "; exit 7")
    task.agent_pid()
    os.unlink(os.path.join(task.attempts()[0], "lock"))
    task.kill_runner()
    os.rename(home, f"{home}.elsewhere")
    kin.go()
    moved = Task(task.packet.replace(home, f"{home}.elsewhere", 1))
    eventually(lambda: os.path.exists(os.path.join(moved.attempts()[0], "exit.json")), what="its record")
    os.rename(f"{home}.elsewhere", home)
    task.start_runner()
    assert task.wait_for("failed")["exit_code"] == 7
    assert len(lines(f"agents.{task.id}")) == 1
