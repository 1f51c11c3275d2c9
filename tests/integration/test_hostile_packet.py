"""A task among hostile agents and a failing machine: its runner goes on, or the next one mends what is
broken."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import stat
import time

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import environment
from holdfast.packet.create import create
from holdfast.store import lock as locks
from holdfast.store.journal import encode_line
from holdfast.store.layout import Home
from holdfast.testing import Scenario
from tests.support import keepers, kin, processes
from tests.support.tasks import Task, workspace
from tests.support.tools import need
from tests.support.waiting import eventually

#: Short check interval, no hang detection.
EAGER = ("--base-interval", "0.2s", "--stale", "none")


def left(task: Task) -> None:
    """Until no runner lives."""
    eventually(
        lambda: not locks.is_held(task.path("runner.lock")), what="the runner is gone", journal=task.packet
    )


def looks_on(task: Task) -> None:
    """Until the runner has looked twice more."""
    for _ in range(2):
        before = task.manifest()["last_checked_at"]
        eventually(lambda old=before: task.manifest()["last_checked_at"] != old, what="the runner looks")


def passes(seconds: float) -> None:
    """Let so much time pass: for what is measured over time."""
    ends_mono = time.monotonic() + seconds
    eventually(lambda: time.monotonic() >= ends_mono, seconds + 5)


# ── floods ──


def assert_noticed_soon(task: Task) -> None:
    """The agent's end, and what it left to read."""
    ended = task.events("attempt.ended")[0]
    died = clock.parse_iso(task.json(task.attempts()[0], "exit.json")["at"])
    assert clock.parse_iso(ended["noticed_at"]) - died < 2
    assert clock.parse_iso(ended["at"]) - died < 5


#: At most 3 GB, should a test be killed.
FLOOD = "yes | head -c 3000000000"


@pytest.mark.req("SUP-10")
@pytest.mark.parametrize("stream", ["", " >&2"])
def test_an_end_is_noticed_while_a_child_floods_the_log(home: str, stream: str) -> None:
    task = Task.shell(f"{FLOOD}{stream} & sleep 0.3; exit 0", "--leftovers", "kill")
    task.wait_for("completed", within_s=15)
    assert_noticed_soon(task)


@pytest.mark.req("SUP-10")
@pytest.mark.parametrize("log", ["stdout.log", "stderr.log"])
def test_an_end_is_noticed_while_a_child_floods_the_log_of_an_agent_with_events(home: str, log: str) -> None:
    """And none of its own output is lost in the flood."""
    flood = f'{FLOOD} >> "$HOLDFAST_ATTEMPT/{log}" & sleep 0.5'
    task = Task.play(
        Scenario().tool("Bash", command=flood).say("last words").result("done"), "--leftovers", "kill"
    )
    task.wait_for("completed", within_s=30)
    assert os.path.getsize(os.path.join(task.attempts()[0], log)) > 10_000_000
    assert_noticed_soon(task)
    assert [event["text"] for event in task.events("agent.text")] == ["last words"]
    assert "bytes left out" in task.log()


def test_the_output_of_a_child_counts_towards_the_limit(home: str) -> None:
    task = Task.shell(f"{FLOOD} & echo $! > child; " + kin.WAIT, "--output-limit", "1000000", *EAGER)
    manifest = task.wait_for("interrupted")
    assert "printed more than 1000000 bytes" in manifest["interrupt"]["reason"]
    assert not processes.is_alive(kin.pid_in("child"))


# ── marks ──


@pytest.mark.req("SUP-13")
def test_a_pipe_in_place_of_the_mark_holds_nobody_up(home: str) -> None:
    task = Task.shell('mkfifo "$INTERRUPT_FILE" && echo made; ' + kin.WAIT, *EAGER)
    task.wait_for_log("made")
    looks_on(task)
    kin.go()
    task.wait_for("completed")
    assert len(task.events("runner.started")) == 1


@pytest.mark.req("SUP-13")
def test_a_link_in_place_of_the_mark_is_not_followed(home: str) -> None:
    with open(os.path.join(workspace(), "private"), "w", encoding="utf-8") as file:
        file.write("not the agent's to show")
    task = Task.shell('ln -s "$PWD/private" "$INTERRUPT_FILE" && echo made; ' + kin.WAIT, *EAGER)
    task.wait_for_log("made")
    looks_on(task)
    kin.go()
    task.wait_for("completed")
    assert b"not the agent's to show" not in task.read("events.jsonl") + task.read("manifest.json")


