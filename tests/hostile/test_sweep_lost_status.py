"""Recorder, runner, keeper and seed die at once: the agent's exit status is known, or is not guessed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from holdfast.model.process import ProcessIdentity
from holdfast.store import process
from holdfast.testing import Scenario
from holdfast.watch.death import watch_death
from tests.support import kin
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


def orphaned(task: Task, home: str) -> int:
    """Kill all processes but the agent at once, and start another runner, which adopts it."""
    agent, seed = task.agent_pid(), kin.start_seed(home)
    kin.kill(seed, task.runner_pid(), kin.recorder_pid(task))
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    eventually(lambda: watches(task.runner_pid(), agent), what="the runner watches it")
    return agent


def watches(runner: int, agent: int) -> bool:
    """Whether the runner has a pidfd of the agent."""
    folder = f"/proc/{runner}/fdinfo"
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="ascii") as file:
            if f"Pid:\t{agent}\n" in file.read():
                return True
    return False


def end_unseen(task: Task, agent: int) -> None:
    """The agent ends unsupervised, and init reaps it: a zombie would still have its status."""
    kin.kill(task.runner_pid(), kin.recorder_pid(task))
    kin.go()
    eventually(lambda: not os.path.exists(f"/proc/{agent}"), 30, "the agent is reaped")


def runs() -> int:
    with open(os.path.join(workspace(), "runs"), encoding="utf-8") as file:
        return len(file.readlines())


@pytest.mark.parametrize(("ending", "code", "number"), [("exit 7", 7, None), ("kill -9 $$", 137, 9)])
def test_an_orphans_exit_status_is_known_to_the_runner_that_adopted_it(
    home: str, ending: str, code: int, number: int | None
) -> None:
    if not kin.kernel_tells_status():
        pytest.skip("needs Linux 6.15 or newer")
    task = Task.shell("echo >> runs; [ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT + ending)
    orphaned(task, home)
    kin.go()
    task.wait_for("failed" if number is None else "completed")
    ended = task.events("attempt.ended")[0]
    assert (ended["exit_code"], ended["exit_signal"], ended["by"]) == (code, number, "kernel")
    record = task.json("attempts", "001-command_run", "exit.json")
    assert (record["by"], record["exit_code"], record["rusage"]) == ("kernel", code, None)
    assert runs() == (1 if number is None else 2)
    # Its process tree is lost nevertheless.
    assert task.events("attempt.swept")[0]["proof"] == "none marked"


def test_an_orphan_that_reported_its_result_has_succeeded(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit status is unknown: its last event counts."""
    scenario = Scenario().say("working").wait_file(os.path.join(workspace(), "go")).result("all done")
    task = Task.play(scenario)
    agent = task.agent_pid()
    task.wait_for_log("working")
    end_unseen(task, agent)
    task.start_runner()
    manifest = task.wait_for("completed")
    ended = task.events("attempt.ended")
    assert [(e["outcome"], e["exit_code"], e["by"]) for e in ended] == [("success", None, "nobody")]
    assert "exit status is unknown" in ended[0]["detail"]
    assert manifest["attempt"] == 1


def test_an_orphan_without_a_result_is_lost_and_resumed(home: str) -> None:
    script = Scenario().say("working").wait_file(os.path.join(workspace(), "go")).crash("KILL", tries=1)
    task = Task.play(script.result("done"))
    agent = task.agent_pid()
    task.wait_for_log("working")
    end_unseen(task, agent)
    task.start_runner()
    task.wait_for("completed")
    assert [e["outcome"] for e in task.events("attempt.ended")] == ["lost", "success"]


def test_a_plain_command_with_unknown_exit_status_is_lost(home: str) -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT + "exit 0")
    agent = task.agent_pid()
    end_unseen(task, agent)
    task.start_runner()
    task.wait_for("completed")
    assert [e["outcome"] for e in task.events("attempt.ended")] == ["lost", "success"]


def test_an_agent_killed_with_all_other_processes_is_lost_and_burns_no_retry(home: str) -> None:
    """Even if its status can still be read: what killed all of them was not its failure."""
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT)
    kin.kill(task.agent_pid(), task.runner_pid(), kin.recorder_pid(task))
    task.start_runner()
    assert task.wait_for("completed")["total_retries"] == 0
    assert [e["outcome"] for e in task.events("attempt.ended")] == ["lost", "success"]


# ── what the kernel tells ──


def child(status: int) -> tuple[int, ProcessIdentity]:
    """A child that ends with `status` (below 0: by a signal) when its pipe is closed; pipe and identity."""
    ready, go = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(go)
        os.read(ready, 1)
        if status < 0:
            os.kill(os.getpid(), -status)
        os._exit(status)
    os.close(ready)
    identity = process.identify(pid)
    assert identity is not None
    return go, identity


@pytest.mark.parametrize("status", [0, 7, 255, -signal.SIGKILL, -signal.SIGTERM])
def test_the_status_of_a_zombie_and_of_a_reaped_process_is_that_of_wait(status: int) -> None:
    go, identity = child(status)
    watch = watch_death(identity)
    assert watch.exit_status() is None
    os.close(go)
    eventually(watch.has_died, what="it died")
    as_zombie = watch.exit_status()
    waited = os.waitpid(identity.pid, 0)[1]
    as_reaped = watch.exit_status()
    watch.close()
    assert as_zombie == waited
    assert as_reaped == (waited if kin.kernel_tells_status() else None)


@pytest.mark.parametrize("kernel", ["old", "no exit"])
def test_an_older_kernel_tells_nothing_about_a_reaped_process(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def ioctl(descriptor: int, request: int, info: bytearray) -> int:
        if kernel == "old":
            raise OSError(25, "Inappropriate ioctl for device")
        info[:8] = (0b111).to_bytes(8, "little")  # that kernel reports ids, but no exit status
        return 0

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    go, identity = child(7)
    watch = watch_death(identity)
    os.close(go)
    eventually(watch.has_died, what="it died")
    os.waitpid(identity.pid, 0)
    assert watch.exit_status() is None
    watch.close()
