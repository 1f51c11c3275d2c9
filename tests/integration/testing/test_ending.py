"""Steps about how a process ends, or fails to; and what signals do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from holdfast.testing import Scenario, agent_command
from tests.integration.testing.conftest import LIMIT_S, SESSION, Playing, Stage, end, pid_in
from tests.support import processes
from tests.support.waiting import eventually


def cpu_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[11]) + int(fields[12])


def ready(playing: Playing) -> Playing:
    eventually(lambda: playing.has_said("ready"))
    return playing


@pytest.mark.parametrize("name", ["KILL", "SEGV", "TERM", "INT", "ABRT", "USR1"])
def test_a_crash_by_signal_is_a_death_by_signal(stage: Stage, name: str) -> None:
    playing = stage.play(Scenario().say("x").crash(name), status=-signal.Signals[f"SIG{name}"])
    assert playing.said() == ["x"]
    assert playing.events[-1]["type"] == "assistant"
    assert stage.memory.begun_steps()[-1] == "steps[1]"
    assert stage.memory.completed_steps() == ["steps[0]"]


def test_a_crash_can_be_an_exit_status(stage: Stage) -> None:
    stage.play(Scenario().crash(exit=7), status=7)


def test_exit_adds_no_result(stage: Stage) -> None:
    playing = stage.play(Scenario().say("x").exit(0))
    assert [event["type"] for event in playing.events] == ["system", "assistant"]


def test_exit_0_after_an_error_is_possible(stage: Stage) -> None:
    scenario = Scenario().result("no", subtype="error_during_execution").exit(0)
    assert stage.play(scenario).events[-1]["is_error"] is True


def test_an_error_result_exits_1(stage: Stage) -> None:
    playing = stage.play(Scenario().result("bad key", is_error=True, api_error_status=401), status=1)
    assert playing.events[-1]["subtype"] == "success"
    assert playing.events[-1]["api_error_status"] == 401


def test_a_scenario_without_an_end_succeeds(stage: Stage) -> None:
    result = stage.play(Scenario().say("x")).events[-1]
    assert (result["type"], result["is_error"], result["result"]) == ("result", False, "x")


@pytest.mark.parametrize("cpu", [False, True])
def test_a_hang_uses_the_cpu_only_on_request(stage: Stage, cpu: bool) -> None:
    playing = ready(stage.start(Scenario().say("ready").hang(cpu=cpu)))
    eventually(lambda: stage.memory.begun_steps()[-1] == "steps[1]")
    before = cpu_ticks(playing.pid)
    if cpu:
        eventually(lambda: cpu_ticks(playing.pid) > before + 20)
    else:
        eventually(lambda: (process := processes.look(playing.pid)) and process.state == "S")
        assert cpu_ticks(playing.pid) <= before + 5
    os.kill(playing.pid, signal.SIGTERM)
    assert playing.wait() == 143


def test_lingering_comes_after_the_result(stage: Stage) -> None:
    playing = stage.start(Scenario().say("x").linger())
    eventually(lambda: playing.has_said('"type":"result"'))
    assert playing.process.poll() is None
    assert stage.play(Scenario().result("y").linger(0.1), session_id=None).text.count('"type":"result"') == 1


def test_a_rate_limit_ends_as_recorded(stage: Stage) -> None:
    _, message, result = stage.play(Scenario().rate_limit("You've hit your limit"), status=1).events
    assert (message["error"], message["message"]["model"]) == ("rate_limit", "<synthetic>")
    assert (result["subtype"], result["is_error"]) == ("success", True)
    text = "API Error: Request rejected (429) · You've hit your limit"
    assert (result["api_error_status"], result["result"]) == (429, text)


def test_the_group_is_killed_with_the_agent_in_it(stage: Stage) -> None:
    stage.play(Scenario().kill_group(), status=-9)
    stage.play(Scenario().kill_group("TERM"), session_id=None, status=143)


# ── signals ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "status"), [("TERM", 143), ("HUP", 129)])
def test_term_and_hup_exit_without_a_word(stage: Stage, name: str, status: int) -> None:
    playing = ready(stage.start(Scenario().say("ready").hang()))
    os.kill(playing.pid, signal.Signals[f"SIG{name}"])
    assert playing.wait() == status
    assert playing.events[-1]["type"] == "assistant"
    assert stage.memory.records("left")[0]["signal"] == f"SIG{name}"


def test_an_interrupt_in_mid_stream_exits_0_with_an_error_result(stage: Stage) -> None:
    playing = ready(stage.start(Scenario().say("ready").hang()))
    os.kill(playing.pid, signal.SIGINT)
    assert playing.wait() == 0
    *_, user, result = playing.events
    assert user["message"]["content"][0]["text"] == "[Request interrupted by user]"
    assert (result["subtype"], result["is_error"]) == ("error_during_execution", True)
    assert result["terminal_reason"] == "aborted_streaming"


def test_an_interrupt_in_a_tool_kills_it_and_exits_1(stage: Stage) -> None:
    playing = stage.start(Scenario().tool(command="echo $$ > pid; sleep 300; true"))
    tool = pid_in(stage.work / "pid")
    os.kill(playing.pid, signal.SIGINT)
    assert playing.wait() == 1
    eventually(lambda: not processes.is_alive(tool))
    *_, rejected, interrupted, result = playing.events
    assert rejected["message"]["content"][0]["is_error"] is True
    assert interrupted["message"]["content"][0]["text"] == "[Request interrupted by user for tool use]"
    assert result["terminal_reason"] == "aborted_tools"


def test_term_leaves_the_tool_running(stage: Stage) -> None:
    playing = stage.start(Scenario().tool(command="echo $$ > pid; exec sleep 300"))
    tool = pid_in(stage.work / "pid")
    os.kill(playing.pid, signal.SIGTERM)
    assert playing.wait() == 143
    end(tool)


def test_an_interrupt_never_lands_inside_a_line(stage: Stage) -> None:
    path = Scenario().long_line(2_000_000).hang().write_to(stage.work / "s.json")
    command = agent_command(path, state_dir=stage.state, session_id=SESSION, prompt="")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    with process.stdout as pipe:
        head = pipe.read(10_000)  # the pipe is full now, and the agent in the middle of its line
        os.kill(process.pid, signal.SIGINT)
        events = [json.loads(line) for line in (head + pipe.read()).splitlines()]
    assert process.wait(LIMIT_S) == 0
    assert len(events[1]["message"]["content"][0]["text"]) == 2_000_000
    assert events[-1]["terminal_reason"] == "aborted_streaming"


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
def test_plain_text_dies_of_signals(stage: Stage, name: str) -> None:
    playing = ready(stage.start(Scenario().say("ready").hang(), dialect="text"))
    number = signal.Signals[f"SIG{name}"]
    os.kill(playing.pid, number)
    assert playing.wait() == -number


def test_ignored_signals_change_nothing_but_kill_does(stage: Stage) -> None:
    scenario = Scenario().ignore(["TERM", "INT", "HUP"]).say("ready").wait_file("go").say("alive").hang()
    playing = ready(stage.start(scenario))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(playing.pid, number)
    (stage.work / "go").touch()
    eventually(lambda: playing.has_said("alive"))
    playing.process.kill()
    assert playing.wait() == -9


def test_what_is_ignored_is_not_inherited_by_tools(stage: Stage) -> None:
    stage.play(Scenario().ignore(["TERM"]).tool(command="kill -TERM $$; touch survived"))
    assert not (stage.work / "survived").exists()


def test_a_scenario_chooses_what_a_signal_does(stage: Stage) -> None:
    scenario = Scenario().on_signal("TERM", {"exit": 0, "after_s": 0.3}).on_signal("HUP", "ignore")
    scenario.on_signal("INT", "default").say("ready").hang()
    playing = ready(stage.start(scenario))
    os.kill(playing.pid, signal.SIGHUP)
    began = time.monotonic()
    os.kill(playing.pid, signal.SIGTERM)
    assert playing.wait() == 0
    assert time.monotonic() - began >= 0.3
    playing = ready(stage.start(scenario, session_id=None))
    os.kill(playing.pid, signal.SIGINT)
    assert playing.wait() == -signal.SIGINT


def test_inherited_dispositions_do_not_matter(stage: Stage) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        playing = stage.start(Scenario().say("ready").hang())
    finally:
        signal.signal(signal.SIGHUP, before)
    os.kill(ready(playing).pid, signal.SIGHUP)
    assert playing.wait() == 129
