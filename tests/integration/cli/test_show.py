"""holdfast show: one task, as text and as JSON."""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone

import jsonschema
import pytest

from contracts import schema
from holdfast import clock
from holdfast.testing import Scenario
from tests.support import kin
from tests.support.packets import Written
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def fields(text: str) -> dict[str, list[str]]:
    """The lines of each section."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        name = line[:10].strip() or name
        found.setdefault(name, []).append(line[10:].strip())
    return found


def test_a_running_task_shows_process_progress_and_how_to_follow_it() -> None:
    task = Task.shell("echo hello; " + kin.WAIT, "--id", "it", "--name", "the work")
    task.wait_for_log("hello")
    agent = task.agent_pid()
    shown = fields(holdfast("show", "it").stdout)
    assert shown["task"] == ["it"]
    assert shown["name"] == ["the work"]
    assert shown["state"][0].startswith("running")
    assert shown["agent"] == ["command"]
    assert shown["stages"] == ["command_run  active"]
    assert shown["process"] == [str(agent)]
    assert shown["output"] == ["hello"]
    assert shown["attempts"] == ["1, no retries", "1  001-command_run  running"]
    assert shown["files"] == [task.packet]
    assert shown["next"][0].startswith("holdfast logs -f it")
    kin.go()
    task.wait_for("completed")


def test_progress_is_when_it_printed_last() -> None:
    task = Task.shell("echo hello; " + kin.WAIT, "--id", "it")
    task.wait_for_log("hello")
    (log,) = glob.glob(os.path.join(task.packet, "attempts", "*", "stdout.log"))
    os.utime(log, (time.time() + 3600, time.time() + 3600))
    day, hour = fields(holdfast("show", "it", env={"TZ": "UTC0"}).stdout)["progress"][0].split()[:2]
    assert clock.parse_iso(f"{day}T{hour}Z") > time.time() + 3000
    kin.go()
    task.wait_for("completed")


def test_a_long_word_of_the_output_goes_on_in_its_column() -> None:
    done = holdfast(
        "run", "--id", "it", "--", "sh", "-c", "printf '%0300d\\n' 1; exit 1", env={"COLUMNS": "80"}
    )
    quoted = [line for line in done.stderr.splitlines() if line.startswith("|")]
    assert [len(line) for line in quoted] == [80, 80, 80, 68]
    shown = holdfast("show", "it", env={"COLUMNS": "80"}).stdout
    assert "".join(fields(shown)["output"]) == "0" * 299 + "1"


def test_an_ended_task_shows_why_and_what_to_do() -> None:
    task = Task.shell("echo broken; exit 7", "--id", "it")
    task.wait_for("failed")
    shown = fields(holdfast("show", "it").stdout)
    assert shown["state"] == ["failed: exit status 7"]
    assert shown["exit"] == ["code 7"]
    assert re.fullmatch(r"1  001-command_run  failed after \d+\.\ds: exit status 7", shown["attempts"][1])
    assert re.search(r"\(took \d+\.\ds\)", shown["ended"][0])
    assert "holdfast retry it" in shown["next"][1]
    assert shown["usage"] == ["no paid calls, 0 messages, 0 tool calls"]


def test_an_interrupted_task_shows_the_question_and_how_to_answer() -> None:
    task = Task.shell('echo "which database?" > "$INTERRUPT_FILE"; sleep 60', "--id", "it")
    task.wait_for("interrupted")
    shown = fields(holdfast("show", "it").stdout)
    assert shown["question"] == ["which database?"]
    assert shown["next"][0].startswith("holdfast resume it -m 'ANSWER'")
    task.stop()


def test_who_interrupts_a_task_without_a_message_asks_nothing() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    assert task.ask("interrupt").returncode == 0
    task.wait_for("interrupted")
    shown = fields(holdfast("show", "it").stdout)
    assert "question" not in shown
    assert shown["state"][0].startswith("interrupted: by ")
    assert shown["next"][0].split("   ")[0] == "holdfast resume it"
    task.stop()


def test_attempts_of_several_runs_are_counted_and_retries_are_those_of_the_last() -> None:
    flags = ("--max-retries", "1", "--base-interval", "0.1s")
    task = Task.shell("kill -9 $$", "--id", "it", *flags)
    task.wait_for("abandoned")
    assert fields(holdfast("show", "it").stdout)["attempts"][0] == "2, 1 retry"
    assert holdfast("retry", "it").returncode == 0
    eventually(lambda: task.manifest()["attempt"] == 4 and task.status() == "abandoned")
    assert (
        fields(holdfast("show", "it").stdout)["attempts"][0]
        == "4 in 2 runs, 1 automatic retry in the last one"
    )


def test_a_stage_that_was_stopped_has_not_failed() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    task.stop()
    assert fields(holdfast("show", "it").stdout)["stages"] == ["command_run  stopped"]


def test_a_waiting_task_shows_when_it_wakes() -> None:
    task = Task.shell("kill -9 $$", "--id", "it", "--base-interval", "60s")
    task.wait_for("waiting")
    shown = fields(holdfast("show", "it").stdout)
    assert re.search(r"\(in \S+\)", shown["wakes"][0])
    assert re.search(r"after (4h59m|5h00m) more of active time", shown["deadline"][0])
    assert shown["attempts"][0] == "2, 1 retry"
    assert shown["next"][0].startswith("holdfast resume it")
    task.stop()


def test_people_read_local_time_and_programs_utc() -> None:
    zone = {"TZ": "HFT-5:30"}
    task = Task.shell("kill -9 $$", "--id", "it", "--base-interval", "60s")
    task.wait_for("waiting")
    manifest = json.loads(holdfast("show", "it", "--json", env=zone).stdout)
    shown = fields(holdfast("show", "it", env=zone).stdout)
    for name, field in (("started", "started_at"), ("wakes", "wake_at")):
        at = datetime.fromisoformat(manifest[field]).astimezone(timezone(timedelta(hours=5, minutes=30)))
        assert shown[name][0].startswith(at.strftime("%Y-%m-%d %H:%M:%S HFT"))
    wakes = datetime.fromisoformat(manifest["wake_at"]).astimezone(timezone(timedelta(hours=5, minutes=30)))
    report = holdfast("report", env=zone).stdout
    # It is retried without a person.
    why = "backoff after crashed: killed by signal 9"
    assert re.search(rf"it  waiting, command, \S+, wakes {wakes.strftime('%H:%M')}, {why}", report), report
    facts = json.loads(holdfast("report", "--json", env=zone).stdout)
    assert (facts["needs"], facts["active"][0]["wake_at"]) == ([], manifest["wake_at"])
    task.stop()
    ended = json.loads(holdfast("show", "it", "--json").stdout)["finished_at"]
    hour = datetime.fromisoformat(ended).astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert f"- {hour.strftime('%H:%M')}  it  killed" in holdfast("report", env=zone).stdout


def test_json_is_the_manifest() -> None:
    task = Task.shell("true")
    task.wait_for("completed")
    done = holdfast("show", task.id, "--json")
    manifest = json.loads(done.stdout)
    assert manifest == {**task.manifest(), "runner_gone": False}
    jsonschema.validate(manifest, schema.schemas()["manifest"])


def test_what_a_task_prints_cannot_move_the_cursor() -> None:
    task = Task.shell("echo hi", "--id", "it", "--name", "a\x1b[2Jb")
    task.wait_for("completed")
    assert "\x1b" not in holdfast("show", "it").stdout


def test_a_prefix_must_name_one_task() -> None:
    Task.shell("true", "--id", "alpha-1").wait_for("completed")
    Task.shell("true", "--id", "alpha-2").wait_for("completed")
    assert holdfast("show", "alpha-1").returncode == 0
    unknown = holdfast("show", "beta")
    assert (unknown.returncode, "no task 'beta'" in unknown.stderr) == (3, True)
    unclear = holdfast("show", "alpha")
    assert (unclear.returncode, "is ambiguous: alpha-1, alpha-2" in unclear.stderr) == (3, True)
    bad = holdfast("show", "../etc")
    assert (bad.returncode, "not a task id" in bad.stderr) == (2, True)
    assert holdfast("show").returncode == 2


def test_what_outlived_a_successful_agent_is_told_by_run_and_show() -> None:
    script = (
        "mkfifo go; cat go >/dev/null 2>&1 & echo $! > left; until grep -q ^cat /proc/$!/cmdline; do :; done"
    )
    done = holdfast("run", "--id", "it", "--linger", "0", "--", "sh", "-c", script, cwd=workspace())
    with open(os.path.join(workspace(), "left"), encoding="ascii") as file:
        pid = file.read().strip()
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^still running: {pid} cat go$", done.stderr, re.MULTILINE), done.stderr
    (shown,) = fields(holdfast("show", "it").stdout)["left over"]
    assert shown.startswith(f"{pid} cat go")
    assert not shown.endswith("(gone)")
    steps = fields(holdfast("show", "it").stdout)["next"]
    assert [f"kill {pid}", "kill what it left running"] in [re.split(" {3,}", step) for step in steps]
    assert len({step.rindex("   ") for step in steps}) == 1, "what the commands do is a column"
    with open(os.path.join(workspace(), "go"), "w", encoding="ascii"):
        pass
    eventually(
        lambda: fields(holdfast("show", "it").stdout)["left over"][0].endswith("(gone)"), what="it is gone"
    )


def test_nothing_is_said_where_nothing_was_left_over() -> None:
    done = holdfast("run", "--id", "it", "--", "true", cwd=workspace())
    assert "still running" not in done.stderr
    assert "left over" not in fields(holdfast("show", "it").stdout)


def test_the_count_of_attempts_says_what_it_counts() -> None:
    Written({"scripted_impl": None}).run()
    shown = fields(holdfast("show", "it").stdout)
    assert shown["attempts"][0] == "1 plus 2 holdfast steps, no retries"
    assert [line.split()[:2] for line in shown["attempts"][1:]] == [
        ["-", "001-scripted_impl.prepare"],
        ["1", "002-scripted_impl"],
        ["-", "003-scripted_impl.gate"],
    ]


def test_a_task_that_waits_for_its_workspace_says_so_and_for_whom() -> None:
    first = Written({"scripted_impl": Scenario().hang()}, task_id="first")
    one = first.start()
    one.wait_for("running")
    second = Written({"scripted_impl": None}, task_id="second", project=first.project)
    argv = [sys.executable, "-m", "holdfast", "run", "--packet", second.path]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        lines = iter(running.stderr.readline, "")
        reason = "waits for the workspace (first is writing)"
        assert next((line for line in lines if reason in line), "") == f"second: {reason}\n"
        shown = fields(holdfast("show", "second").stdout)
        assert shown["waits"] == ["for the workspace (first is writing)"]
        assert f"[{reason}]" in holdfast("ls").stdout
        one.stop()
        rest = running.communicate(timeout=40)[1]
    assert running.returncode == 0, rest
    assert "waits" not in fields(holdfast("show", "second").stdout)


def test_a_long_answer_stays_below_its_question() -> None:
    task = Task.shell('[ -e once ] || { touch once; echo why? > "$INTERRUPT_FILE"; sleep 60; }', "--id", "it")
    task.wait_for("interrupted")
    assert holdfast("resume", "it", "-m", "because " * 20).returncode == 0
    task.wait_for("completed")
    terminal = Terminal("show", "it")
    assert terminal.finish() == 0
    rows = [line.rstrip() for line in terminal.text.splitlines()]
    first = rows.index("answered  why?")
    assert [row[:19] for row in rows[first + 1 : first + 3]] == ["            because"] * 2


def test_a_question_without_an_answer_shows_who_went_on() -> None:
    task = Task.shell('[ -e once ] || { touch once; echo why? > "$INTERRUPT_FILE"; sleep 60; }', "--id", "it")
    task.wait_for("interrupted")
    assert holdfast("resume", "it").returncode == 0
    task.wait_for("completed")
    rows = [line.rstrip() for line in holdfast("show", "it").stdout.splitlines()]
    assert rows[rows.index("resumed   why?") + 1].startswith("            resumed by ")
