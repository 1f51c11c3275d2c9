"""A home as it should not be: linked, read-only, open to others, with a broken or busy index."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.testing import Scenario
from tests.integration.test_pipeline_gates import implementing
from tests.support import kin, loops, processes
from tests.support.packets import WORK
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import give_up, need
from tests.support.waiting import eventually


def ids() -> list[str]:
    done = holdfast("ls", "--json")
    assert done.returncode == 0, done.stderr
    return [row["task_id"] for row in json.loads(done.stdout)]


# ── linked ──


@pytest.fixture
def linked(home: str, place, monkeypatch: pytest.MonkeyPatch) -> str:
    """The home, through a symbolic link."""
    link = os.path.join(place.root, "link")
    os.symlink(home, link)
    monkeypatch.setenv("HOLDFAST_HOME", link)
    return link


def test_a_linked_home_is_the_same_home(linked: str, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    assert ids() == [task.id]
    assert task.ask("show").returncode == 0
    assert task.manifest()["tmpdir"] == os.path.join(os.path.realpath(home), "tasks", task.id)
    monkeypatch.setenv("HOLDFAST_HOME", home)
    assert ids() == [task.id]
    task.stop()


def test_a_stopped_recorder_is_woken_in_a_linked_home(linked: str) -> None:
    """Its runner finds it by the open lock, which the kernel names by its real path."""
    task = Task.shell(kin.WAIT)
    agent, recorder = task.agent_pid(), kin.recorder_pid(task)
    os.kill(recorder, signal.SIGSTOP)
    os.kill(agent, signal.SIGKILL)
    ended = task.wait_for_event("attempt.ended", within_s=15)
    assert (ended["by"], ended["exit_signal"]) == ("recorder", signal.SIGKILL)
    task.stop()


def test_a_stop_in_a_linked_home_leaves_no_process(linked: str) -> None:
    task = Task.shell("setsid sleep 77 & echo $! > child; " + kin.WAIT)
    child = kin.pid_in("child")
    task.stop()
    assert not processes.is_alive(child)


# ── the index ──


@pytest.fixture
def two(home: str) -> Iterator[list[str]]:
    """A task that runs and one that has ended, both in the index; newest first."""
    ended = Task.shell("exit 0")
    ended.wait_for("completed")
    running = Task.shell(kin.WAIT)
    running.agent_pid()
    expected = [running.id, ended.id]
    assert ids() == expected
    yield expected
    running.stop()


def index_of(home: str) -> str:
    return os.path.join(home, "index.db")


@pytest.mark.parametrize("lock", ["BEGIN EXCLUSIVE", "BEGIN IMMEDIATE"])
def test_an_index_that_another_writes_does_not_keep_ls_from_an_answer(
    home: str, two: list[str], lock: str
) -> None:
    busy = sqlite3.connect(index_of(home), isolation_level=None)
    try:
        busy.execute(lock)
        busy.execute("UPDATE meta SET value = ''")
        made = kin.make("--", "true", task_id="late")
        assert sorted(ids()) == sorted([made.id, *two])
        busy.execute("ROLLBACK")
    finally:
        busy.close()
    assert sorted(ids()) == sorted(["late", *two])
    made.start_runner()
    made.wait_for("completed")


def test_an_index_without_wal_that_is_locked_whole(home: str, two: list[str]) -> None:
    """Where the lock keeps readers out too."""
    busy = sqlite3.connect(index_of(home), isolation_level=None)
    try:
        assert busy.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete"
        busy.execute("BEGIN EXCLUSIVE")
        assert ids() == two
        status = holdfast("status", "--json")
        assert json.loads(status.stdout)["counts"] == {"running": 1, "completed": 1}
        busy.execute("ROLLBACK")
    finally:
        busy.close()
    assert ids() == two


def _garbage(path: str) -> None:
    with open(path, "wb") as file:
        file.write(b"\xff" * 5000)


def _broken_pages(path: str) -> None:
    """The header is whole, and what it leads to is not."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def _other_version(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize("breaks", [_garbage, _broken_pages, _other_version])
