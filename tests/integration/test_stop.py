"""A stop is final; it ends everything that the agent started, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest

from holdfast import clock
from holdfast.packet import inbox
from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from tests.support import kin, processes
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


def stopped(task: Task) -> dict:
    """`holdfast stop`, its end, and the sweep's event."""
    task.stop()
    return task.events("attempt.swept")[-1]


def killed_by(swept: dict) -> list[int]:
    return [item["pid"] for item in swept["killed"]]


def nothing_of(task: Task) -> bool:
    """Whether no process carries the attempt's marker or works below the packet."""
    return not processes.marked(task.packet)


# ── signals, in their order ──


@pytest.mark.req("LCH-18", "W-C2", "OUT-7")
def test_a_stop_is_a_term_and_the_exit_status_is_recorded() -> None:
    task = Task.shell("trap 'echo got TERM; exit 21' TERM; " + kin.WAIT)
    agent = task.agent_pid()
    task.wait_for_event("attempt.started")
    swept = stopped(task)
    manifest = task.manifest()
    assert (manifest["status"], manifest["exit_code"]) == ("killed", 21)
    assert "got TERM" in manifest["output_tail"]
    assert "stopped by" in manifest["status_reason"]
    assert swept["proof"] == "none left"
    assert not processes.is_alive(agent)
    assert nothing_of(task)


@pytest.mark.req("LCH-18")
def test_an_agent_that_ignores_term_is_killed_after_the_pause() -> None:
    task = Task.shell("trap '' TERM INT HUP; " + kin.WAIT, "--stop-pause", "1s")
    task.agent_pid()
    start_mono = time.monotonic()
    task.stop()
    assert time.monotonic() - start_mono >= 1.0
    assert (task.manifest()["exit_code"], task.manifest()["exit_signal"]) == (137, 9)
    assert task.events("attempt.ended")[0]["outcome"] == "stopped"
    assert nothing_of(task)


@pytest.mark.req("LCH-18")
def test_without_a_flag_the_pause_is_thirty_seconds() -> None:
    task = Task.shell("trap 'echo got TERM' TERM; " + kin.WAIT)
    agent = task.agent_pid()
    assert task.ask("stop", "--no-wait").returncode == 0
    task.wait_for_log("got TERM")
    # It does not exit; the test kills it instead of waiting.
    assert processes.is_alive(agent)
    assert task.status() == "running"
    assert task.events("task.created")[0]["spec"]["limits"]["stop_pause_s"] is None
    os.killpg(agent, signal.SIGKILL)
    task.wait_for("killed")


#: An agent of another package, with a stop of three signals.
STUBBORN = """
from holdfast.agents.base import Capabilities, Launch, StopStep
from holdfast.agents.scripted import Scripted

SCRIPT = "trap 'date +INT=%s.%N' INT; trap 'date +TERM=%s.%N' TERM; echo ready; while :; do sleep 0.02; done"


class Stubborn(Scripted):
    name = "stubborn"
    capabilities = Capabilities(
        stop=(
            StopStep(signal="INT", pause_s=0.7),
            StopStep(signal="TERM", pause_s=1.1),
            StopStep(signal="KILL", pause_s=5.0),
        )
    )

    def launch(self, spec):
        return Launch(argv=["sh", "-c", SCRIPT])


ADAPTER = Stubborn()
"""


