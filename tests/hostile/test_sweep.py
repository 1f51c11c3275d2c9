"""The sweep of processes that refuse to end, or do harm while they are being ended."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from tests.support import kin, processes
from tests.support.tasks import Task, workspace
from tests.support.tools import need
from tests.support.waiting import eventually

FULL = bool(os.environ.get("HOLDFAST_HOSTILE_FULL"))


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


def script(name: str, text: str) -> str:
    """A Python program in the workspace; returns the shell words that run it."""
    path = os.path.join(workspace(), name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return f"{sys.executable} -I -S {path}"


def stopped(task: Task) -> dict:
    """`holdfast stop`, its end, and the sweep's event."""
    task.ask_patiently("stop")
    task.wait_for("killed", within_s=60)
    return task.events("attempt.swept")[-1]


def killed_by(swept: dict) -> list[int]:
    return [item["pid"] for item in swept["killed"]]


def size(path: str) -> int:
    return os.stat(os.path.join(workspace(), path)).st_size


def grows(path: str, within_s: float = 0.5) -> bool:
    """Whether a file still grows."""
    before, ends_mono = size(path), time.monotonic() + within_s
    while time.monotonic() < ends_mono:
        if size(path) != before:
            return True
        os.sched_yield()
    return False


# ── no harm: a tool's shell does not continue with its next command ──


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_no_tool_runs_the_next_command_of_its_script(shell: str) -> None:
    """As `make test; git push`: the sweep ends `make`, and the shell must not push."""
    count = 100 if FULL else 30
    tools = f'for i in $(seq {count}); do setsid {shell} -c "sleep 1000; touch next-$i" & done; '
    task = Task.shell(tools + "echo ready; " + kin.WAIT)
    task.wait_for_log("ready", within_s=30)
    recorder = kin.recorder_pid(task)
    eventually(
        lambda: sum(p.command.startswith("sleep 1000") for p in processes.descendants(recorder)) == count,
        30,
        "all tools sleep",
    )
    swept = stopped(task)
    assert swept["proof"] == "none left"
    assert len(swept["killed"]) >= 2 * count
    assert [name for name in os.listdir(workspace()) if name.startswith("next-")] == []


def stubborn(count: int, then: str) -> str:
    """An agent that ignores SIGTERM. Its tools have their own sessions; when it dies, they run `then`."""
    # The pipe ends when the only process that has it open for writing is gone.
    tools = f'for i in $(seq {count}); do setsid sh -c "cat line; {then}" 3>&- & done; '
    return (
        "mkfifo line; trap : TERM INT HUP; exec 3<>line; "
        + tools
        + "echo ready; "
        + kin.WAIT.replace("sleep 0.05", "sleep 0.05 3>&-")
    )


def wait_for_readers(task: Task, count: int) -> None:
    recorder = kin.recorder_pid(task)
    task.wait_for_log("ready", within_s=30)
    eventually(
        lambda: sum(p.command.startswith("cat line") for p in processes.descendants(recorder)) == count,
        30,
        "all tools wait for the agent",
    )


def test_no_tool_runs_its_next_command_when_an_agent_that_ignores_term_is_killed() -> None:
    """The last signal of a stop ends the agent, which tools in other sessions notice."""
    count = 100 if FULL else 30
    task = Task.shell(stubborn(count, "touch next-$i"), "--stop-pause", "0.3s")
    wait_for_readers(task, count)
    swept = stopped(task)
    assert task.manifest()["exit_signal"] == 9
    assert (swept["proof"], swept["unkillable"]) == ("none left", [])
    assert [name for name in os.listdir(workspace()) if name.startswith("next-")] == []


def test_a_runner_killed_between_stopping_the_tools_and_the_kill_leaves_no_tool_stopped(home: str) -> None:
    once = os.path.join(os.path.dirname(home), "once")
    env = {"HOLDFAST_FAILPOINT": "stop.before_signal=kill@2", "HOLDFAST_FAILPOINT_ONCE": once}
    task = Task.shell(stubborn(5, "touch next-$i"), "--stop-pause", "0.3s", env=env)
    wait_for_readers(task, 5)
    recorder = kin.recorder_pid(task)
    task.ask_patiently("stop", "--no-wait")
    eventually(lambda: os.path.exists(once), what="the runner was killed")
    below = [found for found in processes.descendants(recorder) if found.command.startswith("cat line")]
    assert [kin.state(found.pid) for found in below] == ["T"] * 5
    task.start_runner()
    task.wait_for("killed", within_s=60)
    assert not processes.descendants(recorder)
    assert [name for name in os.listdir(workspace()) if name.startswith("next-")] == []


