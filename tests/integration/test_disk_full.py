"""A full disk: a clear error, and nothing is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.support import disks, kin, processes
from tests.support.bad_input import refused, tree
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


@pytest.fixture
def small_home(place, monkeypatch: pytest.MonkeyPatch, home: str) -> Iterator[str]:
    """A home on a disk of one megabyte."""
    path = os.path.join(place.root, "small")
    with disks.small_disk(path, megabytes=1):
        monkeypatch.setenv("HOLDFAST_HOME", path)
        lock = kin.alone(path)
        yield path
        os.close(lock)
        eventually(lambda: not processes.marked(path + "/tasks"), what="nobody uses the disk")


@pytest.mark.req("PKT-10")
def test_a_full_disk_refuses_a_task_and_leaves_nothing_behind(small_home: str) -> None:
    old = Task.start("--", "echo", "old")
    old.wait_for("completed")
    eventually(lambda: not processes.marked(old.packet), what="the runner is gone")
    filler = disks.fill(small_home)
    before = tree(old.packet)
    said = refused("run", "-d", "--id", "new", "--", "true", cwd=workspace(), status=3)
    assert "No space left on device" in said
    assert "hint: free some space; no existing data is lost" in said
    assert os.listdir(os.path.join(small_home, "tasks")) == [old.id]
    said = refused("retry", old.id, "--from", "command_run", status=3)
    assert "No space left on device" in said
    assert tree(old.packet) == before
    assert holdfast("show", old.id).returncode == 0
    os.unlink(filler)
    Task.start("--id", "new", "--", "true").wait_for("completed")


@pytest.mark.req("PKT-10")
def test_a_disk_that_fills_up_under_a_running_task_is_waited_out(small_home: str) -> None:
    task = Task.shell("echo before; " + kin.WAIT + "echo after; exit 0")
    task.wait_for_log("before")
    agent = task.agent_pid()
    filler = disks.fill(small_home)
    kin.go()
    eventually(lambda: not processes.is_alive(agent), what="the agent ended")
    assert task.runner_pid()
    os.unlink(filler)
    manifest = task.wait_for("completed")
    assert manifest["exit_code"] == 0
    assert len(task.events("runner.started")) == 1
    assert len(task.events("attempt.ended")) == 1


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize(
    "point",
    [
        "journal.before_append",
        "atomic.before_fsync",
        "atomic.before_rename",
        "ingest.shown",
        "ingest.indexed",
    ],
)
def test_a_disk_that_is_full_for_a_moment_loses_nothing(point: str, place) -> None:
    for nth in (1, 3):
        env = {"HOLDFAST_FAILPOINT": f"{point}=enospc@{nth}"}
        env["HOLDFAST_FAILPOINT_ONCE"] = os.path.join(place.root, f"once-{nth}")
        task = kin.make("--", "sh", "-c", "echo one; echo two; exit 0", task_id=f"t{nth}")
        assert kin.run_runner(task, env) == 0, task.read("events.jsonl")
        assert task.wait_for("completed")["output_tail"] == "one\ntwo"
        assert len(task.events("attempt.ended")) == 1
        assert [name for name in os.listdir(task.packet) if name.endswith(".tmp")] == []
    shutil.rmtree(os.path.join(place.root, "home", "tasks"))
