"""Steps that say something."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from holdfast.testing import Scenario, agent_command
from tests.integration.testing.conftest import LIMIT_S, SESSION, Stage
from tests.support.waiting import eventually


def test_text_is_said_and_printed(stage: Stage) -> None:
    scenario = Scenario().say("one").print("two").print("\n").print("oops", stream="stderr").exit(0)
    playing = stage.play(scenario, dialect="text")
    assert playing.text == "one\ntwo\n"
    assert playing.errors == "oops"


def test_a_pace_is_kept(stage: Stage) -> None:
    playing = stage.start(Scenario().pace(5, 0.1, text="tick {n}"))
    eventually(lambda: playing.has_said("tick 1"))
    assert not playing.has_said("tick 5")
    assert playing.wait() == 0
    assert playing.said() == [f"tick {n}" for n in range(1, 6)]
    [begin] = stage.memory.records("begin")
    [done] = stage.memory.records("done")
    assert done["at"] - begin["at"] >= 0.4


def test_a_raw_pace_is_plain_text(stage: Stage) -> None:
    assert stage.play(Scenario().pace(2, 0, raw=True).exit(0)).text.endswith("}\nline 1\nline 2\n")


def test_a_flood_has_the_size_and_only_whole_distinct_lines(stage: Stage) -> None:
    playing = stage.play(Scenario().flood(3_000_000).say("after"))
    assert 3_000_000 <= len(playing.raw) < 3_020_000
    flood = [text for text in playing.said() if text.startswith("flood ")]
    assert len(set(flood)) == len(flood)
    assert playing.said()[-1] == "after"


def test_a_flood_of_stderr_is_raw(stage: Stage) -> None:
    playing = stage.play(Scenario().flood(100_000, line_bytes=99, stream="stderr"))
    assert len(playing.errors) == 100_000
    assert {len(line) for line in playing.errors.splitlines()} == {99}


def test_the_default_flood_is_100_megabytes(stage: Stage) -> None:
    scenario = Scenario().flood().write_to(stage.work / "s.json")
    command = agent_command(scenario, state_dir=stage.state, dialect="text", prompt="")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    with process.stdout as pipe:
        size = sum(len(chunk) for chunk in iter(lambda: pipe.read(1 << 20), b""))
    assert process.wait(LIMIT_S) == 0
    assert 100_000_000 <= size < 100_010_000


def test_a_long_line_is_one_event(stage: Stage) -> None:
    assert stage.play(Scenario().long_line()).said() == ["x" * 5_000_000]
    raw = stage.play(Scenario().long_line(1000, raw=True), session_id=None, dialect="text")
    assert raw.text == "x" * 1000 + "\n"


def test_half_a_line_stays_half(stage: Stage) -> None:
    playing = stage.play(Scenario().half_line("torn apart").crash("KILL"), status=-9)
    first, half = playing.raw.split(b"\n")
    assert json.loads(first)["subtype"] == "init"
    with pytest.raises(json.JSONDecodeError):
        json.loads(half)


def test_half_a_line_can_be_finished_later(stage: Stage) -> None:
    playing = stage.start(Scenario().half_line("patience", finish_after_s=0.5).exit(0))
    eventually(lambda: playing.raw.count(b"\n") == 1 and not playing.raw.endswith(b"\n"))
    assert playing.wait() == 0
    assert playing.said() == ["patience"]


def test_a_question_without_newline_blocks_for_ever(stage: Stage) -> None:
    playing = stage.start(Scenario().ask("Continue? [y/N] ").say("never"), dialect="text")
    eventually(lambda: playing.has_said("[y/N]"))
    assert playing.process.poll() is None
    assert playing.text == "Continue? [y/N] "


def test_a_question_can_be_answered_on_stdin(stage: Stage) -> None:
    scenario = Scenario().ask("Continue? ", wait="stdin").say("going on")
    playing = stage.start(scenario, dialect="text", stdin=subprocess.PIPE)
    eventually(lambda: playing.has_said("Continue?"))
    assert playing.process.stdin is not None
    playing.process.stdin.write(b"y\n")
    playing.process.stdin.flush()
    assert playing.wait() == 0
    assert playing.text == "Continue? going on\n"


def test_an_announced_retry_has_the_recorded_shape_and_is_waited_for(stage: Stage) -> None:
    playing = stage.play(Scenario().announce_retry(0.2, error_status=529, error="overloaded"))
    [retry] = [event for event in playing.events if event.get("subtype") == "api_retry"]
    del retry["uuid"]
    assert retry == {
        "type": "system",
        "subtype": "api_retry",
        "attempt": 1,
        "max_retries": 10,
        "retry_delay_ms": 200.0,
        "error_status": 529,
        "error": "overloaded",
        "session_id": SESSION,
    }
    [begin], [done] = stage.memory.records("begin"), stage.memory.records("done")
    assert done["at"] - begin["at"] >= 0.2


def test_an_announced_retry_can_lie(stage: Stage) -> None:
    stage.play(Scenario().announce_retry(3600, wait_s=0))


def test_a_reader_that_goes_away_does_not_stop_the_agent(stage: Stage) -> None:
    scenario = Scenario().pace(50, 0.01).write("made.txt", "x").write_to(stage.work / "s.json")
    command = agent_command(scenario, state_dir=stage.state, session_id=SESSION, prompt="")
    read, write = os.pipe()
    process = subprocess.Popen(command, stdout=write, cwd=stage.work)
    os.close(write)
    os.close(read)
    assert process.wait(LIMIT_S) == 0
    assert (stage.work / "made.txt").exists()
    assert stage.memory.records("left")[0]["lost_bytes"] > 0
