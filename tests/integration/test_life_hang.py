"""A hang is a verdict from evidence; silence alone is not enough."""

from __future__ import annotations

import os
import signal
import time

import pytest

from holdfast.testing import Scenario
from tests.support import keepers, kin, processes
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

#: Silence counts after 0.3 s, and is a hang after 0.3 s more.
QUICK = {"MONITOR_BASE_INTERVAL": "0.1", "MONITOR_GRACE_PERIOD": "0.3"}
#: How long a healthy agent stays silent in a test that expects it to be left alone.
LONG_S = 2.0


@pytest.mark.req("W-A2", "TST-7", "SUP-2", "SUP-3", "SUP-4", "RES-4")
def test_a_hung_agent_is_stopped_swept_and_resumed(home: str) -> None:
    pid_file = os.path.join(workspace(), "grandchild.pid")
    scenario = (
        Scenario()
        .fail_if_running()
        .grandchild(60, pid_file=pid_file, ignore_signals=True, once=True)
        .hang(once=True)
        .say("back again")
    )
    task = Task.play(scenario, env=QUICK)
    task.wait_for("completed")

    quiet, hung = task.events("watch.verdict")[-2:]
    assert (quiet["verdict"], hung["verdict"]) == ("quiet", "hung")
    # The first check of a silent agent only records it; then the whole grace period follows.
    assert 0.3 <= quiet["evidence"]["silent_s"] < 0.6 <= hung["evidence"]["silent_s"]
    first, second = task.events("attempt.ended")
    assert (first["outcome"], second["outcome"]) == ("hung", "success")
    assert task.moves()[:4] == ["running", "hung", "spawning", "running"]
    order = [event["type"] for event in task.events() if event["type"] != "agent.session"]
    assert order.index("watch.verdict") < order.index("stop.intended") < order.index("attempt.ended")
    assert order.index("attempt.swept") < order.index("retry.planned")
    with open(pid_file, encoding="utf-8") as file:
        grandchild = int(file.read())
    assert grandchild in [entry["pid"] for entry in task.events("attempt.swept")[0]["killed"]]
    assert not processes.is_alive(grandchild)
    # The old process had exited before the new one started, which was told why.
    assert task.memory().overlaps() == []
    assert "silent for" in task.memory().starts()[1].prompt


@pytest.mark.req("W-A3", "TST-7", "SUP-2")
@pytest.mark.parametrize(
    ("scenario", "because"),
    [
        (Scenario().tool("Bash", run_s=LONG_S), "its tool Bash runs"),
        (Scenario().say("thinking").tool("Bash", busy_s=0.0).hang(cpu=True), "its processes use the CPU"),
        (Scenario().announce_retry(LONG_S), "it announced a wait"),
    ],
    ids=["sleeping-tool", "busy", "announced-wait"],
)
def test_a_silent_healthy_agent_is_left_alone(home: str, scenario: Scenario, because: str) -> None:
    task = Task.play(scenario, env=QUICK)

    def excuses() -> list[str]:
        return [event["because"] for event in task.events("watch.verdict") if event["verdict"] == "excused"]

    eventually(lambda: because in excuses(), what=because, journal=task.packet)
    _stays_alone(task)


@pytest.mark.req("W-A3", "SUP-2")
def test_an_agent_whose_files_change_is_left_alone(home: str) -> None:
    """The output of a program that buffers reads as silence; its work does not."""
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.2; echo $i >> progress.txt; done"
    task = Task.shell(script, env={**QUICK, "MONITOR_GRACE_PERIOD": "0.8"})
    task.wait_for("completed")
    assert "hung" not in [event["verdict"] for event in task.events("watch.verdict")]
    assert "files in the workspace change" in [event["because"] for event in task.events("watch.verdict")]
    assert task.manifest()["attempt"] == 1


@pytest.mark.req("W-A3", "SUP-3")
def test_new_output_clears_the_suspicion(home: str) -> None:
    """Silent past the threshold again and again, but never for the whole grace period."""
    task = Task.play(Scenario().pace(4, 0.45), env={**QUICK, "MONITOR_GRACE_PERIOD": "1"})
    task.wait_for("completed")
    verdicts = [event["verdict"] for event in task.events("watch.verdict")]
    assert verdicts.count("quiet") >= 2
    assert "hung" not in verdicts


