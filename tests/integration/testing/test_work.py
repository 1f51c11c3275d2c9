"""Steps that do something to the world, or look at it."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

from holdfast.testing import Scenario
from tests.integration.testing.conftest import Stage, end, pid_in
from tests.support.waiting import eventually


def tool_events(events: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The last tool_use block and the last tool_result block."""
    blocks = [event["message"]["content"][0] for event in events if "message" in event]
    return (
        [block for block in blocks if block["type"] == "tool_use"][-1],
        [block for block in blocks if block["type"] == "tool_result"][-1],
    )


def test_a_tool_runs_a_command_and_shows_its_output(stage: Stage) -> None:
    playing = stage.play(Scenario().tool(command="echo hi; echo ho >&2; pwd > where"))
    use, result = tool_events(playing.events)
    assert use["name"] == "Bash"
    assert use["input"]["command"].startswith("echo hi")
    assert result == {
        "tool_use_id": use["id"],
        "type": "tool_result",
        "content": "hi\nho",
        "is_error": False,
    }
    assert (stage.work / "where").read_text("utf-8") == f"{stage.work}\n"
    assert [effect["exit"] for effect in stage.memory.effects()] == [0]
    assert not list(stage.memory.path.glob("tool-*"))


def test_a_failing_tool_reports_it_and_the_agent_continues(stage: Stage) -> None:
    playing = stage.play(Scenario().tool(command="echo oops; exit 3").say("on"))
    _, result = tool_events(playing.events)
    assert (result["content"], result["is_error"]) == ("Exit code 3\noops", True)
    playing = stage.play(Scenario().tool("Read", fails=True, output="no such file"), session_id=None)
    use, result = tool_events(playing.events)
    assert use["name"] == "Read"
    assert (result["content"], result["is_error"]) == ("Exit code 1\nno such file", True)


def test_a_tool_sleeps_without_and_computes_with_the_cpu(stage: Stage) -> None:
    def cpu_and_wall_s(scenario: Scenario) -> tuple[float, float]:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        stage.play(scenario, session_id=None)
        return resource.getrusage(
            resource.RUSAGE_CHILDREN
        ).ru_utime - before.ru_utime, time.monotonic() - began

    asleep_s, wall_asleep_s = cpu_and_wall_s(Scenario().tool("sleep", run_s=0.8))
    busy_s, wall_busy_s = cpu_and_wall_s(Scenario().tool("think", busy_s=0.8))
    assert min(wall_asleep_s, wall_busy_s) >= 0.8
    assert busy_s > asleep_s + 0.1


def test_an_open_tool_is_never_finished(stage: Stage) -> None:
    playing = stage.play(Scenario().tool(stays_open=True).crash(), status=-9)
    assert [event["type"] for event in playing.events] == ["system", "assistant"]


def test_a_tool_that_leaves_a_child_behind_is_not_waited_for(stage: Stage) -> None:
    stage.play(Scenario().tool(command="sleep 300 & echo $! > pid"))
    end(pid_in(stage.work / "pid"))


def test_files_are_written_and_each_write_is_counted(stage: Stage) -> None:
    scenario = (
        Scenario().write("a/b.txt", "old").write("a/b.txt", "new\n").write("a/b.txt", "more", append=True)
    )
    stage.play(scenario)
    assert (stage.work / "a" / "b.txt").read_text("utf-8") == "new\nmore"
    effects = [(effect["path"], effect["bytes"]) for effect in stage.memory.effects()]
    assert effects == [("a/b.txt", 3), ("a/b.txt", 4), ("a/b.txt", 4)]


def test_a_file_is_waited_for(stage: Stage) -> None:
    playing = stage.start(Scenario().say("waiting").wait_file("go").say("went"))
    eventually(lambda: playing.has_said("waiting"))
    assert not playing.has_said("went")
    (stage.work / "go").touch()
    assert playing.wait() == 0
    assert playing.said() == ["waiting", "went"]


def test_a_file_that_does_not_come_is_a_failure(stage: Stage) -> None:
    playing = stage.play(Scenario().wait_file("never", limit_s=0.1), status=1)
    assert stage.memory.failures() == ["steps[0].wait_file: never did not appear within 0.1 s"]
    assert playing.events[-1]["subtype"] == "error_during_execution"


def test_the_environment_can_be_expected(stage: Stage) -> None:
    scenario = Scenario().expect_env({"A": "1", "B": True, "C": None})
    stage.play(scenario, env={"A": "1", "B": "anything"})
    playing = stage.play(scenario, env={"A": "secret", "B": "x"}, session_id=None, status=1)
    assert "environment variable A is set; expected: '1'" in playing.errors
    assert "secret" not in playing.errors + playing.text
    stage.play(scenario, env={"A": "1", "B": "x", "C": ""}, session_id=None, status=1)
    stage.play(scenario, env={"A": "1"}, session_id=None, status=1)


def test_a_human_is_asked_for_through_the_interrupt_file(stage: Stage) -> None:
    scenario = Scenario().interrupt_request("which database?")
    stage.play(scenario, env={"INTERRUPT_FILE": str(stage.work / "please")})
    assert (stage.work / "please").read_text("utf-8") == "which database?"
    assert "INTERRUPT_FILE is not set" in stage.play(scenario, session_id=None, status=1).errors


def test_holdfast_itself_is_run_with_this_interpreter(stage: Stage, tmp_path: Path) -> None:
    scenario = Scenario().holdfast(["show", "nothing"]).holdfast(["ls"], wait=False, pid_file="pid")
    playing = stage.play(scenario, env={"HOLDFAST_HOME": str(tmp_path / "home")})
    results = [e["message"]["content"][0]["content"] for e in playing.events if e["type"] == "user"]
    assert results[0].startswith("Exit code 3\nerror: no task 'nothing'")
    assert results[1] == ""
    assert [(e["argv"], e["exit"]) for e in stage.memory.effects()] == [
        (["show", "nothing"], 3),
        (["ls"], None),
    ]
    assert pid_in(stage.work / "pid") > 0


def test_a_sleep_takes_its_time(stage: Stage) -> None:
    began = time.monotonic()
    stage.play(Scenario().sleep(0.3))
    assert time.monotonic() - began >= 0.3


def test_a_file_that_cannot_be_written_is_a_failure(stage: Stage) -> None:
    playing = stage.play(Scenario().write("file", "x").write("file/below", "x"), status=1)
    assert stage.memory.failures()[0].startswith("steps[1].write: ")
    assert "Traceback" not in playing.errors
