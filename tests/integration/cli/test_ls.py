"""holdfast ls: the tasks of a home, from the index, fitted to the terminal."""

from __future__ import annotations

import json
import os
import re
import shutil

import jsonschema
import pytest

from contracts import schema
from holdfast import clock
from holdfast.testing import Scenario
from holdfast.views.text import amounts
from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def ended(task_id: str, script: str = "true", *flags: str) -> Task:
    task = Task.shell(script, "--id", task_id, *flags)
    task.wait_for("completed", "failed")
    return task


def test_no_tasks_is_no_error_and_says_what_to_do() -> None:
    done = holdfast("ls")
    assert (done.returncode, done.stdout) == (0, "")
    assert "holdfast run -- COMMAND" in done.stderr


def test_without_a_home_nothing_is_made(home: str) -> None:
    os.rmdir(home)
    assert holdfast("ls").returncode == 0
    assert holdfast("ls", "--json").stdout == "[]\n"
    assert not os.path.exists(home)


@pytest.mark.req("OUT-11")
def test_it_shows_state_agent_stage_times_usage_and_the_last_line() -> None:
    scenario = (
        Scenario().usage(input_tokens=12000, output_tokens=345, cost_usd=1.5).say("nearly there").result()
    )
    task = Task.play(scenario, "--id", "agent-task")
    task.wait_for("completed")
    ended("failing", "echo oh no; exit 3")
    head, *rows = holdfast("ls").stdout.splitlines()
    assert head.split("  ")[0] == "TASK"
    assert re.split(r"\s{2,}", head) == [
        "TASK", "STATE", "AGENT", "STAGE", "ELAPSED", "TOKENS", "COST", "AGE", "LAST LINE",
    ]  # fmt: skip
    cells = {row.split()[0]: re.split(r"\s{2,}", row) for row in rows}
    assert list(cells) == ["needs", "failing", "ended", "agent-task"]
    assert cells["failing"][1:4] == ["failed", "command", "command_run"]
    assert cells["failing"][5:7] == ["-", "-"]
    assert cells["failing"][8] == "exit status 3: oh no"
    assert cells["agent-task"][1] == "completed"
    assert cells["agent-task"][6] == "$1.50"
    assert re.fullmatch(r"\d+\.\dk", cells["agent-task"][5])


def test_json_is_a_list_of_short_manifests() -> None:
    task = ended("one")
    rows = json.loads(holdfast("ls", "--json").stdout)
    jsonschema.validate(rows, {"type": "array", "items": schema.schemas()["short-manifest"]})
    assert [row["task_id"] for row in rows] == [task.id]
    assert rows[0]["schema"] == "holdfast.short-manifest/1"


def test_state_quiet_and_all_choose_and_shorten() -> None:
    ended("good")
    ended("bad", "exit 1")
    assert holdfast("ls", "-q").stdout.split() == ["bad", "good"]
    assert holdfast("ls", "-q", "--state", "failed").stdout == "bad\n"
    assert holdfast("ls", "-q", "--state=completed").stdout == "good\n"
    none = holdfast("ls", "--state", "hung")
    assert (none.returncode, none.stdout) == (0, "")
    assert "no hung tasks" in none.stderr


def test_a_typo_in_a_state_or_an_option_exits_2_with_a_suggestion() -> None:
    done = holdfast("ls", "--state", "runing")
    assert done.returncode == 2
    assert "hint: did you mean 'running'?" in done.stderr
    assert "queued, spawning" in holdfast("ls", "--state", "xyzzy").stderr
    assert "hint: only one state can be given" in holdfast("ls", "--state", "running,waiting").stderr
    wrong = holdfast("ls", "--stat", "failed")
    assert wrong.returncode == 2
    assert "--state" in wrong.stderr


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_no_line_wraps_on_a_terminal(columns: int) -> None:
    ended("20260131-a-task-with-a-long-name-k3qa", "printf 'x%.0s' $(seq 200)")
    ended("20260131-zeichen-k3qb", "printf '漢字%.0s' $(seq 60)")
    ended("20260131-control-k3qc", r"printf 'a\tb\010c\n'")
    terminal = Terminal("ls", columns=columns)
    assert terminal.finish() == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.text).splitlines()
    names = [line for line in lines if " " not in line]  # a long id has its own line
    assert len(lines) - len(names) == 4
    assert names == (["20260131-a-task-with-a-long-name-k3qa"] if columns < 120 else [])
    for line in lines:
        assert sum(2 if "\u2e80" <= char <= "\uffdc" else 1 for char in line) <= columns, line
    text = "\n".join(lines)
    assert len(re.findall(r"^\S+\s+(STATE|completed)\b", text, re.MULTILINE)) == 4