def test_a_tool_may_clean_up_when_it_is_ended() -> None:
    """SIGTERM is a request: a trap has time to run its commands."""
    tool = 'trap "sleep 0.2; echo bye > bye; exit" TERM; echo $$ > tool; while :; do sleep 0.05; done'
    task = Task.shell(f"setsid bash -c '{tool}' & " + kin.WAIT)
    tool_pid = kin.pid_in("tool")
    assert tool_pid in killed_by(stopped(task))
    with open(os.path.join(workspace(), "bye"), encoding="utf-8") as file:
        assert file.read() == "bye\n"


# ── certain: processes that fork faster than they are listed ──

#: Ignores every request to end, and is a new process every few milliseconds: the old one forks and exits.
REFORKER = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
ends, pause_s = time.monotonic() + 120, float(sys.argv[1])
ticks = os.open("ticks", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while time.monotonic() < ends:
    if os.fork():
        os._exit(0)
    os.write(ticks, b".")
    time.sleep(pause_s)
"""


@pytest.mark.parametrize("pause_s", [0.005, 0.002, 0.0] if FULL else [0.005])
@pytest.mark.parametrize("dead", ["nobody", "recorder", "recorder and runner"])
def test_a_process_that_forks_and_exits_without_end_is_caught(dead: str, pause_s: float) -> None:
    program = script("reforker.py", REFORKER)
    task = Task.shell(f"setsid {program} {pause_s} & " + kin.WAIT)
    task.agent_pid()
    eventually(lambda: size("ticks") > 20, 20, "it forks")
    if dead == "recorder":
        kin.kill(kin.recorder_pid(task))
    elif dead == "recorder and runner":
        kin.kill(kin.recorder_pid(task), task.runner_pid())
        task.start_runner()
        task.wait_for_event("runner.started", 2)
    swept = stopped(task)
    assert not grows("ticks")
    assert swept["proof"] == ("none marked" if dead == "recorder and runner" else "none left")
    assert swept["unkillable"] == []


def test_many_processes_that_fork_and_exit_without_end_are_caught() -> None:
    program = script("reforker.py", REFORKER)
    count = 200 if FULL else 20  # they use the whole machine
    task = Task.shell(f"for i in $(seq {count}); do setsid {program} 0.002 & done; " + kin.WAIT)
    task.agent_pid()
    eventually(lambda: size("ticks") > 10 * count, 60, "they fork")
    swept = stopped(task)
    assert not grows("ticks")
    assert swept["proof"] == "none left"
    assert swept["unkillable"] == []


def test_a_stripped_environment_and_a_dead_recorder_do_not_hide_a_process() -> None:
    """It has another parent and no marker, but it still writes to the attempt's log."""
    task = Task.shell("(setsid env -i sh -c 'echo $$ > hidden; exec sleep 300' &); " + kin.WAIT)
    task.agent_pid()
    hidden = kin.pid_in("hidden")
    kin.kill(kin.recorder_pid(task), task.runner_pid())
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    assert hidden in killed_by(stopped(task))
    assert not processes.is_alive(hidden)


# ── processes in unusual states ──

#: The child waits in `open` of a FIFO, and the parent in vfork, where no signal but SIGKILL reaches it.
VFORK = """
import os
os.mkfifo("fifo")
open("vfork", "w").write(str(os.getpid()))
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "fifo", os.O_RDONLY, 0)])
"""
#: The child is stopped by ptrace and belongs to its parent, which does nothing.
TRACED = """
import ctypes, os, signal, time
pid = os.fork()
if not pid:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(300)
os.waitpid(pid, os.WUNTRACED)
open("traced", "w").write(str(pid))
time.sleep(300)
"""


def test_a_parent_in_vfork_is_swept() -> None:
    task = Task.shell(f"setsid {script('vfork.py', VFORK)} & " + kin.WAIT)
    parent = kin.pid_in("vfork")
    eventually(lambda: kin.state(parent) == "D", what="it waits in vfork")
    swept = stopped(task)
    assert parent in killed_by(swept)
    assert (swept["proof"], processes.is_alive(parent)) == ("none left", False)


def test_a_traced_process_is_swept() -> None:
    task = Task.shell(f"setsid {script('traced.py', TRACED)} & " + kin.WAIT)
    traced = kin.pid_in("traced")
    assert kin.state(traced) == "t"
    swept = stopped(task)
    assert traced in killed_by(swept)
    assert (swept["proof"], processes.is_alive(traced)) == ("none left", False)


# ── only proof protects ──


@pytest.mark.parametrize(
    "claim",
    [
        "HOLDFAST_ROLE=runner",
        "HOLDFAST_ROLE=keeper HOLDFAST_ATTEMPT=",
        "HOLDFAST_ATTEMPT=/somewhere/tasks/other/attempts/001-command_run",
        "HOLDFAST_ATTEMPT=$HOLDFAST_PACKET SESSION_ID=ses_00000000",
    ],
)
def test_an_environment_protects_nobody(claim: str) -> None:
    task = Task.shell(f"{claim} setsid sh -c 'echo $$ > tool; exec sleep 300' & " + kin.WAIT)
    tool = kin.pid_in("tool")
    swept = stopped(task)
    assert tool in killed_by(swept)
    assert not processes.is_alive(tool)
    assert swept["spared"] == []


def test_the_marker_of_an_attempt_that_is_over_protects_nobody() -> None:
    first = "if [ $HOLDFAST_RESUME_COUNT = 0 ]; then env | grep ^SESSION_ID= > session; kill -9 $$; fi; "
    claim = ". ./session; export SESSION_ID HOLDFAST_ATTEMPT=$HOLDFAST_PACKET/attempts/001-command_run; "
    task = Task.shell(first + f"({claim} exec setsid sh -c 'echo $$ > tool; exec sleep 300') & " + kin.WAIT)
    tool = kin.pid_in("tool")
    swept = stopped(task)
    assert swept["attempt"] == 2
    assert tool in killed_by(swept)
    assert not processes.is_alive(tool)


def test_a_lock_that_names_another_owner_protects_nobody() -> None:
    """The file is where a runner's lock would be, and it is held; but the holder did not sign it."""
    need("flock", "setsid")
    path = os.path.join(workspace(), "x", "tasks", "y", "runner.lock")
    os.makedirs(os.path.dirname(path))
    task = Task.shell(f"setsid sh -c 'echo $$ > holder; exec flock {path} sleep 300' & " + kin.WAIT)
    holder = kin.pid_in("holder")
    eventually(lambda: len(processes.descendants(holder)) == 1, what="it has its lock")
    swept = stopped(task)
    assert holder in killed_by(swept)
    assert not processes.is_alive(holder)


def test_a_process_with_the_command_line_of_a_runner_is_spared_only_while_it_starts() -> None:
    """`python -P -m holdfast.runner`, but of another package of that name, which never takes a lock."""
    fake = os.path.join(workspace(), "fake", "holdfast")
    os.makedirs(fake)
    for name, text in (("__init__", ""), ("runner", "import time; time.sleep(300)")):
        with open(os.path.join(fake, f"{name}.py"), "w", encoding="utf-8") as file:
            file.write(text)
    line = f"PYTHONPATH=fake exec setsid {sys.executable} -P -m holdfast.runner x"
    task = Task.shell(f"sh -c 'echo $$ > poser; {line}' & " + kin.WAIT)
    poser = kin.pid_in("poser")
    swept = stopped(task)
    assert not processes.is_alive(poser)
    assert poser in killed_by(swept)


# ── killed in the middle ──


@pytest.mark.parametrize("nth", [1, 2])
def test_a_runner_killed_after_it_stopped_its_victims_leaves_nobody_stopped(nth: int, place) -> None:
    """The first time before SIGTERM, the second before SIGKILL."""
    point = {
        "HOLDFAST_FAILPOINT": f"sweep.frozen=kill@{nth}",
        "HOLDFAST_FAILPOINT_ONCE": os.path.join(place.root, "once"),
    }
    tool = 'trap "" TERM; echo $$ > tool; sleep 1000; touch next'
    task = Task.shell(f"setsid sh -c '{tool}' & " + kin.WAIT, env=point)
    tool_pid = kin.pid_in("tool")
    runner = task.runner_pid()
    assert task.ask("stop", "--no-wait").returncode in (0, 6)
    eventually(lambda: not processes.is_alive(runner), 30, "the runner is killed")
    assert kin.state(tool_pid) == "T"
    task.start_runner()
    task.wait_for("killed", within_s=30)
    assert not processes.is_alive(tool_pid)
    assert task.events("attempt.swept")[-1]["proof"] == "none left"
    assert not os.path.exists(os.path.join(workspace(), "next"))


def test_a_stopped_recorder_is_woken_to_prove_that_nothing_is_left() -> None:
    task = Task.shell("setsid sh -c 'echo $$ > tool; exec sleep 300' & " + kin.WAIT + "exit 1")
    tool, recorder = kin.pid_in("tool"), kin.recorder_pid(task)
    kin.go()
    record, deadline_mono = os.path.join(task.attempts()[0], "exit.json"), time.monotonic() + 10
    while not os.path.exists(record):  # no pause here: the sweep follows within milliseconds
        assert time.monotonic() < deadline_mono, "no exit record"
    os.kill(recorder, signal.SIGSTOP)
    task.wait_for("failed", within_s=30)
    assert not processes.is_alive(tool)
    assert task.events("attempt.swept")[-1]["proof"] == "none left"
    lock = json.loads(task.read("attempts", "001-command_run", "lock"))
    assert lock["left"] == 0