def test_a_broken_index_is_made_anew(home: str, two: list[str], breaks) -> None:
    with sqlite3.connect(index_of(home)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    for suffix in ("-wal", "-shm"):
        if os.path.exists(index_of(home) + suffix):
            os.unlink(index_of(home) + suffix)
    breaks(index_of(home))
    assert ids() == two
    assert ids() == two
    with sqlite3.connect(index_of(home)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert connection.execute("SELECT count(*) FROM tasks").fetchone()[0] == 2
    connection.close()


# ── read-only, and open to others ──


@pytest.fixture
def read_only(home: str, place) -> Iterator[str]:
    """The same home, mounted for reading only. (Modes mean nothing to root.)"""
    need("mount", "umount")
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    path = os.path.join(place.root, "read-only")
    os.mkdir(path, 0o700)
    for options in (["--bind"], ["-o", "remount,bind,ro"]):
        command = ["mount", *options, home, path]
        mounted = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        if mounted.returncode != 0:
            subprocess.run(["umount", "--lazy", path], capture_output=True, timeout=20, check=False)
            give_up(f"root cannot mount here: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", "--lazy", path], timeout=20, check=True)


@pytest.mark.parametrize("with_index", [True, False])
def test_a_home_that_may_only_be_read_is_read(
    home: str, read_only: str, monkeypatch: pytest.MonkeyPatch, *, with_index: bool
) -> None:
    task = Task.shell("echo hello")
    task.wait_for("completed")
    if with_index:
        assert ids() == [task.id]
        late = Task.shell("exit 0")
        late.wait_for("completed")
        expected = [late.id, task.id]
    else:
        expected = [task.id]
    monkeypatch.setenv("HOLDFAST_HOME", read_only)
    assert ids() == expected
    assert holdfast("show", task.id).returncode == 0
    assert holdfast("logs", task.id).stdout == "hello\n"
    assert json.loads(holdfast("status", "--json").stdout)["counts"] == {"completed": len(expected)}


@pytest.mark.parametrize("folder", ["", "tasks"])
@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_home_into_which_others_can_write_is_refused(home: str, folder: str, mode: int) -> None:
    os.makedirs(os.path.join(home, "tasks"), mode=0o700, exist_ok=True)
    path = os.path.join(home, folder).rstrip("/")
    os.chmod(path, mode)
    done = holdfast("run", "-d", "--", "true", cwd=workspace())
    assert done.returncode not in (0, 1), done.stderr
    assert f"other users can write to the home {path}" in done.stderr
    assert f"chmod go-w {path}" in done.stderr
    assert os.listdir(os.path.join(home, "tasks")) == []
    os.chmod(path, 0o700)
    task = Task.shell("exit 0")
    task.wait_for("completed")
    eventually(lambda: ids() == [task.id])


# ── removed ──

#: An agent with a child in its own session, which ignores SIGTERM.
FAMILY = (
    "setsid sh -c 'trap \"\" TERM; echo $$ > ../child; while :; do echo >> ../ticks; sleep 0.1; done' & "
    "echo on; " + kin.WAIT
)


def family(*flags: str) -> tuple[Task, list[int]]:
    task = Task.shell(FAMILY, "--base-interval", "0.2s", *flags)
    task.wait_for_log("on")
    path = Path(workspace()).parent / "child"
    child = int(eventually(lambda: path.exists() and path.read_text().strip()))
    return task, [task.agent_pid(), child, kin.recorder_pid(task), task.runner_pid()]


def remove(path: str) -> None:
    """Again, if a runner has just written a file."""

    def is_removed() -> bool:
        shutil.rmtree(path, ignore_errors=True)
        return not os.path.exists(path)

    eventually(is_removed, 20, f"{path} is removed")


def test_a_home_that_is_removed_takes_its_processes_with_it(home: str) -> None:
    _, members = family()
    remove(home)
    eventually(
        lambda: not any(map(processes.is_alive, members)), 20, "agent, child, recorder and runner are gone"
    )
    assert not os.path.exists(home)


def test_a_packet_that_is_removed_takes_its_processes_with_it_and_no_other_task(home: str) -> None:
    other = Task.shell(kin.WAIT)
    other.agent_pid()
    task, members = family()
    remove(task.packet)
    eventually(
        lambda: not any(map(processes.is_alive, members)), 20, "agent, child, recorder and runner are gone"
    )
    assert processes.is_alive(other.agent_pid())
    assert not os.path.exists(task.packet)
    other.stop()


def test_a_recorder_alone_ends_its_agent_when_the_home_is_removed(home: str) -> None:
    _, (agent, child, recorder, runner) = family()
    holdfast("down")
    os.kill(runner, signal.SIGKILL)
    eventually(lambda: not processes.is_alive(runner))
    remove(home)
    eventually(
        lambda: not any(map(processes.is_alive, (agent, child, recorder))),
        50,
        "agent, child, recorder are gone",
    )


def test_a_home_that_is_away_for_a_moment_costs_nobody(home: str) -> None:
    task, members = family()
    os.rename(home, home + ".away")
    ticks = Path(workspace()).parent / "ticks"
    many = len(ticks.read_text()) + 30  # longer than two checks take
    eventually(lambda: len(ticks.read_text()) > many)
    assert all(map(processes.is_alive, members[:3]))
    os.rename(home + ".away", home)
    assert task.wait_for("running")["attempt"] == 1
    task.stop()
    eventually(lambda: not any(map(processes.is_alive, members)), 20)


def test_a_home_that_is_moved_is_followed(home: str) -> None:
    task, members = family()
    moved = {"HOLDFAST_HOME": home + "-moved"}
    os.rename(home, moved["HOLDFAST_HOME"])
    task = Task(os.path.join(moved["HOLDFAST_HOME"], "tasks", task.id))
    assert task.wait_for_event("runner.left")["reason"] == "its packet was moved"
    task.wait_for_event("runner.started", 2)
    assert all(map(processes.is_alive, members[:3]))
    done = holdfast("stop", task.id, env=moved)
    assert done.returncode == 0, done.stderr
    manifest = task.wait_for("killed")
    assert (manifest["attempt"], manifest["tmpdir"]) == (1, task.packet)
    assert not os.path.exists(home)
    holdfast("down", "--now", env=moved)


def test_a_stage_that_writes_keeps_its_workspace_when_its_home_is_moved(home: str) -> None:
    scenario = Scenario().write(WORK, content="hello\n").tool("sleep", run_s=4)
    task = implementing(scenario).start()
    task.wait_for_event("agent.tool_started")
    moved = {"HOLDFAST_HOME": home + "-moved"}
    os.rename(home, moved["HOLDFAST_HOME"])
    task = Task(os.path.join(moved["HOLDFAST_HOME"], "tasks", task.id))
    task.wait_for("completed", within_s=40)
    assert task.events("runner.left")[0]["reason"] == "its packet was moved"
    holdfast("down", "--now", env=moved)


def test_what_stands_at_the_old_place_of_a_home_is_not_taken_for_it(home: str) -> None:
    task, _ = family()
    moved = {"HOLDFAST_HOME": home + "-moved"}
    os.rename(home, moved["HOLDFAST_HOME"])
    os.makedirs(task.packet)
    task = Task(os.path.join(moved["HOLDFAST_HOME"], "tasks", task.id))
    assert holdfast("stop", task.id, env=moved).returncode == 0
    task.wait_for("killed")
    holdfast("down", "--now", env=moved)


def test_a_sweep_leaves_the_agents_of_another_home_alone(home: str) -> None:
    """Also where the other home was moved, and the tasks have the same id."""
    _, members = family("--id", "same")
    moved = {"HOLDFAST_HOME": home + "-moved"}
    os.rename(home, moved["HOLDFAST_HOME"])
    other = Task.shell(kin.WAIT, "--id", "same")
    other.agent_pid()
    other.stop()
    assert all(map(processes.is_alive, members[:3]))
    holdfast("stop", "same", env=moved)
    Task(os.path.join(moved["HOLDFAST_HOME"], "tasks", "same")).wait_for("killed")
    holdfast("down", "--now", env=moved)


def test_an_agent_that_ends_while_its_home_has_another_name_is_not_lost(home: str) -> None:
    task = Task.shell("echo on; while [ ! -e go ]; do sleep 0.05; done; exit 7")
    task.wait_for_log("on")
    holdfast("down")
    os.kill(task.runner_pid(), signal.SIGKILL)
    moved = {"HOLDFAST_HOME": home + "-moved"}
    os.rename(home, moved["HOLDFAST_HOME"])
    Path(workspace(), "go").touch()
    task = Task(os.path.join(moved["HOLDFAST_HOME"], "tasks", task.id))
    eventually(lambda: os.path.exists(os.path.join(task.attempts()[0], "exit.json")), 15, "its exit record")
    kin.run_runner(task)
    assert task.wait_for("failed")["exit_code"] == 7


def test_a_file_among_the_tasks_is_passed_over(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task.shell("true")
    task.wait_for("completed")
    Path(home, "tasks", "notes.txt").touch()
    assert holdfast("ls", "-q").stdout == f"{task.id}\n"
    for verb in (("status",), ("report",), ("queue", "ls"), ("rm", "notes.txt")):
        done = holdfast(*verb)
        assert done.returncode == (3 if verb[0] == "rm" else 0), done.stderr
    assert "no task 'notes.txt'" in holdfast("show", "notes.txt").stderr
    monkeypatch.delenv("HOLDFAST_KEEPER")
    submitted = loops.submit("--", "true")
    assert holdfast("up").returncode == 0
    submitted.wait_for("completed")
    assert holdfast("down", "--now").returncode == 0
    assert os.path.exists(Path(home, "tasks", "notes.txt"))