@pytest.mark.req("LCH-18")
def test_without_a_flag_the_adapters_signals_follow_each_other_after_its_own_pauses(
    place, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = os.path.join(place.root, "site-packages")
    about = os.path.join(site, "stubborn-1.0.dist-info")
    os.makedirs(about)
    for path, text in (
        (os.path.join(site, "stubborn.py"), STUBBORN),
        (os.path.join(about, "METADATA"), "Metadata-Version: 2.1\nName: stubborn\nVersion: 1.0\n"),
        (os.path.join(about, "entry_points.txt"), "[holdfast.agents]\nstubborn = stubborn:ADAPTER\n"),
    ):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    monkeypatch.setenv("PYTHONPATH", site, prepend=os.pathsep)
    task = Task.start("--agent", "stubborn", "do it")
    stdout = ("attempts", "001-stubborn_run", "stdout.log")
    eventually(lambda: b"ready" in task.read(*stdout), what="the agent has set its traps")
    task.stop()
    times = dict(line.split("=") for line in task.read(*stdout).decode().splitlines()[1:])
    assert list(times) == ["INT", "TERM"]
    (ended,) = task.events("attempt.ended")
    assert (ended["outcome"], ended["exit_signal"]) == ("stopped", signal.SIGKILL)
    int_at, term_at = float(times["INT"]), float(times["TERM"])
    killed_at = clock.parse_iso(task.json("attempts", "001-stubborn_run", "exit.json")["at"])
    # The agent notes a signal a moment after it was sent.
    assert term_at - int_at > 0.6
    assert killed_at - term_at > 1.0


@pytest.mark.req("LCH-18")
def test_a_frozen_agent_can_be_stopped() -> None:
    task = Task.shell(kin.WAIT)
    agent = task.agent_pid()
    os.killpg(agent, signal.SIGSTOP)
    eventually(lambda: kin.state(agent) == "T", what="the agent is frozen")
    task.stop()
    assert task.manifest()["exit_signal"] == signal.SIGTERM
    assert nothing_of(task)


@pytest.mark.req("LCH-18")
def test_an_agent_that_is_gone_already_is_a_success_for_the_stop(place) -> None:
    env = {"HOLDFAST_FAILPOINT": "stop.before_signal=stop"}
    task = Task.shell(kin.WAIT, env=env)
    agent, runner = task.agent_pid(), task.runner_pid()
    assert task.ask("stop", "--no-wait").returncode == 0
    eventually(lambda: kin.state(runner) == "T", what="the runner is about to signal")
    os.killpg(agent, signal.SIGKILL)
    eventually(lambda: not processes.is_alive(agent), what="the agent is gone")
    os.kill(runner, signal.SIGCONT)
    assert task.wait_for("killed")["exit_code"] == 137


@pytest.mark.req("LCH-18")
def test_a_task_that_waits_for_its_next_attempt_is_stopped_at_once() -> None:
    task = Task.shell("kill -9 $$", "--base-interval", "60s", "--stale", "none")
    task.wait_for("waiting")
    task.stop()
    assert task.events("attempt.opened")[-1]["attempt"] == len(task.attempts())


# ── the intent comes first ──


@pytest.mark.req("LCH-18")
def test_an_attempt_that_ended_before_the_stop_was_asked_for_is_told_as_it_ended() -> None:
    task = Task.shell("while [ ! -e go ]; do sleep 0.05; done; exit 3")
    task.agent_pid()
    runner = task.runner_pid()
    os.kill(runner, signal.SIGSTOP)
    open(os.path.join(workspace(), "go"), "wb").close()
    eventually(lambda: os.path.exists(os.path.join(task.attempts()[0], "exit.json")), what="its exit record")
    inbox.drop(Packet(task.packet), "stop", {}, by="a test")
    inbox.ring(Packet(task.packet))
    os.kill(runner, signal.SIGCONT)
    task.wait_for("killed")
    ended = task.events("attempt.ended")[0]
    assert (ended["outcome"], ended["exit_code"]) == ("failed", 3)


@pytest.mark.req("LCH-18")
def test_an_interrupt_behind_a_stop_is_refused_also_when_the_agent_has_ended() -> None:
    task = kin.make("--", "sh", "-c", "kill -9 $$")
    kin.run_runner(task, env={"HOLDFAST_FAILPOINT": "step.record_end=kill"})
    for verb in ("stop", "interrupt"):
        inbox.drop(Packet(task.packet), verb, {}, by="a test")
    kin.run_runner(task)
    task.wait_for("killed")
    assert task.events("request.refused")[0]["reason"] == "it is being stopped"


@pytest.mark.req("LCH-18", "W-A6")
@pytest.mark.parametrize("point", ["step.answer_request", "stop.before_signal", "stop.after_signal"])
def test_a_runner_killed_on_the_way_is_followed_by_one_that_finishes_the_stop(point: str, place) -> None:
    env = {"HOLDFAST_FAILPOINT": f"{point}=kill", "HOLDFAST_FAILPOINT_ONCE": os.path.join(place.root, "once")}
    task = Task.shell("trap 'exit 0' TERM; " + kin.WAIT + "exit 0", env=env)
    agent = task.agent_pid()
    assert task.ask("stop", "--no-wait").returncode == 0
    eventually(lambda: os.path.exists(env["HOLDFAST_FAILPOINT_ONCE"]), what="the runner was killed")
    if point != "step.answer_request":  # there, the view saw the pending request and started the next runner
        task.start_runner()
    manifest = task.wait_for("killed")
    assert manifest["exit_code"] == 0  # what a dying process reports changes nothing
    assert not processes.is_alive(agent)
    assert len(task.events("runner.started")) == 2
    assert len(task.events("stop.intended")) == 1


# ── everything it started ──


@pytest.mark.req("OUT-7", "LCH-18")
def test_a_setsid_grandchild_that_ignores_signals_is_swept() -> None:
    scenario = Scenario().grandchild(pid_file="pid", ignore_signals=True).sleep(300)
    task = Task.play(scenario)
    task.agent_pid()
    grandchild = kin.pid_in("pid")
    swept = stopped(task)
    assert grandchild in killed_by(swept)
    assert swept["proof"] == "none left"
    assert not processes.is_alive(grandchild)
    assert nothing_of(task)


@pytest.mark.req("OUT-7")
def test_a_grandchild_with_a_stripped_environment_is_swept() -> None:
    scenario = Scenario().grandchild(pid_file="pid", strip_env=True).sleep(300)
    task = Task.play(scenario)
    task.agent_pid()
    grandchild = kin.pid_in("pid")
    assert grandchild in killed_by(stopped(task))
    assert not processes.is_alive(grandchild)


@pytest.mark.req("OUT-7")
def test_a_daemon_that_forked_twice_and_kept_the_output_open_is_swept() -> None:
    scenario = Scenario().grandchild(pid_file="pid", orphan=True, hold_output=True, strip_env=True).sleep(300)
    task = Task.play(scenario)
    task.agent_pid()
    daemon = kin.pid_in("pid")
    recorder = kin.recorder_pid(task)
    eventually(lambda: kin.parent(daemon) == recorder, what="the daemon re-parents to the recorder")
    assert daemon in killed_by(stopped(task))
    assert not processes.is_alive(daemon)
    eventually(lambda: not processes.is_alive(recorder), what="the recorder left")


@pytest.mark.req("OUT-7")
def test_a_tree_whose_recorder_was_killed_is_swept_too() -> None:
    scenario = Scenario().grandchild(pid_file="pid", ignore_signals=True, strip_env=True).sleep(300)
    task = Task.play(scenario)
    agent = task.agent_pid()
    grandchild = kin.pid_in("pid")
    kin.kill(kin.recorder_pid(task))
    eventually(lambda: kin.parent(agent) == task.runner_pid(), what="the agent re-parents to the runner")
    task.stop()
    assert not processes.is_alive(grandchild)
    assert not processes.is_alive(agent)


@pytest.mark.req("OUT-7")
def test_a_frozen_grandchild_is_swept() -> None:
    scenario = Scenario().grandchild(pid_file="pid").sleep(300)
    task = Task.play(scenario)
    task.agent_pid()
    grandchild = kin.pid_in("pid")
    os.kill(grandchild, signal.SIGSTOP)
    assert grandchild in killed_by(stopped(task))
    assert not processes.is_alive(grandchild)


@pytest.mark.req("OUT-7", "SUP-9")
def test_a_fork_bomb_of_sleepers_leaves_nothing() -> None:
    script = "for i in $(seq 40); do (setsid sh -c 'trap \"\" TERM; sleep 300 & wait' &) ; done; echo ready; "
    task = Task.shell(script + kin.WAIT)
    task.wait_for_log("ready")
    swept = stopped(task)
    assert swept["proof"] == "none left"
    assert len(swept["killed"]) >= 40
    assert nothing_of(task)


@pytest.mark.req("W-C2")
@pytest.mark.parametrize("number", ["TERM", "KILL"])
def test_an_agent_that_kills_its_own_group_kills_no_holdfast_process(number: str) -> None:
    script = f"[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; sleep 300 & kill -{number} 0; sleep 5"
    task = Task.shell(script)
    manifest = task.wait_for("completed")
    assert manifest["total_retries"] == 1
    first = task.events("attempt.ended")[0]
    assert (first["outcome"], first["exit_signal"]) == ("crashed", signal.Signals[f"SIG{number}"])
    assert first["by"] == "recorder"
    assert len(task.events("runner.started")) == 1
    assert nothing_of(task)


@pytest.mark.req("W-A2")
def test_before_a_resume_everything_of_the_old_attempt_is_gone() -> None:
    script = (
        "if [ $HOLDFAST_RESUME_COUNT = 1 ]; then kill -0 $(cat pid) 2>/dev/null && echo overlap; exit 0; fi; "
        "setsid sh -c 'echo $$ > pid; exec sleep 300' & while [ ! -s pid ]; do sleep 0.01; done; kill -9 $$"
    )
    task = Task.shell(script)
    task.wait_for("completed")
    tool = kin.pid_in("pid")
    assert "overlap" not in task.log()
    assert tool in killed_by(task.events("attempt.swept")[0])
    assert not processes.is_alive(tool)


@pytest.mark.req("LCH-18")
def test_a_stop_does_not_touch_other_processes() -> None:
    bystander = subprocess.Popen(["sleep", "60"], cwd=workspace(), start_new_session=True)
    other = Task.shell(kin.WAIT + "exit 0")
    task = Task.shell(kin.WAIT)
    neighbour = other.agent_pid()
    task.agent_pid()
    task.stop()
    assert bystander.poll() is None
    assert processes.is_alive(neighbour)
    kin.go()
    other.wait_for("completed")
    bystander.kill()
    bystander.wait()


# ── what a finished agent leaves ──


def _answers(port: int) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as reply:
        return reply.read().strip() == b"ok"


@pytest.mark.req("SUP-9")
def test_a_dev_server_of_a_succeeded_agent_is_reported_and_lives_on() -> None:
    scenario = Scenario().server(pid_file="pid", port_file="port").result("it is up")
    task = Task.play(scenario)
    task.wait_for("completed")
    server, port = kin.pid_in("pid"), kin.pid_in("port")
    found = task.events("leftovers.found")[0]
    assert found["policy"] == "report"
    assert server in [item["pid"] for item in found["processes"]]
    assert str(server) in task.read("outputs", "_summary.md").decode()
    assert _answers(port)
    # Runner and recorder are gone; the server needs neither.
    eventually(
        lambda: [p.pid for p in processes.marked(task.packet)] == [server], what="only the server is left"
    )
    assert _answers(port)
    os.kill(server, signal.SIGKILL)


@pytest.mark.req("SUP-9", "SUP-18")
def test_a_dev_server_of_an_agent_that_had_to_be_killed_after_its_success_lives_on() -> None:
    """Where nothing is swept, nothing is stopped before the kill."""
    scenario = Scenario().server(pid_file="pid", port_file="port").ignore(["TERM", "INT", "HUP"])
    task = Task.play(
        scenario.result("it is up").linger("forever"), "--linger", "0.2s", "--stop-pause", "0.2s"
    )
    task.wait_for("completed")
    assert task.events("attempt.ended")[0]["exit_signal"] == signal.SIGKILL
    server, port = kin.pid_in("pid"), kin.pid_in("port")
    assert kin.state(server) != "T"
    assert _answers(port)
    os.kill(server, signal.SIGKILL)


@pytest.mark.req("SUP-9")
def test_leftovers_are_killed_or_kept_where_that_was_asked_for() -> None:
    kill = Task.play(Scenario().grandchild(pid_file="killed").result(), "--leftovers", "kill")
    kill.wait_for("completed")
    assert not processes.is_alive(kin.pid_in("killed"))
    assert kin.pid_in("killed") in killed_by(kill.events("attempt.swept")[0])
    keep = Task.play(Scenario().grandchild(pid_file="kept").result(), "--leftovers", "keep")
    keep.wait_for("completed")
    assert keep.events("leftovers.found") == []
    assert processes.is_alive(kin.pid_in("kept"))
    os.kill(kin.pid_in("kept"), signal.SIGKILL)
