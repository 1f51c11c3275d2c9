"""The command line, the prompt, and the cost of starting."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from holdfast.testing import Scenario
from tests.integration.testing.conftest import SESSION, Stage

COMMAND = [sys.executable, "-m", "holdfast.testing.agent"]


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=30, check=False, **options
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "a scenario file is required"),
        (["s.json", "--nope"], "unknown option --nope"),
        (["s.json", "--model"], "--model needs a value"),
        (["s.json", "a", "b"], "unexpected argument 'b'"),
        (["s.json", "--resume", "x", "--session-id=y"], "exclude each other"),
        (["s.json", "--dialect", "klingon"], "unknown dialect klingon (known: stream-json, text)"),
    ],
)
def test_a_wrong_command_line_exits_2(arguments: list[str], complaint: str) -> None:
    done = run(*arguments, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


def test_help_is_on_stdout() -> None:
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: python -m holdfast.testing.agent SCENARIO.json")


def test_the_prompt_comes_from_stdin(stage: Stage) -> None:
    path = Scenario().say("x").write_to(stage.work / "s.json")
    done = run(str(path), "--state-dir", str(stage.state), f"--session-id={SESSION}", input="grüße\n")
    assert done.returncode == 0
    assert stage.memory.starts()[0].prompt == "grüße\n"


def test_a_prompt_may_begin_with_a_dash(stage: Stage) -> None:
    stage.play(Scenario().say("x"), prompt="--help me")
    assert stage.memory.starts()[0].prompt == "--help me"


def test_a_silent_stdin_is_not_waited_for_for_ever(stage: Stage) -> None:
    playing = stage.start(Scenario().say("x"), prompt=None, stdin=subprocess.PIPE)
    assert playing.wait() == 0
    assert "no stdin data received in 3s" in playing.errors


def test_a_closed_stdin_is_an_empty_prompt(stage: Stage) -> None:
    path = Scenario().say("x").write_to(stage.work / "s.json")
    command = [*COMMAND, str(path), "--state-dir", str(stage.state), "--session-id", SESSION]
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command], timeout=30, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert stage.memory.starts()[0].prompt == ""


def test_a_state_directory_that_cannot_be_written_is_an_error(stage: Stage) -> None:
    stage.state.write_text("a file", "utf-8")
    playing = stage.play(Scenario().say("x"), status=1)
    assert "error: cannot read the sessions in" in playing.errors
    assert "Traceback" not in playing.errors


def test_starting_is_cheap(stage: Stage) -> None:
    path = Scenario().say("x").write_to(stage.work / "s.json")
    script = (
        "import sys, os, runpy\n"
        "leave = os._exit\n"
        "os._exit = lambda code: (sys.stderr.write(' '.join(sys.modules)), sys.stderr.flush(), leave(code))\n"
        "before = set(sys.modules)\n"
        f"sys.argv = ['agent', {str(path)!r}, '--state-dir', {str(stage.state)!r}, 'x']\n"
        "runpy.run_module('holdfast.testing.agent', run_name='__main__')\n"
    )
    # -S: modules that site-packages load at start-up are not ours.
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    loaded = set(done.stderr.split())
    assert not loaded & {"argparse", "dataclasses", "subprocess", "typing", "uuid", "msgspec", "click"}
    ours = {name for name in loaded if name.startswith("holdfast")}
    assert {name for name in ours if not name.startswith("holdfast.testing.agent")} == {
        "holdfast",
        "holdfast.errors",
        "holdfast.ids",
        "holdfast.testing",
    }


def test_two_plays_of_a_session_differ_only_in_time(stage: Stage) -> None:
    scenario = Scenario().say("x").tool(command="echo y").usage(input_tokens=1, cost_usd=0.5).say("z")
    plays = []
    for state in ("one", "two"):
        path = scenario.write_to(stage.work / "s.json")
        options = ["--state-dir", str(stage.work / state), "--session-id", SESSION, "go"]
        done = run(str(path), *options, cwd=stage.work)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        for event in events:
            event.pop("timestamp", None)
            event.pop("duration_ms", None)
        plays.append(events)
    assert plays[0] == plays[1]
    uuids = [event["uuid"] for event in plays[0]]
    assert len(set(uuids)) == len(uuids)