@pytest.mark.req("SUP-13", "INT-1")
@pytest.mark.parametrize("mark", ["interrupt-request.txt", "error"])
@pytest.mark.parametrize("leaves", [False, True])
def test_a_mark_interrupts_with_its_text_and_an_answer_puts_it_aside(
    home: str, mark: str, *, leaves: bool
) -> None:
    """While the agent works on, or when it has left."""
    script = (
        "if [ $HOLDFAST_RESUME_COUNT = 0 ]; "
        f'then echo "which one? $MY_TOKEN" > "$HOLDFAST_PACKET/state/{mark}"; '
        + ("exit 0; fi; " if leaves else kin.WAIT + "fi; ")
        + 'echo "told: $HOLDFAST_ANSWER"'
    )
    task = Task.shell(script, *EAGER, "--env", "MY_TOKEN", env={"MY_TOKEN": "hunter2hunter2"})
    manifest = task.wait_for("interrupted")
    assert manifest["interrupt"]["reason"] == "which one? ***"
    assert b"hunter2" not in task.read("events.jsonl")
    left(task)
    # It stays until a person has answered: nothing clears it by itself.
    assert task.read("state", mark) == b"which one? hunter2hunter2\n"
    assert task.ask("resume", "-m", "the second").returncode == 0
    task.wait_for("completed")
    assert "told: the second" in task.log()
    assert not os.path.exists(task.path("state", mark))
    aside = [name for name in os.listdir(task.path("state", "interrupts")) if not name.isdigit()]
    assert [name.endswith(mark) for name in aside] == [True]
    assert task.read("state", "interrupts", aside[0]) == b"which one? hunter2hunter2\n"


@pytest.mark.req("INT-1")
def test_a_mark_is_put_aside_also_where_something_is_in_the_way(home: str) -> None:
    put = 'cd "$HOLDFAST_PACKET/state"; touch interrupts; echo hm > error'
    task = Task.shell(f"if [ $HOLDFAST_RESUME_COUNT = 0 ]; then {put}; fi")
    task.wait_for("interrupted")
    left(task)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")
    aside = [name for name in os.listdir(task.path("state", "interrupts")) if not name.isdigit()]
    assert [name.partition("-")[2] for name in aside] == ["error"]


# ── what an agent does to its own packet ──


def test_a_state_directory_that_the_agent_removed_is_made_again(home: str) -> None:
    script = (
        f'[ $HOLDFAST_RESUME_COUNT = 1 ] && exit 0; {kin.WAIT}rm -rf "$HOLDFAST_PACKET/state"; kill -KILL $$'
    )
    task = Task.shell(script)
    eventually(lambda: task.json("state", "current-session.json")["status"] == "running", journal=task.packet)
    kin.go()
    task.wait_for("completed")
    assert len(task.events("runner.started")) == 1
    assert task.manifest()["attempt"] == 2


@pytest.mark.parametrize("removes", ["state", "bell", "outputs", "done", "inbox"])
def test_the_next_runner_mends_what_is_missing(home: str, removes: str) -> None:
    task = Task.shell(f'rm -rf "$HOLDFAST_PACKET/{removes}"; echo removed; ' + kin.WAIT, *EAGER)
    task.wait_for_log("removed")
    looks_on(task)
    task.kill_runner()
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    task.runner_pid()
    eventually(lambda: os.path.exists(task.path(removes)), what=f"{removes} is back")
    if removes == "bell":
        assert stat.S_ISFIFO(os.stat(task.path("bell")).st_mode)
    assert stat.S_IMODE(os.stat(task.path(removes)).st_mode) in (0o600, 0o700)
    kin.go()
    task.wait_for("completed")


@pytest.mark.parametrize(
    ("name", "puts"),
    [("bell", "mkdir"), ("bell", "touch"), ("inbox", "touch"), ("state", "touch"), ("done", "touch")],
)
def test_the_next_runner_puts_aside_what_is_in_the_way(home: str, name: str, puts: str) -> None:
    there = f'"$HOLDFAST_PACKET/{name}"'
    # The runner may recreate what is missing at any moment, also between the two commands.
    is_theirs = "-f" if puts == "touch" else "-d"
    replace = f"until test {is_theirs} {there}; do rm -rf {there}; {puts} {there}; done; echo replaced; "
    task = Task.shell(replace + kin.WAIT, *EAGER)
    task.wait_for_log("replaced")
    task.kill_runner()
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    task.runner_pid()
    task.stop()
    assert [found for found in os.listdir(task.packet) if found.startswith(f"{name}.aside")] == [
        f"{name}.aside-1"
    ]


def test_a_stop_is_heard_without_a_bell(home: str) -> None:
    task = Task.shell('rm "$HOLDFAST_PACKET/bell"; echo removed; ' + kin.WAIT, *EAGER)
    task.wait_for_log("removed")
    assert task.ask("stop").returncode in (0, 6)
    task.wait_for("killed")
    assert len(task.events("runner.started")) == 1