@pytest.mark.req("W-A3", "SUP-3")
def test_a_plain_command_whose_output_is_read_at_intervals_is_not_called_silent(home: str) -> None:
    """Intervals grow beyond the threshold, and beyond the grace period with it."""
    script = "for i in $(seq 40); do printf .; sleep 0.1; done"
    task = Task.shell(script, env={**QUICK, "MONITOR_GRACE_PERIOD": "0.1"})
    task.wait_for("completed")
    assert [event["verdict"] for event in task.events("watch.verdict")] == []
    assert task.manifest()["attempt"] == 1


@pytest.mark.req("W-A3", "SUP-2")
def test_silence_of_a_plain_command_means_nothing_by_default(home: str) -> None:
    """No base interval was set, so a silent command is never checked."""
    task = Task.start("--grace", "0", "--", "sleep", "60")
    task.agent_pid()
    assert task.events("task.created")[0]["spec"]["limits"]["stale_s"] is None
    task.stop()
    assert task.events("watch.verdict") == []


@pytest.mark.req("SUP-18")
def test_a_lingering_agent_is_finished_and_its_group_ended(home: str) -> None:
    pid_file = os.path.join(workspace(), "member.pid")
    scenario = (
        Scenario()
        .tool("Bash", command=f"sleep 60 & echo $! > {pid_file}")
        .result("all done")
        .linger("forever")
    )
    task = Task.play(scenario, "--linger", "0.3s", "--leftovers", "kill")
    manifest = task.wait_for("completed")
    assert task.events("stop.intended")[0]["intent"] == "linger"
    assert task.events("attempt.ended")[0]["outcome"] == "success"
    assert (manifest["attempt"], manifest["total_retries"]) == (1, 0)
    with open(pid_file, encoding="utf-8") as file:
        member = int(file.read())
    eventually(lambda: not processes.is_alive(member), what="the tool that was left is gone")


@pytest.mark.req("SUP-19")
def test_what_is_on_the_screen_decides_nothing(home: str) -> None:
    """Words that look like an end, a crash or a prompt; process and task continue."""
    gate = os.path.join(workspace(), "go")
    words = (
        "__TASK_DONE__\nTraceback (most recent call last):\nSegmentation fault\n"
        "To exit press Ctrl-C\nuser@host:~$ "
    )
    task = Task.shell(f"printf '{words}\n'; until [ -e {gate} ]; do sleep 0.05; done; exit 4")
    task.wait_for_log("user@host")
    assert task.status() == "running"
    assert not os.path.exists(task.path("done", "_task.done"))
    with open(gate, "w", encoding="utf-8"):
        pass
    manifest = task.wait_for("failed")
    assert (manifest["exit_code"], manifest["attempt"]) == (4, 1)


@pytest.mark.req("SUP-1", "W-A6")
def test_the_end_is_looked_at_before_silence(home: str) -> None:
    """While no runner lived the agent ended, and it had been silent for long: that is an end, not a hang."""
    gate = os.path.join(workspace(), "go")
    task = Task.shell(
        f"until [ -e {gate} ]; do sleep 0.05; done", env={**QUICK, "MONITOR_GRACE_PERIOD": "30"}
    )
    task.agent_pid()
    task.kill_runner()
    with open(gate, "w", encoding="utf-8"):
        pass
    eventually(
        lambda: os.path.exists(task.path("attempts", "001-command_run", "done")), what="the agent ends"
    )
    task.start_runner()
    task.wait_for("completed")
    assert task.events("stop.intended") == []


@pytest.mark.req("SUP-18", "LCH-1")
def test_a_result_that_no_runner_saw_still_counts(home: str) -> None:
    """It was printed while no runner lived, and nothing came after it."""
    gate = os.path.join(workspace(), "go")
    task = Task.play(Scenario().wait_file(gate).result("done").linger("forever"), "--linger", "0.2s")
    task.agent_pid()
    task.kill_runner()
    with open(gate, "w", encoding="utf-8"):
        pass
    stdout = task.path("attempts", "001-scripted_run", "stdout.log")
    eventually(
        lambda: b'"type":"result"' in task.read(stdout).replace(b" ", b""), what="the result is printed"
    )
    task.start_runner()
    task.wait_for("completed", within_s=5)
    assert task.events("stop.intended")[0]["intent"] == "linger"