def test_a_long_id_is_never_cut_but_has_a_line_for_itself() -> None:
    long = "a-name-that-is-as-long-as-an-id-may-be-" + "x" * 25
    ended(long, "echo the last line")
    ended("b", "echo the last line")
    terminal = Terminal("ls", columns=80)
    assert terminal.finish() == 0
    head, other, name, row = re.sub(r"\x1b\[[0-9;]*m", "", terminal.text).splitlines()
    assert (name, other[0]) == (long, "b")
    assert row.split() == ["completed", "command", *row.split()[2:-3], "the", "last", "line"]
    assert row.index("completed") == other.index("completed") == head.index("STATE")
    assert long in holdfast("ls").stdout
    assert holdfast("ls", "-q").stdout == f"b\n{long}\n"
    assert json.loads(holdfast("ls", "--json").stdout)[1]["task_id"] == long


def test_colour_is_for_terminals_that_have_it() -> None:
    ended("bad", "exit 1")

    def colours(**env: str) -> bool:
        terminal = Terminal("ls", env=env)
        assert terminal.finish() == 0
        return "\x1b[31mfailed" in terminal.text

    assert colours()
    assert not colours(NO_COLOR="1")
    assert not colours(TERM="dumb")
    assert "\x1b" not in holdfast("ls").stdout


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "", "LC_CTYPE": "POSIX"},
        {"LANG": "de_DE"},
        {"LC_ALL": "", "LC_CTYPE": "", "LANG": ""},
        {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
        {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"},
    ],
)
def test_a_terminal_that_is_not_utf8_gets_what_it_can_show(env: dict[str, str]) -> None:
    ended("it", "printf 'grün 漢 → …\\n'", "--name", "größe")
    done = holdfast("ls", env=env)
    assert done.returncode == 0, done.stderr
    assert "gr\\xfcn \\u6f22 -> ..." in done.stdout
    assert json.loads(holdfast("ls", "--json", env=env).stdout)[0]["task_name"] == "größe"
    assert holdfast("show", "it", env=env).returncode == 0
    assert holdfast("logs", "it", env=env).stdout == "gr\\xfcn \\u6f22 -> ...\n"


@pytest.mark.parametrize(
    "env",
    [{"LC_ALL": "C.UTF-8"}, {"LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"}, {"LANG": "de_DE.utf8@euro"}],
)
def test_a_terminal_that_is_utf8_gets_everything(env: dict[str, str]) -> None:
    ended("it", "printf 'grün 漢 → …\\n'")
    assert "grün 漢 → …" in holdfast("ls", env=env).stdout
    assert holdfast("logs", "it", env=env).stdout == "grün 漢 → …\n"


@pytest.mark.parametrize("damage", ["remove", "corrupt", "foreign"])
def test_the_index_is_rebuilt(damage: str, home: str) -> None:
    ended("one")
    assert holdfast("ls", "-q").stdout == "one\n"
    index = os.path.join(home, "index.db")
    if damage == "remove":
        os.unlink(index)
    elif damage == "corrupt":
        for suffix in ("-wal", "-shm"):
            if os.path.exists(index + suffix):
                os.unlink(index + suffix)
        with open(index, "wb") as file:
            file.write(b"not a database" * 1000)
    else:
        import sqlite3

        connection = sqlite3.connect(index)
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
        connection.close()
    done = holdfast("ls", "-q")
    assert (done.returncode, done.stdout) == (0, "one\n"), done.stderr


def test_a_live_task_shows_what_it_says_now() -> None:
    task = Task.shell("echo first; " + kin.WAIT + "echo second", "--id", "it")
    task.wait_for_log("first")
    assert re.search(r"^it +running .* first$", holdfast("ls").stdout, re.MULTILINE)
    kin.go()
    task.wait_for("completed")
    assert re.search(r"^it +completed .* second$", holdfast("ls").stdout, re.MULTILINE)


def test_a_new_task_under_the_id_of_a_removed_one_is_the_new_one(home: str) -> None:
    Task.shell("exit 4", "--id", "again").wait_for("failed")
    assert json.loads(holdfast("ls", "--json").stdout)[0]["status"] == "failed"
    assert holdfast("rm", "again").returncode == 0
    Task.shell("true", "--id", "again").wait_for("completed")
    assert [row["status"] for row in json.loads(holdfast("ls", "--json").stdout)] == ["completed"]


# ── groups ──