@pytest.mark.parametrize("name", ["lock", "runner.lock", "keeper.lock", "seed.lock"])
def test_a_child_with_a_lock_of_its_own_is_killed_by_a_stop(home: str, name: str) -> None:
    """Only our locks protect: a name like ours does not."""
    need("flock", "setsid")
    os.mkdir(os.path.join(workspace(), "x"))
    path = os.path.join(workspace(), "x", name)
    task = Task.shell(f"setsid sh -c 'echo $$ > holder; exec flock {path} sleep 77' & " + kin.WAIT)
    holder = kin.pid_in("holder")

    def is_locked() -> bool:
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    eventually(is_locked, what="it has its lock")
    task.stop()
    assert not processes.is_alive(holder)
    assert not is_locked()
    assert task.events("attempt.swept")[0]["spared"] == []


# ── killed at the worst moment ──


@pytest.mark.parametrize("verb", ["interrupt", "resume"])
def test_a_task_whose_work_is_done_cannot_be_interrupted_any_more(home: str, verb: str) -> None:
    task = Task.shell("echo ran >> runs", env={"HOLDFAST_FAILPOINT": "markers.recorded=kill"})
    eventually(lambda: task.status() == "completing" and task.events("stage.done"), journal=task.packet)
    left(task)
    done = task.ask(verb)
    assert (done.returncode, "completing" in done.stderr) == (3, True)
    task.wait_for("completed")
    with open(os.path.join(workspace(), "runs"), encoding="utf-8") as file:
        assert file.read() == "ran\n"


def test_a_stage_with_a_marker_does_not_run_again(home: str) -> None:
    """Its event is missing: the runner was killed between the two."""
    task = Task.shell("echo ran >> runs", env={"HOLDFAST_FAILPOINT": "markers.stage_done=kill"})
    eventually(lambda: os.path.exists(task.path("done", "command_run.done")), journal=task.packet)
    left(task)
    assert task.events("stage.done") == []
    task.ask("stop")
    task.wait_for("killed", "completed")
    done = task.ask("retry")
    assert (done.returncode, "all its stages are done" in done.stderr) == (3, True)
    assert [event["stage"] for event in task.events("stage.done")] == ["command_run"]
    with open(os.path.join(workspace(), "runs"), encoding="utf-8") as file:
        assert file.read() == "ran\n"
    # A retry runs it again.
    assert task.ask("retry", "--from", "command_run").returncode == 0
    task.wait_for("completed")
    with open(os.path.join(workspace(), "runs"), encoding="utf-8") as file:
        assert file.read() == "ran\nran\n"


def test_a_task_is_parked_only_when_nothing_of_it_is_left(home: str) -> None:
    task = Task.shell("setsid sleep 77 & echo $! > child; " + kin.WAIT, "--leftovers", "kill")
    agent, child = task.agent_pid(), kin.pid_in("child")
    for count in range(2, 7):
        task.kill_runner()
        task.start_runner()
        task.wait_for_event("runner.started", count)
    manifest = task.wait_for("interrupted")
    assert "5 runners in a row died on this task" in manifest["interrupt"]["reason"]
    assert [pid for pid in (agent, child) if processes.is_alive(pid)] == []
    assert child in [found["pid"] for found in task.events("attempt.swept")[0]["killed"]]
    left(task)
    kin.go()
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")


def test_a_queued_task_is_not_parked(home: str) -> None:
    os.makedirs(os.path.join(home, "tasks"), mode=0o700)
    spec = TaskSpec(
        task_id="queued",
        task_name="queued",
        goal="",
        agent="command",
        command=["true"],
        project_dir=workspace(),
        stages=(StageSpec(name="command_run", agent="command"),),
        limits=Limits(),
    )
    env = environment.capture(dict(os.environ))
    packet = create(Home(home), spec, prompt=None, env=env, status=Status.QUEUED)
    with open(packet.journal, "ab") as file:
        for _ in range(7):
            started = ev.RunnerStarted(pid=1, boot_id="x", start_time=1, version="0")
            file.write(encode_line(started, clock.iso_now()))
    task = Task(packet.path)
    assert kin.run_runner(task) == 0
    assert (task.status(), task.moves()) == ("queued", [])


# ── time ──


def shift(task: Task, seconds: float) -> None:
    """Move every time in the journal, as if the clock had been set since."""

    def moved(found: re.Match[bytes]) -> bytes:
        return clock.iso(clock.parse_iso(found[0].decode()) + seconds).encode()

    text = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", moved, task.read("events.jsonl"))
    with open(task.path("events.jsonl"), "wb") as file:
        file.write(text)
    task.reseal()


def test_a_clock_that_was_set_back_does_not_make_a_wait_longer(home: str) -> None:
    script = "[ $HOLDFAST_RESUME_COUNT = 2 ] || kill -KILL $$"
    task = Task.shell(script, "--base-interval", "2s", "--stale", "none")
    task.wait_for("waiting")
    task.kill_runner()
    shift(task, 86400.0)
    began_mono = time.monotonic()
    task.start_runner()
    task.wait_for("completed", within_s=10)
    assert time.monotonic() - began_mono > 1.5, "it waited as long as it was meant to"


