"""Runners and recorders die; the agent keeps running, is adopted, and its end is known."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


def attempts_ended(task: Task) -> list[tuple[str, int | None, str]]:
    return [(e["outcome"], e["exit_code"], e["by"]) for e in task.events("attempt.ended")]


# ── the runner dies ──


@pytest.mark.req("LCH-1", "LCH-7", "W-A6", "LCH-19")
def test_a_killed_runners_successor_adopts_the_same_agent_and_learns_its_exit_status() -> None:
    task = Task.shell(kin.WAIT + "exit 7")
    agent = task.agent_pid()
    task.kill_runner()
    assert processes.is_alive(agent)
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    assert task.manifest()["pid"] == agent
    kin.go()
    manifest = task.wait_for("failed")
    assert manifest["exit_code"] == 7
    assert attempts_ended(task) == [("failed", 7, "recorder")]
    assert len(task.events("attempt.started")) == 1
    assert manifest["total_retries"] == 0


@pytest.mark.req("LCH-7", "SUP-10", "W-A6", "SUP-12")
def test_an_agent_that_ends_while_no_runner_lives_is_completed_by_the_next_one() -> None:
    task = Task.shell(kin.WAIT + "echo last words; exit 0")
    agent = task.agent_pid()
    task.kill_runner()
    kin.go()
    eventually(lambda: os.path.exists(os.path.join(task.attempts()[0], "done")), what="the exit is recorded")
    assert not processes.is_alive(agent)
    assert task.status() == "running"
    task.start_runner()
    manifest = task.wait_for("completed")
    assert manifest["exit_code"] == 0
    assert "last words" in manifest["output_tail"]
    assert attempts_ended(task) == [("success", 0, "recorder")]
    assert manifest["attempt"] == 1


@pytest.mark.req("LCH-7")
def test_a_death_by_signal_is_known_although_no_runner_lived() -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT + "kill -SEGV $$")
    task.agent_pid()
    task.kill_runner()
    kin.go()
    eventually(lambda: os.path.exists(os.path.join(task.attempts()[0], "done")), what="the exit is recorded")
    task.start_runner()
    task.wait_for("completed")
    assert attempts_ended(task) == [("crashed", 128 + signal.SIGSEGV, "recorder"), ("success", 0, "recorder")]


@pytest.mark.req("LCH-1", "LCH-19")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_runner_that_gets_sigterm_leaves_and_the_next_one_adopts(number: signal.Signals) -> None:
    task = Task.shell(kin.WAIT + "exit 3")
    agent, runner = task.agent_pid(), task.runner_pid()
    os.kill(runner, number)
    left = task.wait_for_event("runner.left")
    assert (left["pid"], left["reason"]) == (runner, number.name)
    eventually(lambda: not processes.is_alive(runner), what="the runner is gone")
    assert processes.is_alive(agent)
    assert task.manifest()["runner"] is None
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    kin.go()
    assert task.wait_for("failed")["exit_code"] == 3
    assert len(task.events("attempt.opened")) == 1


@pytest.mark.req("LCH-1", "LCH-19")
def test_the_shell_that_started_the_task_and_its_session_may_die() -> None:
    script = 'cd "$1" && "$2" -m holdfast run -d --id it -- sh -c "$3" && kill -HUP 0'
    argv = ["setsid", "sh", "-c", script, "x", workspace(), sys.executable, kin.WAIT + "exit 0"]
    subprocess.run(argv, capture_output=True, timeout=30, check=False)
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it"))
    agent, runner = task.agent_pid(), task.runner_pid()
    # What is sent to the session of the shell reaches neither of them.
    assert (os.getsid(agent), os.getsid(runner)) == (agent, runner)
    kin.go()
    task.wait_for("completed")
    assert not processes.is_alive(agent)


@pytest.mark.req("LCH-19")
def test_a_runner_that_fails_leaves_its_reason_in_its_own_log() -> None:
    task = kin.make("--", "true")
    os.rename(task.path("events.jsonl"), task.path("aside"))
    os.mkdir(task.path("events.jsonl"))
    task.start_runner()
    log = task.path("runner.log")
    eventually(
        lambda: os.path.exists(log) and b"events.jsonl" in task.read("runner.log"), what="it is logged"
    )
    os.rmdir(task.path("events.jsonl"))
    os.rename(task.path("aside"), task.path("events.jsonl"))
    task.start_runner()
    task.wait_for("completed")


# ── the recorder dies, or is stopped ──


@pytest.mark.req("LCH-7", "SUP-10")
def test_a_killed_recorder_leaves_its_agent_to_the_runner_which_records_the_end() -> None:
    task = Task.shell(kin.WAIT + "exit 5")
    agent, runner, recorder = task.agent_pid(), task.runner_pid(), kin.recorder_pid(task)
    kin.kill(recorder)
    eventually(lambda: kin.parent(agent) == runner, what="the agent re-parents to the runner")
    kin.go()
    assert task.wait_for("failed")["exit_code"] == 5
    assert attempts_ended(task) == [("failed", 5, "runner")]
    record = json.loads(task.read("attempts", "001-command_run", "exit.json"))
    assert (record["by"], record["exit_code"], record["exit_signal"]) == ("runner", 5, None)


@pytest.mark.req("LCH-7")
def test_a_killed_recorder_and_an_agent_killed_by_a_signal() -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT)
    agent, runner, recorder = task.agent_pid(), task.runner_pid(), kin.recorder_pid(task)
    kin.kill(recorder)
    eventually(lambda: kin.parent(agent) == runner, what="the agent re-parents to the runner")
    os.kill(agent, signal.SIGKILL)
    task.wait_for("completed")
    assert attempts_ended(task)[0] == ("crashed", 137, "runner")
    assert task.manifest()["total_retries"] == 1


@pytest.mark.req("SUP-12")
def test_a_stopped_recorder_is_woken_and_records_the_right_status() -> None:
    task = Task.shell(kin.WAIT + "exit 9")
    task.agent_pid()
    recorder = kin.recorder_pid(task)
    os.kill(recorder, signal.SIGSTOP)
    eventually(lambda: kin.state(recorder) == "T", what="the recorder is stopped")
    kin.go()
    assert task.wait_for("failed")["exit_code"] == 9
    assert attempts_ended(task) == [("failed", 9, "recorder")]


@pytest.mark.req("SUP-12")
def test_a_recorder_stopped_before_it_signed_its_lock_is_woken_by_the_next_runner() -> None:
    once = {"HOLDFAST_FAILPOINT": "recorder.forked=stop"}
    task = Task.shell("exit 0", env=once)
    runner = task.runner_pid()
    task.wait_for_event("attempt.opened")
    eventually(lambda: _stopped(task), what="the recorder is stopped", journal=task.packet)
    kin.kill(runner)
    task.start_runner()
    task.wait_for("completed")
    assert task.manifest()["total_retries"] == 0
    assert len(task.events("attempt.opened")) == 1


# ── both die ──


@pytest.mark.req("SUP-12", "W-A6", "SUP-13")
def test_an_orphan_is_watched_by_its_identity_and_what_it_left_is_swept(home: str) -> None:
    script = (
        "[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; setsid sleep 300 & echo $! > tool; " + kin.WAIT + "exit 3"
    )
    task = Task.shell(script)
    agent, runner, recorder, tool = (
        task.agent_pid(),
        task.runner_pid(),
        kin.recorder_pid(task),
        kin.pid_in("tool"),
    )
    kin.kill(runner, recorder)
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    assert task.manifest()["pid"] == agent
    assert task.status() == "running"
    assert processes.is_alive(agent)
    kin.go()
    if kin.kernel_tells_status():
        manifest = task.wait_for("failed")
        assert attempts_ended(task) == [("failed", 3, "kernel")]
    else:
        manifest = task.wait_for("completed")
        assert attempts_ended(task) == [("lost", None, "nobody"), ("success", 0, "recorder")]
        assert [e["burned"] for e in task.events("retry.planned")] == [False]
    assert manifest["total_retries"] == 0
    swept = task.events("attempt.swept")[0]
    assert swept["proof"] == "none marked"
    assert tool in [item["pid"] for item in swept["killed"]]
    assert not processes.is_alive(tool)


@pytest.mark.req("SUP-12", "W-A6")
def test_all_are_killed_at_once_and_the_task_goes_on_when_started_again(home: str) -> None:
    seed = kin.start_seed(home)
    script = "echo run $HOLDFAST_RESUME_COUNT; [ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT
    task = Task.shell(script)
    agent, runner, recorder = task.agent_pid(), task.runner_pid(), kin.recorder_pid(task)
    assert kin.parent(runner) == seed
    kin.kill(seed, runner, recorder, agent)
    assert task.status() == "running"
    task.start_runner()
    manifest = task.wait_for("completed")
    assert manifest["total_retries"] == 0
    assert attempts_ended(task) == [("lost", None, "nobody"), ("success", 0, "recorder")]
    assert task.log().count("run 1") == 1
    assert len([e for e in task.events("task.moved") if e["new"] == "completed"]) == 1


# ── between fork and identity ──


def _stopped(task: Task) -> list[int]:
    lock = os.path.join(task.attempts()[-1], "lock")
    return [
        p.pid
        for p in processes.marked(task.packet, os.environ["HOLDFAST_HOME"])
        if p.state == "T" and _has(p.pid, lock)
    ]


def _has(pid: int, path: str) -> bool:
    folder = f"/proc/{pid}/fd"
    return any(os.readlink(os.path.join(folder, name)) == path for name in os.listdir(folder))


@pytest.mark.req("SUP-7", "W-A6")
@pytest.mark.parametrize("point", ["recorder.forked", "recorder.signed", "recorder.before_identity"])
def test_a_recorder_or_child_killed_before_the_agent_exists_voids_the_attempt(point: str, place) -> None:
    once = os.path.join(place.root, "once")
    env = {"HOLDFAST_FAILPOINT": f"{point}=kill", "HOLDFAST_FAILPOINT_ONCE": once}
    task = Task.shell("exit 0", env=env)
    manifest = task.wait_for("completed")
    assert [e["attempt"] for e in task.events("attempt.void")] == [1]
    assert (manifest["attempt"], manifest["total_retries"]) == (2, 0)
    assert task.events("attempt.opened")[1]["resume_count"] == 0


@pytest.mark.req("SUP-7", "W-A6", "SUP-12")
@pytest.mark.parametrize("point", ["recorder.forked", "recorder.signed", "recorder.before_identity"])
def test_a_runner_killed_while_its_agent_is_being_born_is_followed_by_one_that_adopts(
    point: str, place
) -> None:
    env = {"HOLDFAST_FAILPOINT": f"{point}=stop", "HOLDFAST_FAILPOINT_ONCE": os.path.join(place.root, "once")}
    task = Task.shell(kin.WAIT + "exit 4", env=env)
    runner = task.runner_pid()
    task.wait_for_event("attempt.opened")
    frozen = eventually(lambda: _stopped(task), what="somebody stands still", journal=task.packet)
    kin.kill(runner)
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    task.agent_pid()
    kin.go()
    manifest = task.wait_for("failed")
    assert (manifest["exit_code"], manifest["total_retries"], manifest["attempt"]) == (4, 0, 1)


@pytest.mark.req("SUP-7")
@pytest.mark.parametrize("point", ["attempt.made", "attempt.opened", "attempt.locked", "attempt.forked"])
def test_a_runner_killed_around_the_fork_burns_no_retry(point: str, place) -> None:
    env = {"HOLDFAST_FAILPOINT": f"{point}=kill", "HOLDFAST_FAILPOINT_ONCE": os.path.join(place.root, "once")}
    task = kin.make("--", "sh", "-c", "exit 0")
    assert kin.run_runner(task, env) == -signal.SIGKILL
    task.start_runner()
    manifest = task.wait_for("completed")
    assert manifest["total_retries"] == 0
    ended = attempts_ended(task)
    assert ended == [("success", 0, "recorder")]
    # Numbers are never reused.
    assert manifest["attempt"] == len(task.attempts())


# ── identities that are not ours ──


@pytest.mark.req("SUP-12")
@pytest.mark.parametrize("change", ["boot", "start_time"])
def test_a_pid_of_another_boot_or_another_process_is_never_signalled(change: str) -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT)
    agent, runner, recorder = task.agent_pid(), task.runner_pid(), kin.recorder_pid(task)
    kin.kill(runner, recorder, agent)
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        ticks = processes.look(stranger.pid).start_ticks
        other = {"pid": stranger.pid, "start_time": ticks - 1}
        if change == "boot":
            other = {
                "pid": stranger.pid,
                "start_time": ticks,
                "boot_id": "00000000-0000-4000-8000-000000000000",
            }
        # As a reboot, or a pid that was used again, leaves them: in the file and in the journal.
        identity = {**json.loads(task.read("attempts", "001-command_run", "identity.json")), **other}
        with open(task.path("attempts", "001-command_run", "identity.json"), "w", encoding="utf-8") as file:
            json.dump(identity, file)
        events = [{**e, **other} if e["type"] == "attempt.started" else e for e in task.events()]
        with open(task.path("events.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(event) + "\n" for event in events)
        # The process that would be signalled, if any: the stop of the first attempt is requested
        # already.
        with open(task.path("events.jsonl"), "a", encoding="utf-8") as file:
            event = {"id": "0" * 26, "at": "2026-01-01T00:00:00.000Z", "type": "stop.intended", "attempt": 1}
            file.write(json.dumps({**event, "intent": "hang", "reason": "a test", "request": None}) + "\n")
        task.reseal()
        task.start_runner()
        task.wait_for("completed")
        assert stranger.poll() is None
        assert kin.state(stranger.pid) == "S"
        assert stranger.pid not in [item["pid"] for e in task.events("attempt.swept") for item in e["killed"]]
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.req("SUP-12")
def test_a_lock_file_that_names_a_living_stranger_is_no_reason_to_wait_or_to_signal() -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        owner = {"boot_id": "x", "pid": stranger.pid, "start_time": 1, "role": "runner", "at": ""}
        with open(task.path("runner.lock"), "w", encoding="utf-8") as file:
            json.dump(owner, file)
        assert kin.run_runner(task) == 0
        assert task.status() == "completed"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


# ── runners that die again and again ──


@pytest.mark.req("W-A6")
def test_a_task_on_which_runners_die_again_and_again_is_parked_for_a_person() -> None:
    task = kin.make("--", "sh", "-c", "echo it ran")
    for _ in range(5):
        assert kin.run_runner(task, {"HOLDFAST_FAILPOINT": "runner.started=kill"}) == -signal.SIGKILL
    assert kin.run_runner(task) == 0
    manifest = task.manifest()
    assert manifest["status"] == "interrupted"
    assert "5 runners in a row died" in manifest["interrupt"]["reason"]
    assert task.events("attempt.opened") == []
    assert holdfast("resume", task.id).returncode == 0
    assert task.wait_for("completed")["total_retries"] == 0


@pytest.mark.req("W-A6")
def test_runners_that_leave_in_order_or_make_progress_are_no_crash_loop() -> None:
    task = Task.shell(kin.WAIT + "exit 0")
    task.agent_pid()
    # By the journal: the manifest may still name the one before, which may still be about to exit.
    runner = task.wait_for_event("runner.started")["pid"]
    for count in range(2, 9):
        # Each adopts the agent; only the first saw it start.
        os.kill(runner, signal.SIGTERM)
        task.wait_for_event("runner.left", count - 1)
        task.start_runner()
        runner = task.wait_for_event("runner.started", count)["pid"]
    assert task.status() == "running"
    kin.go()
    task.wait_for("completed")