def test_tasks_of_several_kinds_are_in_groups_what_needs_you_first() -> None:
    ended("over")
    work = Task.shell(kin.WAIT, "--id", "busy")
    work.agent_pid()
    asks = Task.shell(kin.WAIT, "--id", "asks")
    asks.agent_pid()
    asks.ask("interrupt", "-m", "which database?")
    assert holdfast("submit", "--id", "next", "--", "true", cwd=workspace()).returncode == 0
    lines = [line.split()[0] for line in holdfast("ls").stdout.splitlines()]
    assert lines == ["TASK", "needs", "asks", "working", "busy", "queued", "next", "ended", "over"]
    row = next(line for line in holdfast("ls").stdout.splitlines() if line.startswith("asks "))
    assert row.endswith("which database?")
    # One group needs no heading, and programs get one list, newest first.
    assert [line.split()[0] for line in holdfast("ls", "--state", "completed").stdout.splitlines()] == [
        "TASK",
        "over",
    ]
    assert holdfast("ls", "-q").stdout.split() == ["next", "asks", "busy", "over"]
    groups = {each["task_id"]: each["group"] for each in json.loads(holdfast("ls", "--json").stdout)}
    assert groups == {"asks": "needs you", "busy": "working", "next": "queued", "over": "ended"}
    holdfast("stop", "--all")


def test_the_last_words_of_an_agent_are_shown_and_not_its_result_line() -> None:
    task = Task.play(Scenario().say("I look at the tests first.").result("All tests pass now."), "--id", "it")
    task.wait_for("completed")
    assert holdfast("ls").stdout.splitlines()[-1].endswith("All tests pass now.")
    (row,) = json.loads(holdfast("ls", "--json").stdout)
    assert row["last_words"] == "All tests pass now."


def test_time_that_a_task_waits_for_a_person_does_not_count() -> None:
    task = Task.shell("sleep 1; " + kin.WAIT, "--id", "it")
    task.agent_pid()
    task.ask("interrupt", "-m", "well?")
    since = clock.parse_iso(task.manifest()["interrupt"]["timestamp"])
    eventually(lambda: clock.now() - since > 3.0, what="a person thinks")
    (row,) = json.loads(holdfast("ls", "--json").stdout)
    before_s = since - clock.parse_iso(row["started_at"])
    assert row["elapsed_s"] == pytest.approx(before_s, abs=0.5)
    task.ask("resume", "-m", "yes")
    task.agent_pid()
    assert task.manifest()["asked_s"] >= 3.0
    task.stop()
    (row,) = json.loads(holdfast("ls", "--json").stdout)
    whole_s = clock.parse_iso(row["finished_at"]) - clock.parse_iso(row["started_at"])
    assert row["elapsed_s"] <= whole_s - 2.9


def test_time_that_a_task_waits_for_a_limit_does_not_count_and_show_names_it() -> None:
    limited = Scenario().rate_limit(resets_in_s=2.0).resumed(Scenario().say("done").result("ok"))
    task = Task.play(limited, "--id", "it")
    task.wait_for("waiting")
    (row,) = json.loads(holdfast("ls", "--json").stdout)
    eventually(lambda: clock.now() > clock.parse_iso(row["wake_at"]) - 0.5, what="it waits")
    task.wait_for("completed", within_s=30)
    waited_s = task.manifest()["waited_s"]
    assert waited_s > 1.0
    (row,) = json.loads(holdfast("ls", "--json").stdout)
    whole_s = clock.parse_iso(row["finished_at"]) - clock.parse_iso(row["started_at"])
    assert row["elapsed_s"] == pytest.approx(whole_s - waited_s, abs=0.1)
    took = f"(took {clock.duration_text(row['elapsed_s'])}, waited {clock.duration_text(waited_s)})"
    assert took in holdfast("show", "it").stdout


def test_the_time_of_a_retried_task_is_that_of_its_last_run() -> None:
    marker = os.path.join(workspace(), "fixed")
    task = Task.shell(f"test -e {marker}", "--id", "it", "--max-retries", "0")
    task.wait_for("failed")
    first = task.manifest()
    ended = clock.parse_iso(first["finished_at"])
    eventually(lambda: clock.now() - ended > 3.0, what="a person looks at it")
    with open(marker, "w", encoding="utf-8"):
        pass
    task.ask("retry")
    task.wait_for("completed")
    (row,) = json.loads(holdfast("ls", "--json").stdout)
    second = clock.parse_iso(row["run_started_at"])
    assert second - ended > 2.9
    whole_s = clock.parse_iso(row["finished_at"]) - second
    assert row["elapsed_s"] == pytest.approx(whole_s, abs=0.01)
    shown = dict(re.findall(r"(?m)^(created|started) +(.*?)(?: \(|$)", holdfast("show", "it").stdout))
    assert shown["created"] == amounts.second(first["started_at"])
    assert shown["started"] == amounts.second(row["run_started_at"])


def held_queue() -> None:
    """A queue in which `first` starts before `second` and `third`, and `held` does not start by itself; it
    is paused."""
    ended("bad", "exit 1")
    assert holdfast("queue", "pause").returncode == 0
    submit = ("submit", "--id")
    for argv in (
        (*submit, "second", "--", "true"),
        (*submit, "third", "--not-before", "+9h", "--", "true"),
        (*submit, "first", "--priority", "high", "--", "true"),
        (*submit, "held", "--after", "bad", "--", "true"),
    ):
        done = holdfast(*argv)
        assert done.returncode == 0, done.stderr