def test_a_lost_attempt_counts_until_somebody_last_saw_it(home: str) -> None:
    """Not until its last word only, and not the time in which the machine was off."""
    task = Task.shell(kin.WAIT)
    agent, recorder, runner = task.agent_pid(), kin.recorder_pid(task), task.runner_pid()
    kin.kill(runner, recorder, agent)
    now = clock.now()
    lines = [json.loads(line) for line in task.read("events.jsonl").splitlines()]
    for event in lines:
        if event["type"] == "attempt.started":
            event["started_at"] = clock.iso(now - 3600)
    with open(task.path("events.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in lines)
    task.reseal()
    manifest = {**task.manifest(), "last_checked_at": clock.iso(now - 2400)}
    with open(task.path("manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    os.utime(os.path.join(task.attempts()[0], "stdout.log"), (now - 3000, now - 3000))
    task.start_runner()
    ended = task.wait_for_event("attempt.ended")
    assert ended["outcome"] == "lost"
    assert ended["lived_s"] == pytest.approx(1200, abs=5)
    kin.go()
    task.wait_for("completed")


# ── a machine that has nothing to give ──


def test_a_full_disk_costs_neither_time_nor_descriptors(home: str) -> None:
    """It is full when the runner wants to look at its agent, again and again."""
    task = Task.shell("echo hello; " + kin.WAIT, env={"HOLDFAST_FAILPOINT": "ingest.opened=enospc"})
    eventually(
        lambda: os.path.exists(os.path.join(task.attempts()[0], "identity.json")), what="the agent runs"
    )
    runner = task.runner_pid()
    passes(0.5)
    spent_s, open_files = processes.cpu_s(runner), len(os.listdir(f"/proc/{runner}/fd"))
    passes(2.5)
    assert processes.cpu_s(runner) - spent_s < 0.3
    assert len(os.listdir(f"/proc/{runner}/fd")) == open_files
    task.kill_runner()
    kin.go()
    task.start_runner()
    manifest = task.wait_for("completed")
    assert (task.log(), manifest["attempt"]) == ("hello\n", 1)


def test_a_runner_that_gets_no_descriptor_for_its_recorder_tries_again(home: str) -> None:
    """As with a fork that fails: nothing ran, and no retry is burned."""
    script = "[ $HOLDFAST_RESUME_COUNT = 2 ] || kill -KILL $$"
    task = Task.shell(script, "--base-interval", "1s", "--stale", "none")
    task.wait_for("waiting")
    runner = task.runner_pid()
    used = {int(name) for name in os.listdir(f"/proc/{runner}/fd")}
    free = [number for number in range(256) if number not in used]
    # Three: enough for every file that is opened for a moment, with its directories; too few for a lock and
    # a pipe.
    before = resource.prlimit(runner, resource.RLIMIT_NOFILE)
    resource.prlimit(runner, resource.RLIMIT_NOFILE, (free[3], before[1]))
    void = task.wait_for_event("attempt.void", 2)
    assert void["reason"] == "the recorder could not be forked: Too many open files"
    resource.prlimit(runner, resource.RLIMIT_NOFILE, before)
    manifest = task.wait_for("completed")
    assert manifest["total_retries"] == 2
    assert len(task.events("runner.started")) == 1


def test_dead_recorders_are_buried(home: str) -> None:
    task = Task.shell(f"[ $HOLDFAST_RESUME_COUNT -ge 3 ] || kill -KILL $$; {kin.WAIT}", *EAGER)
    task.wait_for_event("attempt.started", 4)
    runner = task.runner_pid()

    def zombies() -> list[int]:
        found = []
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b") ")[2].split()
            except OSError:
                continue
            if fields and fields[0] == b"Z" and int(fields[1]) == runner:
                found.append(int(name))
        return found

    eventually(lambda: not zombies(), what="no zombie is left")
    kin.go()
    task.wait_for("completed")


# ── runners that cannot start ──


def test_a_keeper_comes_back_though_its_files_were_replaced(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    task = Task.shell(kin.WAIT, *EAGER)
    keepers.wait_for(home)
    runner = task.runner_pid()
    looks_on(task)
    path = os.path.join(home, "keeper-starts.json")
    if os.path.exists(path):
        os.unlink(path)
    os.mkdir(path)
    keepers.kill(home)
    keepers.wait_for(home)
    assert processes.is_alive(runner)
    looks_on(task)
    path = os.path.join(home, "keeper-start.lock")
    os.unlink(path)
    os.mkdir(path)
    keepers.kill(home)
    keepers.wait_for(home)
    assert len(task.events("runner.started")) == 1
    task.stop()
