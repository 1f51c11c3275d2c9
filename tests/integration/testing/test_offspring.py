"""Steps that leave a process behind."""

from __future__ import annotations

import os
import signal
import urllib.request
from pathlib import Path

import pytest

from holdfast.testing import Scenario
from tests.integration.testing.conftest import Stage, end, pid_in
from tests.support import processes
from tests.support.waiting import eventually


def ignored_signals(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16)


def bit(number: int) -> int:
    return 1 << (number - 1)


def test_a_grandchild_has_its_own_session_and_outlives_the_agent(stage: Stage) -> None:
    playing = stage.play(Scenario().grandchild(pid_file="pid").crash(), status=-9)
    pid = pid_in(stage.work / "pid")
    assert os.getsid(pid) == pid
    assert os.getsid(pid) != playing.pid
    assert ignored_signals(pid) & bit(signal.SIGTERM) == 0
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: not processes.is_alive(pid))


def test_a_grandchild_can_ignore_signals_and_lose_its_environment(stage: Stage) -> None:
    scenario = Scenario().grandchild(pid_file="pid", ignore_signals=True, strip_env=True)
    stage.play(scenario, env={"HOLDFAST_ATTEMPT": "marker"})
    pid = pid_in(stage.work / "pid")
    assert Path(f"/proc/{pid}/environ").read_bytes() == b""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        assert ignored_signals(pid) & bit(number)
        os.kill(pid, number)
    assert processes.is_alive(pid)
    end(pid)


def test_a_grandchild_keeps_its_environment_by_default(stage: Stage) -> None:
    stage.play(Scenario().grandchild(pid_file="pid"), env={"HOLDFAST_ATTEMPT": "marker"})
    pid = pid_in(stage.work / "pid")
    assert b"HOLDFAST_ATTEMPT=marker" in Path(f"/proc/{pid}/environ").read_bytes()
    end(pid)


@pytest.mark.parametrize("orphan", [False, True])
def test_an_orphan_is_not_a_child_of_the_living_agent(stage: Stage, orphan: bool) -> None:
    playing = stage.start(Scenario().grandchild(pid_file="pid", orphan=orphan).say("ready").hang())
    eventually(lambda: playing.has_said("ready"))
    process = processes.look(pid_in(stage.work / "pid"))
    assert process is not None
    assert (process.parent_pid == playing.pid) is not orphan
    end(process.pid)


@pytest.mark.parametrize("hold", [False, True])
def test_a_grandchild_holds_the_output_only_on_request(stage: Stage, hold: bool) -> None:
    stage.play(Scenario().grandchild(pid_file="pid", hold_output=hold))
    pid = pid_in(stage.work / "pid")
    descriptors = {os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")}
    assert (descriptors == {os.devnull}) is not hold
    end(pid)


def test_a_grandchild_ends_after_its_time(stage: Stage) -> None:
    stage.play(Scenario().grandchild(0.2, pid_file="pid"))
    pid = pid_in(stage.work / "pid")
    eventually(lambda: not processes.is_alive(pid))


def test_a_server_answers_after_the_agent_has_ended(stage: Stage) -> None:
    stage.play(Scenario().server(pid_file="pid", port_file="port").result())
    port = int((stage.work / "port").read_text("ascii"))
    for _ in range(2):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            assert answer.read() == b"ok\n"
    pid = pid_in(stage.work / "pid")
    assert os.getsid(pid) == pid
    end(pid)


def test_a_port_in_use_is_a_failure(stage: Stage) -> None:
    stage.play(Scenario().server(pid_file="pid", port_file="port"))
    port = int((stage.work / "port").read_text("ascii"))
    playing = stage.play(Scenario().server(port=port), session_id=None, status=1)
    assert f"cannot listen on port {port}" in playing.errors
    end(pid_in(stage.work / "pid"))
