"""holdfast logs: whole, last lines, raw, and followed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.testing import Scenario
from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


class Follower:
    """`holdfast logs -f …`, with its output in a file."""

    def __init__(self, *args: str) -> None:
        self.path = os.path.join(workspace(), "followed")
        with open(self.path, "wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "holdfast", "logs", "-f", *args], stdout=out, stderr=subprocess.PIPE
            )

    def text(self) -> str:
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def finish(self) -> str:
        _, stderr = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, stderr
        return stderr.decode()


@pytest.mark.req("OUT-11")
def test_the_readable_log_whole_and_its_last_lines() -> None:
    task = Task.shell("seq 10; printf '\\033[31mred\\033[0m\\n'; printf unended")
    task.wait_for("completed")
    lines = [*map(str, range(1, 11)), "red", "unended"]
    assert holdfast("logs", task.id).stdout.splitlines() == lines
    assert holdfast("logs", task.id, "-n", "3").stdout.splitlines() == lines[-3:]
    assert holdfast("logs", task.id, "-n3").stdout.splitlines() == lines[-3:]
    assert holdfast("logs", task.id, "--lines=0").stdout == ""
    assert holdfast("logs", task.id, "-n", "100").stdout.splitlines() == lines


def test_raw_is_every_byte_of_an_attempt_and_stderr_its_own_stream() -> None:
    task = Task.shell(
        "printf '\\033[31mout\\033[0m %s\\n' $HOLDFAST_RESUME_COUNT; echo err >&2; "
        "test $HOLDFAST_RESUME_COUNT = 1 || kill -9 $$",
        "--base-interval", "0.05s",
    )  # fmt: skip
    task.wait_for("completed")
    assert holdfast("logs", task.id, "--raw").stdout == "\x1b[31mout\x1b[0m 1\n"
    assert holdfast("logs", task.id, "--raw", "--attempt", "1").stdout == "\x1b[31mout\x1b[0m 0\n"
    assert holdfast("logs", task.id, "--attempt=2").stdout == "\x1b[31mout\x1b[0m 1\n"
    assert holdfast("logs", task.id, "--stderr").stdout == "err\n"
    assert holdfast("logs", task.id, "--stderr", "--attempt", "1").stdout == "err\n"


NASTY = "a\\000b\\033[31mred\\033[0m\\033[2J\\033]0;title\\007\\033c\\302\\233x\\ty\\r\\n"


def test_on_a_terminal_nothing_but_text_and_colours_gets_through() -> None:
    task = Task.shell(f"printf '{NASTY}'")
    task.wait_for("completed")
    # As an older holdfast or an editor may have left it.
    with open(task.path("output.log"), "ab") as file:
        file.write(b"old\x00\x1b[2Jer\n")
    shown = "a^@b\x1b[31mred\x1b[0m^[[2J^[]0;title^G^[c\\x9bx\ty\r\n"
    for env, raw in (({}, shown), ({"NO_COLOR": "1"}, shown.replace("\x1b[31m", "").replace("\x1b[0m", ""))):
        terminal = Terminal("logs", task.id, "--raw", env=env)
        assert terminal.finish() == 0
        assert terminal.text == (raw + "\x1b[0m" if not env else raw)
        terminal = Terminal("logs", task.id, env=env)
        assert terminal.finish() == 0
        assert terminal.text == "abredx\ty\r\nold^@^[[2Jer\r\n"
    # A file gets every byte.
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "logs", task.id, "--raw"],
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.stdout == task.read("attempts", "001-command_run", "stdout.log")


def test_on_a_terminal_a_line_says_where_the_next_attempt_begins() -> None:
    script = "echo start $HOLDFAST_RESUME_COUNT; " + kin.WAIT.replace("go", "go$HOLDFAST_RESUME_COUNT")
    task = Task.shell(script + "test $HOLDFAST_RESUME_COUNT = 1 || kill -9 $$", "--base-interval", "0.05s")
    terminal = Terminal("logs", "-f", "--raw", task.id)
    terminal.read_until("start 0")
    kin.go("go0")
    terminal.read_until("start 1")
    kin.go("go1")
    assert terminal.finish() == 0
    assert terminal.text == "start 0\r\n--- attempt 2 ---\r\nstart 1\r\n"
    terminal = Terminal("logs", task.id)
    assert terminal.finish() == 0
    ended = "--- attempt 1 ended: crashed: killed by signal 9 ---"
    assert terminal.text == f"start 0\r\n{ended}\r\n--- attempt 2 (again) ---\r\nstart 1\r\n"


@pytest.mark.req("OUT-11")
def test_following_goes_on_across_attempts_until_the_end() -> None:
    script = "echo start $HOLDFAST_RESUME_COUNT; " + kin.WAIT.replace("go", "go$HOLDFAST_RESUME_COUNT")
    task = Task.shell(
        script + "test $HOLDFAST_RESUME_COUNT = 1 || kill -9 $$; echo end", "--base-interval", "0.05s"
    )
    follower, raw = Follower(task.id), None
    eventually(lambda: "start 0" in follower.text())
    kin.go("go0")
    eventually(lambda: "start 1" in follower.text())
    assert follower.process.poll() is None
    kin.go("go1")
    follower.finish()
    assert follower.text() == task.log()
    assert follower.text().endswith("end\n")
    raw = Follower(task.id, "--raw")
    raw.finish()
    assert raw.text() == "start 1\nend\n"


def test_following_raw_output_takes_in_every_attempt_that_it_sees() -> None:
    script = "echo start $HOLDFAST_RESUME_COUNT; " + kin.WAIT.replace("go", "go$HOLDFAST_RESUME_COUNT")
    task = Task.shell(
        script + "test $HOLDFAST_RESUME_COUNT = 1 || kill -9 $$; echo end", "--base-interval", "0.05s"
    )
    follower = Follower(task.id, "--raw")
    eventually(lambda: "start 0" in follower.text())
    only_first = Follower  # a second follower, of the first attempt alone
    kin.go("go0")
    eventually(lambda: "start 1" in follower.text())
    kin.go("go1")
    follower.finish()
    assert follower.text() == "start 0\nstart 1\nend\n"
    first = only_first(task.id, "--attempt", "1")
    first.finish()
    assert first.text() == "start 0\n"


def test_following_says_that_a_person_is_needed_and_stays() -> None:
    task = Task.shell("echo begun; " + kin.WAIT + "echo over", "--id", "it")
    follower = Follower("it", "-n", "1")
    eventually(lambda: "begun" in follower.text())
    task.ask("interrupt", "-m", "what now?")
    task.wait_for("interrupted")
    task.ask("resume")
    task.wait_for_event("attempt.started", 2)
    kin.go()
    stderr = follower.finish()
    assert "over" in follower.text()
    assert stderr == "" or "it was interrupted: what now?" in stderr


def test_a_result_is_shown_if_the_agent_did_not_say_it_before() -> None:
    said, new = (
        Task.play(Scenario().say("looking around").result(text))
        for text in ("looking around", "The answer is 42\nand no other")
    )
    errors = ["the disk of the model is full", "so is the other"]
    wrong = Scenario().say("looking around").result(subtype="error_during_execution", errors=errors)
    failed = Task.play(wrong, "--max-retries", "0")
    for task, end in ((said, "completed"), (new, "completed"), (failed, "failed")):
        task.wait_for(end)
    assert said.log().splitlines()[1:] == ["looking around", "[result: ok success]"]
    assert new.log().splitlines()[2:4] == ["The answer is 42", "and no other"]
    assert new.manifest()["last_words"] == "The answer is 42 and no other"
    assert failed.log().splitlines()[-1] == f"[result: error error_during_execution] {'; '.join(errors)}"
    assert failed.manifest()["status_reason"] == "; ".join(errors)


def test_a_task_without_output_prints_nothing() -> None:
    task = kin.make("--", "true")
    for args in ([], ["--raw"], ["--stderr"], ["-n", "5"]):
        done = holdfast("logs", task.id, *args)
        assert (done.returncode, done.stdout) == (0, "")


def test_a_mistake_says_what_is_wrong() -> None:
    task = kin.make("--", "true")
    for args, status, words in (
        (["--attempt", "3"], 3, "has no attempt 3"),
        (["--attempt", "x"], 2, "--attempt: not a whole number: 'x'"),
        (["-n", "-1"], 2, "not a whole number"),
        (["--raw", "--stderr"], 2, "give one of them"),
        (["--rew"], 2, "--raw"),
    ):
        done = holdfast("logs", task.id, *args)
        assert (done.returncode, words in done.stderr) == (status, True), done.stderr
    assert holdfast("logs", "nobody").returncode == 3


def test_a_reader_that_leaves_is_no_error() -> None:
    task = Task.shell("seq 100000")
    task.wait_for("completed")
    script = f"{sys.executable} -m holdfast logs {task.id} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("1\n0\n", "")


def test_the_log_of_a_task_that_did_not_complete_ends_with_the_reason() -> None:
    scenario = Scenario().say("working").crash(exit=3)
    task = Task.play(scenario, "--id", "it", "--max-retries", "1", "--base-interval", "0.05s")
    task.wait_for("abandoned")
    done = holdfast("logs", "it")
    assert "--- attempt 1 ended: crashed: exit status 3 without a result ---" in done.stdout.splitlines()
    assert done.stderr.startswith("it abandoned: its one retry is used up; the last failure: crashed: exit ")
    done = holdfast("logs", "it", "--raw")
    assert done.stderr == ""