def test_queued_tasks_are_in_the_order_in_which_they_start_with_what_holds_them_up() -> None:
    held_queue()
    eventually(lambda: "needs you (2)" in holdfast("ls").stdout)
    done = holdfast("ls")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        "needs", "held", "bad", "queued", "first", "second", "third",
    ]  # fmt: skip
    assert lines[2].split()[1] == "held"
    assert lines[2].endswith("bad failed; 'holdfast retry bad' to try bad again")
    assert lines[5].endswith("  paused")
    assert "not before " in lines[7]
    assert done.stderr == "the queue is paused; 'holdfast queue resume' continues\n"
    rows = json.loads(holdfast("ls", "--json").stdout)
    jsonschema.validate(rows, {"type": "array", "items": schema.schemas()["short-manifest"]})
    places = {row["task_id"]: row.get("queue") for row in rows}
    assert places["first"] == {"position": 1, "state": "queued", "waits": "paused"}
    assert places["held"] == {"position": 4, "state": "held", "waits": "bad failed", "held_by": "bad"}
    assert places["bad"] is None
    assert holdfast("ls", "-q", "--state", "queued").stdout.split() == ["first", "second", "third"]
    assert holdfast("ls", "-q", "--state", "held").stdout.split() == ["held"]


def test_why_an_agent_failed_comes_before_what_it_said() -> None:
    scenario = Scenario().say("looking around").result(subtype="error_during_execution", errors=["no disk"])
    Task.play(scenario, "--max-retries", "0", "--id", "failing").wait_for("failed")
    _, heading, row = holdfast("ls").stdout.splitlines()
    assert heading == "needs you (1)"  # also if there is no other group
    assert row.endswith("  no disk")


def test_watch_shows_a_pause_of_the_queue() -> None:
    assert holdfast("submit", "--id", "later", "--not-before", "+9h", "--", "true").returncode == 0
    terminal = Terminal("ls", "--watch")
    terminal.read_until("later")
    assert holdfast("queue", "pause").returncode == 0
    terminal.read_until("the queue is paused")
    terminal.press("\x03")
    assert terminal.finish() == 130


def test_watch_shows_the_list_again_until_ctrl_c() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    terminal = Terminal("ls", "--watch")
    terminal.read_until("running")
    task.stop()
    terminal.read_until("killed")
    terminal.press("\x03")
    assert terminal.finish() == 130


def test_watch_shows_a_change_at_once_although_nothing_worked() -> None:
    Task.shell("true", "--id", "first").wait_for("completed")
    terminal = Terminal("ls", "--watch")
    terminal.read_until("first")
    began_mono = clock.mono()
    Task.shell("true", "--id", "second").wait_for("completed")
    terminal.read_until("second")
    # Without changes, it waits for half a minute.
    assert clock.mono() - began_mono < 20
    terminal.press("\x03")
    assert terminal.finish() == 130


def test_a_cost_that_is_known_in_part_takes_little_room() -> None:
    scenario = Scenario().crash("KILL", once=True).usage(cost_usd=0.02).result("done")
    Task.play(scenario, "--id", "it", "--base-interval", "0.1s").wait_for("completed")
    assert "  ≥$0.02  " in holdfast("ls").stdout


def test_the_last_to_end_is_first_and_not_left_out(home: str) -> None:
    """Not the last one created: a task that waited all night ends after younger ones."""
    waits = Task.shell("until test -e go; do sleep 0.05; done", "--id", "waits")
    quick = Task.shell("true", "--id", "quick")
    quick.wait_for("completed")
    for number in range(22):
        no_bell = shutil.ignore_patterns("bell")
        shutil.copytree(quick.packet, os.path.join(home, "tasks", f"copy-{number}"), ignore=no_bell)
    with open(os.path.join(workspace(), "go"), "w", encoding="utf-8"):
        pass
    waits.wait_for("completed")
    assert holdfast("ls", "-q").stdout.split()[0] == "waits"
    assert holdfast("ls", "--all", "-q").stdout.split()[0] == "waits"


def test_json_has_every_task_and_the_table_says_that_it_has_not(home: str) -> None:
    task = Task.shell("true", "--id", "it")
    task.wait_for("completed")
    for number in range(22):
        # Its runner removes the bell before it leaves.
        no_bell = shutil.ignore_patterns("bell")
        shutil.copytree(task.packet, os.path.join(home, "tasks", f"copy-{number}"), ignore=no_bell)
    done = holdfast("ls", "--json")
    assert len(json.loads(done.stdout)) == 23
    assert done.stderr == ""
    assert "3 tasks that ended earlier are not shown; --all shows everything" in holdfast("ls").stderr
