"""Closed, full or abandoned streams: the work is done, and errors go where they can be read."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest

from tests.support import kin
from tests.support.tasks import Task, workspace
from tests.support.terminal import Terminal

CLOSED = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run `holdfast LINE` with shell redirections."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{shlex.quote(sys.executable)} -m holdfast {line}"],
        cwd=workspace(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("streams", CLOSED)
@pytest.mark.parametrize("verb", ["ls", "--help", "status", "queue ls"])
def test_a_closed_stream_is_no_error(verb: str, streams: str) -> None:
    Task.shell("true").wait_for("completed")
    done = shell(f"{verb} {streams}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("streams", CLOSED)
def test_a_task_without_streams_runs_and_tells_how_it_ended(home: str, streams: str) -> None:
    done = shell(f"run --id it -- sh -c 'exit 0' {streams}")
    assert done.returncode == 0, done.stderr
    assert Task(os.path.join(home, "tasks", "it")).status() == "completed"


def test_talk_does_not_come_out_of_stdout_where_stderr_is_closed() -> None:
    assert shell("run --id it -- true 2>&-").stdout == "it\n"


def test_a_task_whose_id_cannot_be_printed_is_named_and_followed(home: str) -> None:
    done = shell("run --id it -- true > /dev/full")
    assert done.returncode == 0, done.stderr
    assert "warning: stdout did not take 'it': No space left on device" in done.stderr
    assert Task(os.path.join(home, "tasks", "it")).status() == "completed"
    assert shell("run --id that --max-retries 0 -- false > /dev/full").returncode == 1


@pytest.mark.parametrize("verb", ["run -d", "submit", "run -d --json", "run --json"])
def test_a_task_that_was_made_was_made(home: str, verb: str) -> None:
    done = shell(f"{verb} --id it -- true > /dev/full")
    assert done.returncode == 0, done.stderr
    assert "it" in json.dumps(os.listdir(os.path.join(home, "tasks")))
    assert "No space left on device" in done.stderr


def test_a_reader_that_left_does_not_end_the_following(home: str) -> None:
    done = shell("run --id it --max-retries 0 -- false | true")
    assert done.returncode == 1, done.stderr
    assert "it failed" in done.stderr


def test_messages_that_cannot_be_printed_are_no_error(home: str) -> None:
    assert shell("run --id it -- true 2> /dev/full").returncode == 0


def test_output_that_is_all_the_work_is_an_error_with_a_hint() -> None:
    done = shell("help > /dev/full")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("hint: ")


@pytest.mark.parametrize("line", ["--help", "run --help", "help"])
def test_help_for_a_reader_that_left(line: str) -> None:
    # A pipe without a reader from the start.
    done = shell(f"{line} | true")
    assert (done.returncode, done.stderr) == (0, "")


# ── a terminal that goes away ──

TICKS = "i=0; while [ ! -e go ] && [ $i -lt 1200 ]; do echo tick; sleep 0.05; i=$((i+1)); done"


@pytest.mark.parametrize("verb", [["logs", "-f"], ["attach", "--no-tmux"], ["events", "-f"]], ids=" ".join)
@pytest.mark.parametrize("ignores_hangup", [False, True])
def test_a_watcher_whose_terminal_goes_away_leaves_or_goes_on_quietly(
    verb: list[str], ignores_hangup: bool
) -> None:
    task = Task.shell(TICKS)
    task.wait_for_log("tick")
    terminal = Terminal(*verb, task.id, ignores_hangup=ignores_hangup)
    terminal.read_until("t")
    terminal.hang_up(kin.go)
    assert terminal.status == (0 if ignores_hangup else -signal.SIGHUP)
    task.wait_for("completed")


def test_a_run_that_is_followed_goes_on_without_its_terminal_where_it_was_told_to() -> None:
    terminal = Terminal(
        "run", "--id", "it", "--", "sh", "-c", f"{TICKS}; exit 3", cwd=workspace(), ignores_hangup=True
    )
    terminal.read_until("tick")
    terminal.hang_up(kin.go)
    assert terminal.status == 1  # that of the task, not of the terminal


def test_a_wait_ends_with_the_status_of_its_tasks_although_its_terminal_is_gone() -> None:
    Task.shell("true", "--id", "first").wait_for("completed")
    task = Task.shell(f"{TICKS}; exit 3", "--id", "second")
    terminal = Terminal("wait", "first", "second", ignores_hangup=True)
    terminal.read_until("first completed")
    terminal.hang_up(kin.go)
    assert terminal.status == 1
    task.wait_for("failed")
