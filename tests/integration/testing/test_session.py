"""The memory of a session: resuming, counting processes, and proof that they never overlap."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path

import pytest

from holdfast.testing import Scenario, SessionMemory, agent_command
from tests.integration.testing.conftest import SESSION, Stage, end, pid_in
from tests.support.waiting import eventually

UNKNOWN = "5d626575-e269-41d0-a7e0-b02bf3e20c67"


def counted(scenario: Scenario, line: str) -> Scenario:
    return scenario.write("done.txt", f"{line}\n", append=True)


def test_a_resume_goes_on_after_the_last_completed_step(stage: Stage) -> None:
    scenario = counted(counted(Scenario(), "a").crash("KILL", once=True), "b").result("all done")
    stage.play(scenario, status=-9, prompt="first")
    playing = stage.play(scenario, resume=True, prompt="go on", env={"HOLDFAST_RESUME_COUNT": "1"})
    assert (stage.work / "done.txt").read_text("utf-8") == "a\nb\n"
    assert playing.events[0]["session_id"] == SESSION
    assert playing.events[-1]["result"] == "all done"
    memory = stage.memory
    assert memory.begun_steps() == ["steps[0]", "steps[1]", "steps[2]", "steps[3]"]
    assert memory.completed_steps() == ["steps[0]", "steps[2]", "steps[3]"]
    assert memory.skipped_steps() == ["steps[1]"]
    first, second = memory.starts()
    assert (first.prompt, first.is_resume, first.env) == ("first", False, {})
    assert (second.prompt, second.is_resume) == ("go on", True)
    assert second.env == {"HOLDFAST_RESUME_COUNT": "1"}
    assert second.prompt_sha256 == hashlib.sha256(b"go on").hexdigest()
    assert (second.process, second.pid, second.cwd) == (2, playing.pid, stage.work)
    assert memory.exits() == [0]
    assert memory.overlaps() == []


def test_a_step_that_was_cut_off_is_done_again(stage: Stage) -> None:
    scenario = Scenario().say("x").tool(command="echo $$ >> ran; test -e go || exec sleep 300")
    playing = stage.start(scenario)
    tool = pid_in(stage.work / "ran")
    playing.process.kill()
    playing.wait()
    end(tool)
    (stage.work / "go").touch()
    stage.play(scenario, resume=True)
    assert len((stage.work / "ran").read_text("utf-8").splitlines()) == 2
    assert stage.memory.begun_steps() == ["steps[0]", "steps[1]", "steps[1]"]


def test_a_resume_can_start_over(stage: Stage) -> None:
    scenario = counted(Scenario(), "a").crash(once=True).on_resume("restart")
    stage.play(scenario, status=-9)
    stage.play(scenario, resume=True)
    assert (stage.work / "done.txt").read_text("utf-8") == "a\na\n"


def test_a_resume_can_have_its_own_steps(stage: Stage) -> None:
    later = counted(Scenario(), "resumed").crash(times=2).result("done")
    scenario = counted(Scenario(), "first").crash().resumed(later)
    stage.play(scenario, status=-9)
    stage.play(scenario, resume=True, status=-9)
    assert stage.play(scenario, resume=True).events[-1]["result"] == "done"
    assert (stage.work / "done.txt").read_text("utf-8") == "first\nresumed\n"


def test_times_counts_processes_and_tries_counts_arrivals(stage: Stage) -> None:
    scenario = Scenario().crash(exit=3, times=2).crash(exit=4, tries=2).say("through")
    statuses = [stage.start(scenario, resume=n > 0).wait() for n in range(5)]
    assert statuses == [3, 3, 4, 4, 0]


def test_a_finished_session_has_nothing_left_to_do_but_its_result(stage: Stage) -> None:
    scenario = counted(Scenario(), "a").result("done")
    stage.play(scenario)
    assert [event["type"] for event in stage.play(scenario, resume=True).events] == ["system", "result"]
    assert (stage.work / "done.txt").read_text("utf-8") == "a\n"


def test_an_unknown_session_is_refused_as_recorded(stage: Stage) -> None:
    playing = stage.play(Scenario().say("x"), resume=True, status=1)
    message = f"No conversation found with session ID: {SESSION}"
    assert playing.errors == message + "\n"
    [result] = playing.events
    assert (result["subtype"], result["is_error"]) == ("error_during_execution", True)
    assert (result["session_id"], result["num_turns"]) == (SESSION, 0)
    assert result["errors"] == [message]
    assert not stage.state.exists()


def test_a_session_is_not_found_from_another_directory(stage: Stage, tmp_path: Path) -> None:
    stage.play(Scenario().crash(), status=-9)
    playing = stage.play(Scenario().say("x"), resume=True, cwd=tmp_path, status=1)
    assert playing.errors == f"No conversation found with session ID: {SESSION}\n"


def test_a_used_id_is_refused_unless_the_starter_says_that_it_resumes(stage: Stage) -> None:
    scenario = counted(Scenario(), "a").crash(once=True)
    stage.play(scenario, status=-9)
    assert stage.play(scenario, status=1).errors == f"Error: Session ID {SESSION} is already in use.\n"
    stage.play(scenario, env={"HOLDFAST_RESUME_COUNT": "1"})
    assert (stage.work / "done.txt").read_text("utf-8") == "a\n"


def test_a_plain_command_is_resumed_by_running_it_again(stage: Stage) -> None:
    scenario = counted(Scenario(), "a").crash(once=True).say("b")
    stage.play(scenario, status=-9, dialect="text", session_id="nightly.1")
    assert stage.play(scenario, dialect="text", session_id="nightly.1").text == "b\n"
    assert SessionMemory(stage.state / "nightly.1").starts()[1].is_resume


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "-x", "x" * 200])
def test_an_id_cannot_lead_out_of_the_state_directory(stage: Stage, name: str) -> None:
    playing = stage.play(Scenario().say("x"), dialect="text", session_id=name, status=1)
    assert "cannot be a session ID" in playing.errors
    assert not stage.state.exists()


def test_a_claude_session_needs_a_uuid(stage: Stage) -> None:
    playing = stage.play(Scenario().say("x"), session_id="ses_a1b2c3d4", status=1)
    assert playing.errors == "Error: Invalid session ID. Must be a valid UUID.\n"


def test_a_new_session_gets_an_id(stage: Stage) -> None:
    playing = stage.play(Scenario().say("x"), session_id=None)
    [memory] = SessionMemory.all(stage.state)
    assert playing.events[0]["session_id"] == memory.session_id


def test_a_resume_can_answer_with_another_id(stage: Stage) -> None:
    scenario = Scenario(resume_as=UNKNOWN).crash(once=True).say("x")
    stage.play(scenario, status=-9)
    assert {event["session_id"] for event in stage.play(scenario, resume=True).events} == {UNKNOWN}


def test_two_processes_of_a_session_are_noticed(stage: Stage) -> None:
    scenario = Scenario().fail_if_running().say("ready").wait_file("go")
    first = stage.start(scenario)
    eventually(lambda: first.has_said("ready"))
    second = stage.play(scenario, resume=True, status=1)
    message = f"steps[0].fail_if_running: session {SESSION} is already running in process {first.pid}"
    assert second.events[-1]["errors"] == [message]
    (stage.work / "go").touch()
    assert first.wait() == 0
    [overlap] = stage.memory.overlaps()
    assert (overlap["pid"], overlap["holder"]) == (second.pid, first.pid)


def test_neither_a_killed_process_nor_its_children_count_as_running(stage: Stage) -> None:
    scenario = Scenario().fail_if_running().grandchild(2, hold_output=True).tool(command="sleep 2 & true")
    scenario.crash("KILL", times=3)
    stage.play(scenario, status=-9)
    stage.play(scenario, status=-9, resume=True)
    stage.play(scenario, status=-9, resume=True)
    stage.play(scenario, resume=True)
    assert stage.memory.overlaps() == []


def test_a_torn_journal_line_is_a_thing_that_did_not_happen(stage: Stage) -> None:
    scenario = counted(Scenario(), "a").crash(once=True)
    stage.play(scenario, status=-9)
    journal = stage.memory.path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    done = next(i for i, line in enumerate(lines) if b'"done"' in line)
    journal.write_bytes(b"".join(lines[:done]) + lines[done][:20])
    stage.play(scenario, resume=True)
    assert (stage.work / "done.txt").read_text("utf-8") == "a\na\n"
    assert stage.memory.completed_steps() == ["steps[0]"]
    assert len(stage.memory.starts()) == 2


def test_the_memory_is_private(stage: Stage) -> None:
    stage.play(Scenario().fail_if_running())
    assert stat.S_IMODE(stage.memory.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in stage.memory.path.iterdir()} == {0o600}


@pytest.mark.parametrize("variable", ["HOLDFAST_SCRIPTED_STATE", "HOLDFAST_PACKET", "XDG_STATE_HOME", "HOME"])
def test_the_state_directory_has_defaults(stage: Stage, tmp_path: Path, variable: str) -> None:
    path = Scenario().say("x").write_to(tmp_path / "s.json")
    env = os.environ | {
        variable: str(tmp_path / "tasks" / "it" if variable == "HOLDFAST_PACKET" else tmp_path)
    }
    subprocess.run(
        agent_command(path, session_id=SESSION, prompt=""),
        env=env,
        check=True,
        capture_output=True,
        timeout=30,
    )
    below = {
        # In a task: below its home, because another task may resume the session.
        "HOLDFAST_PACKET": "scripted-agent",
        "XDG_STATE_HOME": "scripted-agent",
        "HOME": ".local/state/scripted-agent",
    }.get(variable, ".")
    assert len(SessionMemory(tmp_path / below / SESSION).starts()) == 1
