"""A home that was copied while its agents work (`cp -a`): the copy touches nothing of the original."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from holdfast.store.layout import Packet
from holdfast.views import requests
from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

SCRIPT = (
    "echo run $HOLDFAST_RESUME_COUNT; setsid sh -c 'echo $$ > tool; exec sleep 300' & " + kin.WAIT + "exit 3"
)


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


def copied(home: str, task: Task) -> Task:
    """The task in a copy of its home. Its project is empty, so that only its own agent's files are there."""
    copy = home + "-copy"
    subprocess.run(["cp", "-a", home, copy], check=True, timeout=30)
    return adopted(Task(os.path.join(copy, "tasks", task.id)))


def adopted(task: Task) -> Task:
    """As `resume --adopt` does: a copy has no records, so nothing of it is run before."""
    requests.adopt(Packet(task.packet))
    return task


def ask(task: Task, verb: str, *args: str) -> subprocess.CompletedProcess[str]:
    home = os.path.dirname(os.path.dirname(task.packet))
    return holdfast(verb, task.id, *args, env={"HOLDFAST_HOME": home})


def family(*flags: str) -> tuple[Task, dict[str, int]]:
    task = Task.shell(SCRIPT, *flags)
    return task, {
        "agent": task.agent_pid(),
        "tool": kin.pid_in("tool"),
        "runner": task.runner_pid(),
        "recorder": kin.recorder_pid(task),
    }


def alive(members: dict[str, int]) -> dict[str, str]:
    return {name: kin.state(pid) for name, pid in members.items()}


def ends_well(task: Task, members: dict[str, int]) -> None:
    """The original was not affected: one attempt, one runner, its own end."""
    assert all(state in ("S", "R", "D") for state in alive(members).values()), alive(members)
    kin.go()
    assert task.wait_for("failed")["exit_code"] == 3
    assert len(task.events("attempt.opened")) == 1
    assert len(task.events("runner.started")) == 1


def test_a_copy_does_not_adopt_the_originals_agent_and_says_so(home: str) -> None:
    task, members = family()
    copy = copied(home, task)
    copy.start_runner()
    ended = copy.wait_for_event("attempt.ended")
    assert (ended["outcome"], ended["by"], ended["resumable"]) == ("lost", "nobody", False)
    assert "belongs to another home" in ended["detail"]
    assert str(members["agent"]) in ended["detail"]
    # It starts a new attempt, as after any lost one.
    copy.wait_for_event("attempt.started", 2)
    assert copy.manifest()["total_retries"] == 0
    assert copy.manifest()["pid"] != members["agent"]
    assert copy.events("attempt.swept")[0]["killed"] == []
    assert ask(copy, "stop").returncode == 0
    copy.wait_for("killed")
    ends_well(task, members)


@pytest.mark.parametrize("verb", ["stop", "interrupt", "rm"])
def test_a_request_in_the_copy_reaches_nothing_of_the_original(home: str, verb: str) -> None:
    task, members = family()
    copy = copied(home, task)
    done = ask(copy, verb, *(["--force"] if verb == "rm" else []))
    assert done.returncode in (0, 3), done.stderr
    if verb != "rm":
        copy.wait_for("killed" if verb == "stop" else "interrupted")
    if verb == "interrupt":
        assert ask(copy, "stop").returncode == 0
        copy.wait_for("killed")
    ends_well(task, members)


def test_a_deadline_or_an_intended_stop_in_the_copy_reaches_nothing_of_the_original(home: str) -> None:
    task, members = family()
    copy = copied(home, task)
    with open(copy.path("events.jsonl"), "a", encoding="utf-8") as file:
        event = {"id": "0" * 26, "at": "2026-01-01T00:00:00.000Z", "type": "stop.intended", "attempt": 1}
        file.write(json.dumps({**event, "intent": "stop", "reason": "a test", "request": None}) + "\n")
    copy.reseal()
    copy.start_runner()
    copy.wait_for("killed")
    ends_well(task, members)