@pytest.mark.req("SUP-2", "LCH-1")
def test_a_hang_is_seen_although_runners_restart_more_often_than_the_silence_limit(home: str) -> None:
    """Each runner lives for half of the limit; the agent's silence counts from its last output."""
    task = Task.play(Scenario().say("at work").hang(), "--stale", "2s", "--grace", "0.2s")
    task.wait_for_event("agent.text")
    task.agent_pid()

    def is_hung(within_s: float) -> bool:
        ends_mono = time.monotonic() + within_s
        eventually(lambda: task.events("stop.intended") or time.monotonic() >= ends_mono, within_s + 5)
        return bool(task.events("stop.intended"))

    runners = 1
    # Five quick deaths in a row would park the task.
    while not is_hung(1.0) and runners < 5:
        task.kill_runner()
        task.start_runner()
        runners += 1
        task.wait_for_event("runner.started", runners)
    intents = [event["intent"] for event in task.events("stop.intended")]
    task.ask("stop")
    task.wait_for("killed")
    assert intents == ["hang"]
    hung = [event for event in task.events("watch.verdict") if event["verdict"] == "hung"]
    assert hung[0]["evidence"]["silent_s"] >= 2.2


def _stays_alone(task: Task) -> None:
    """A long silence, then an end, of its own or by a stop: never classified as hung, never restarted."""

    def is_over() -> bool:
        silent = [event["evidence"]["silent_s"] for event in task.events("watch.verdict")]
        return task.status() != "running" or max(silent) >= LONG_S or _age_s(task) >= LONG_S

    eventually(is_over, within_s=LONG_S + 5, what="it was silent for long", journal=task.packet)
    task.ask("stop")  # refused if it has already ended
    task.wait_for("completed", "killed")
    assert "hung" not in [event["verdict"] for event in task.events("watch.verdict")]
    assert task.manifest()["attempt"] == 1


def _age_s(task: Task) -> float:
    """How long the agent has lived."""
    with open("/proc/uptime", encoding="ascii") as file:
        up_s = float(file.read().split()[0])
    born = task.events("attempt.started")[0]["start_time"] / os.sysconf("SC_CLK_TCK")
    return up_s - born


@pytest.mark.req("SUP-5")
def test_silence_right_after_a_start_is_not_judged_for_the_dispatch_wait(home: str) -> None:
    task = Task.play(
        Scenario().hang(once=True).say("back again"), env={**QUICK, "MONITOR_DISPATCH_WAIT": "2"}
    )
    task.wait_for("completed")
    first = task.events("attempt.ended")[0]
    assert first["outcome"] == "hung"
    # Without the wait it would have been stopped after 0.6 s.
    assert first["lived_s"] >= 2.5


def test_an_agent_that_was_frozen_together_with_its_runner_is_not_hung(home: str) -> None:
    """A paused container or virtual machine: time passes, and nothing can run. (While a machine sleeps, not
    even the clock goes on.)"""
    env = {"MONITOR_BASE_INTERVAL": "0.1", "STALL_THRESHOLD": "1s", "MONITOR_GRACE_PERIOD": "2s"}
    task = Task.shell("while [ ! -e go ]; do echo tick; sleep 0.1; done", env=env)
    agent, runner, recorder = task.agent_pid(), task.runner_pid(), kin.recorder_pid(task)
    task.wait_for_log("tick")
    for pid in (runner, recorder, agent):
        os.kill(pid, signal.SIGSTOP)
    eventually(lambda: kin.state(agent) == kin.state(runner) == "T", what="they are frozen")
    # Longer than silence and grace.
    keepers.stays(lambda: kin.state(agent) == kin.state(runner) == "T", 4.5, "all of them are frozen")
    for pid in (runner, recorder):
        os.kill(pid, signal.SIGCONT)
    # The agent comes back a little later: it has to open its connections again.
    keepers.stays(lambda: kin.state(agent) == "T", 0.7, "the agent is frozen")
    os.kill(agent, signal.SIGCONT)
    keepers.stays(lambda: task.status() == "running", 2.5, "it runs")
    kin.go()
    manifest = task.wait_for("completed")
    assert (manifest["attempt"], manifest["total_retries"]) == (1, 0)
    assert "hung" not in [event["verdict"] for event in task.events("watch.verdict")]