def test_the_copy_of_an_attempt_that_ended_does_not_sweep_the_originals_leftovers(home: str, place) -> None:
    """The original's runner is killed after it recorded the end; both homes have the sweep before them."""
    point = {
        "HOLDFAST_FAILPOINT": "step.record_end=kill",
        "HOLDFAST_FAILPOINT_ONCE": os.path.join(place.root, "once"),
    }
    task = Task.shell(SCRIPT, env=point)
    tool, runner = kin.pid_in("tool"), task.runner_pid()
    kin.go()
    eventually(lambda: not processes.is_alive(runner), what="the runner is killed")
    copy = copied(home, task)
    copy.start_runner()
    copy.wait_for("failed")
    assert processes.is_alive(tool)
    task.start_runner()
    task.wait_for("failed")
    assert not processes.is_alive(tool)


def test_the_copy_of_an_orphan_is_not_the_orphans_home(home: str) -> None:
    """Recorder and runner of the original are dead as well: only the directory tells the two homes apart."""
    task, members = family()
    copy = copied(home, task)
    kin.kill(members["runner"], members["recorder"])
    copy.start_runner()
    copy.wait_for_event("attempt.ended")
    assert ask(copy, "stop").returncode == 0
    copy.wait_for("killed")
    assert processes.is_alive(members["agent"])
    assert processes.is_alive(members["tool"])
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    assert task.manifest()["pid"] == members["agent"]
    task.stop()
    assert not processes.is_alive(members["agent"])
    assert not processes.is_alive(members["tool"])


def test_an_original_that_was_renamed_is_still_the_original(home: str) -> None:
    """`mv home moved; cp -a moved home`: the copy is at the path that the agent's environment names."""
    task, members = family()
    kin.kill(members["runner"], members["recorder"])
    moved = home + "-moved"
    os.rename(home, moved)
    subprocess.run(["cp", "-a", moved, home], check=True, timeout=30)
    copy, original = Task(os.path.join(home, "tasks", task.id)), Task(os.path.join(moved, "tasks", task.id))
    adopted(copy).start_runner()
    assert "belongs to another home" in copy.wait_for_event("attempt.ended")["detail"]
    assert ask(copy, "stop").returncode == 0
    copy.wait_for("killed")
    assert processes.is_alive(members["agent"])
    original.start_runner()
    original.wait_for_event("runner.started", 2)
    assert original.manifest()["pid"] == members["agent"]
    assert ask(original, "stop").returncode == 0
    original.wait_for("killed")
    assert not processes.is_alive(members["agent"])
    assert not processes.is_alive(members["tool"])


def test_a_copy_without_the_record_of_its_directory_asks_the_process(home: str) -> None:
    """As an older version wrote it: the agent's open log and its environment decide."""
    task, members = family()
    for packet in (task, copied(home, task)):
        path = packet.path("attempts", "001-command_run", "identity.json")
        with open(path, encoding="utf-8") as file:
            identity = json.load(file)
        identity.pop("directory", None)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(identity, file)
    copy = Task(os.path.join(home + "-copy", "tasks", task.id))
    copy.start_runner()
    assert "belongs to another home" in copy.wait_for_event("attempt.ended")["detail"]
    assert ask(copy, "stop").returncode == 0
    copy.wait_for("killed")
    ends_well(task, members)


def test_keeper_and_seed_of_the_original_are_not_those_of_the_copy(home: str) -> None:
    """The copy's lock files name live processes; these are neither signalled nor trusted."""
    seed = kin.start_seed(home)
    task, members = family()
    copy = copied(home, task)
    away = {"HOLDFAST_HOME": home + "-copy"}
    assert holdfast("status", env=away).returncode in (0, 1)
    holdfast("down", "--now", env=away)
    assert processes.is_alive(seed)
    assert copy.status() in ("interrupted", "running", "spawning", "crashed", "waiting")
    ends_well(task, members)
    os.kill(seed, signal.SIGKILL)


def test_the_copy_ignores_the_workspace_it_did_not_start_in(home: str) -> None:
    """A process of the user in the same project belongs to no task."""
    task, members = family()
    bystander = subprocess.Popen(["sleep", "60"], cwd=workspace(), start_new_session=True)
    copy = copied(home, task)
    copy.start_runner()
    copy.wait_for_event("attempt.ended")
    assert ask(copy, "stop").returncode == 0
    copy.wait_for("killed")
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    ends_well(task, members)
