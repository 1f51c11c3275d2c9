"""holdfast run: follows the task, with data on stdout and messages on stderr; Ctrl-C detaches."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import jsonschema
import pytest

from contracts import schema
from holdfast.testing import Scenario
from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def run(*args: str, **given) -> subprocess.CompletedProcess[str]:
    return holdfast("run", *args, cwd=workspace(), **given)


def packet_of(done: subprocess.CompletedProcess[str]) -> Task:
    return Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", done.stdout.strip()))


# ── without a terminal ──


@pytest.mark.req("CON-1", "OUT-11")
def test_stdout_is_the_id_and_stderr_tells_states_and_where_the_files_are() -> None:
    # Long enough to be seen running.
    done = run("--", "sh", "-c", "echo from the agent; echo too >&2; sleep 1")
    task = packet_of(done)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert f"{task.id}: running (command_run)" in lines
    assert lines[-1] == f"files: {task.packet}"
    assert re.fullmatch(rf"{task.id} completed, exit code 0, \d+\.\ds, 1 attempt: success", lines[-2])
    assert "from the agent" not in done.stderr + done.stdout


@pytest.mark.req("CON-1")
def test_a_failure_shows_the_last_forty_lines_and_what_to_do() -> None:
    done = run("--", "sh", "-c", "seq -f 'line %g' 100; exit 3")
    task = packet_of(done)
    assert done.returncode == 1
    shown = [line for line in done.stderr.splitlines() if line.startswith("| ")]
    assert shown == [f"| line {number}" for number in range(61, 101)]
    assert f"{task.id} failed, exit code 3" in done.stderr
    assert f"holdfast retry {task.id}" in done.stderr


@pytest.mark.req("CON-1")
def test_progress_shows_at_the_interval_that_is_set() -> None:
    done = run("--", "sh", "-c", "echo secret words; sleep 1", env={"AGENT_CLI_PROGRESS_INTERVAL_SEC": "0.2"})
    progress = re.findall(r": running for \d\.\ds, \d+ bytes of output$", done.stderr, re.MULTILINE)
    assert 2 <= len(progress) <= 6, done.stderr
    assert "secret words" not in done.stderr
    none = run("--", "sleep", "0.5", env={"AGENT_CLI_PROGRESS_INTERVAL_SEC": "0"})
    assert "running for" not in none.stderr


def test_a_bad_interval_is_told_before_anything_is_made(home: str) -> None:
    done = run("--", "true", env={"AGENT_CLI_PROGRESS_INTERVAL_SEC": "often"})
    assert done.returncode == 2
    assert "AGENT_CLI_PROGRESS_INTERVAL_SEC: not a duration: 'often'" in done.stderr
    assert os.listdir(os.path.join(home, "tasks")) == []


def test_json_is_the_final_manifest_and_nothing_else() -> None:
    done = run("--json", "--", "sh", "-c", "exit 4")
    manifest = json.loads(done.stdout)
    jsonschema.validate(manifest, schema.schemas()["manifest"])
    assert (done.returncode, manifest["status"], manifest["exit_code"]) == (1, "failed", 4)


def test_json_with_detach_is_the_new_manifest() -> None:
    done = run("-d", "--json", "--", "true")
    manifest = json.loads(done.stdout)
    jsonschema.validate(manifest, schema.schemas()["manifest"])
    Task(manifest["tmpdir"]).wait_for("completed")


def test_an_agent_is_followed_like_a_command(home: str) -> None:
    path = Scenario().say("all is well").write_to(os.path.join(os.path.dirname(home), "s.json"))
    done = run("--agent", "scripted", "-o", f"scenario={path}", "do it")
    assert done.returncode == 0, done.stderr
    assert " completed, exit code 0" in done.stderr
    assert "all is well" not in done.stderr


def test_a_task_goes_on_with_a_session_that_there_is() -> None:
    first = Task.play(Scenario().say("one").result("ok"), prompt="begin")
    session_id = first.wait_for("completed")["session_id"]
    second = Task.play(Scenario().say("two").result("ok"), "--session", session_id, prompt="and then")
    assert second.wait_for("completed")["session_id"] == session_id
    starts = second.memory().starts()
    assert [(start.is_resume, start.prompt) for start in starts] == [(False, "begin"), (True, "and then")]
    (opened,) = second.events("attempt.opened")
    assert (opened["mode"], opened["session_id"]) == ("resume", session_id)


@pytest.mark.parametrize("session", ["", "-c", "a b", "a\x1bb"])
def test_what_is_no_session_is_told_before_anything_is_made(session: str, home: str) -> None:
    done = run("--agent", "scripted", "-o", f"scenario={__file__}", f"--session={session}", "go on")
    assert done.returncode == 2
    assert "not a session id" in done.stderr
    assert os.listdir(os.path.join(home, "tasks")) == []


def test_a_task_that_is_interrupted_meanwhile_ends_the_following_with_4() -> None:
    command = [sys.executable, "-m", "holdfast", "run", "--id", "it", "--", "sh", "-c", kin.WAIT]
    follower = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=workspace()
    )
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it"))
    eventually(task.agent_pid)
    assert holdfast("interrupt", "it", "-m", "which way?").returncode == 0
    _, stderr = follower.communicate(timeout=30)
    assert follower.returncode == 4
    assert "it was interrupted: which way?; 'holdfast resume it' to go on" in stderr
    task.stop()


def test_an_abandoned_task_is_5() -> None:
    done = run("--deadline", "0.3s", "--stop-pause", "1s", "--", "sleep", "30")
    assert done.returncode == 5
    assert " abandoned, " in done.stderr


# ── on a terminal ──


@pytest.mark.req("CON-1", "OUT-11")
def test_a_quiet_run_has_one_live_line_that_is_gone_at_the_end() -> None:
    terminal = Terminal(
        "run", "-q", "--id", "it", "--", "sh", "-c", "echo hello; " + kin.WAIT, cwd=workspace()
    )
    terminal.read_until("hello")
    kin.go()
    assert terminal.finish() == 0
    shown = terminal.text
    # Drawn in place: the only line ends are those of the id and of the report.
    drawn = shown[shown.index("it\r\n") + 4 : shown.index("it completed")]
    assert "\n" not in drawn
    assert drawn.endswith("\r\x1b[K")
    assert re.search(r"running\S* command_run \d+s  hello\x1b\[K", drawn)


def test_the_live_line_does_not_wrap_and_shows_no_escape_sequences() -> None:
    script = "printf 'a%.0s' $(seq 300); printf '\\033[31mred\\n'; " + kin.WAIT
    terminal = Terminal("run", "-q", "--id", "it", "--", "sh", "-c", script, columns=60, cwd=workspace())
    terminal.read_until("aaaa")
    kin.go()
    terminal.finish()
    for part in terminal.text.split("\r"):
        line = re.sub(r"\x1b\[[0-9;]*[mK]", "", part.partition("it completed")[0])
        assert len(line.rstrip("\n")) < 60
    assert "\x1b[31m" not in terminal.text


def test_the_live_line_is_drawn_at_most_five_times_a_second() -> None:
    script = "i=0; while [ $i -lt 100 ]; do echo $i; i=$((i+1)); sleep 0.01; done"
    terminal = Terminal("run", "-q", "--", "sh", "-c", script, cwd=workspace())
    assert terminal.finish() == 0
    elapsed_s = float(re.search(r"(\d+\.\d)s, 1 attempt", terminal.text)[1])
    assert terminal.text.count("\x1b[K") <= elapsed_s * 5 + 3


def test_a_terminal_shows_the_output_as_it_comes() -> None:
    terminal = Terminal("run", "--id", "it", "--", "sh", "-c", "echo one; " + kin.WAIT, cwd=workspace())
    terminal.read_until("one")
    # Below it, the line with the state, which is gone at the end.
    terminal.read_until("running")
    kin.go()
    assert terminal.finish() == 0
    # The line with the state is cleared before output is printed.
    assert "\x1b[Kone\r\n" in terminal.text
    assert "it completed, exit code 0" in terminal.text


def test_a_failure_on_a_terminal_does_not_repeat_what_was_shown() -> None:
    terminal = Terminal(
        "run", "--id", "it", "--", "sh", "-c", "echo once upon a time; exit 3", cwd=workspace()
    )
    assert terminal.finish() == 1
    assert terminal.text.count("once upon a time") == 1
    assert "it failed, exit code 3" in terminal.text


def test_a_dumb_terminal_gets_plain_lines() -> None:
    terminal = Terminal("run", "--id", "it", "--", "true", env={"TERM": "dumb"}, cwd=workspace())
    assert terminal.finish() == 0
    assert "\x1b" not in terminal.text
    assert "it completed" in terminal.text


@pytest.mark.req("LCH-1")
def test_ctrl_c_detaches_and_the_task_lives() -> None:
    terminal = Terminal("run", "--id", "it", "--", "sh", "-c", kin.WAIT, cwd=workspace())
    terminal.read_until("running")
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it"))
    agent = task.agent_pid()
    terminal.press("\x03")
    assert terminal.finish() == 130
    for command in ("holdfast attach it", "holdfast logs -f it", "holdfast wait it"):
        assert command in terminal.text
    assert "Traceback" not in terminal.text
    assert processes.is_alive(agent)
    assert processes.is_alive(task.runner_pid())
    kin.go()
    task.wait_for("completed")


# ── the environment file ──


def test_an_env_file_adds_to_the_environment_and_is_recorded_by_name_only() -> None:
    path = os.path.join(workspace(), "env")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            "# a comment\n\nPLAIN=a b # and more\nexport EXPORTED=1\n"
            "QUOTED=\"x\\ny # z\"\nSINGLE='$HOME'\nEMPTY=\n"
        )
    script = 'printf "[%s]" "$PLAIN" "$EXPORTED" "$QUOTED" "$SINGLE" "$EMPTY" > seen'
    done = run("--env-file", "env", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(workspace(), "seen"), encoding="utf-8") as file:
        assert file.read() == "[a b][1][x\ny # z][$HOME][]"
    spec = packet_of(done).events("task.created")[0]["spec"]
    assert spec["env"] == ["PLAIN", "EXPORTED", "QUOTED", "SINGLE", "EMPTY"]
    assert spec["env_file"] == path
    assert "a b" not in json.dumps(spec)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("no equals sign", "line 2: not NAME=VALUE"),
        ("1BAD=x", "line 2: not NAME=VALUE"),
        ("A='open", "line 2: A: missing closing quote '"),
        ('A="x" y', "line 2: A: unexpected text after the closing quote"),
        ("HOLDFAST_ROLE=keeper", "line 2: HOLDFAST_ROLE is set by holdfast itself"),
    ],
)
def test_a_bad_line_of_an_env_file_is_named_by_its_number(line: str, words: str, home: str) -> None:
    with open(os.path.join(workspace(), "env"), "w", encoding="utf-8") as file:
        file.write(f"GOOD=1\n{line}\n")
    done = run("-d", "--env-file", "env", "--", "true")
    assert done.returncode == 2
    assert words in done.stderr
    assert os.listdir(os.path.join(home, "tasks")) == []


def test_retry_reads_the_env_file_again() -> None:
    def write(value: str) -> None:
        with open(os.path.join(workspace(), "env"), "w", encoding="utf-8") as file:
            file.write(f"VALUE={value}\n")

    write("one")
    done = run("--env-file", "env", "--", "sh", "-c", 'echo "$VALUE"; test "$VALUE" = two')
    task = packet_of(done)
    assert done.returncode == 1
    write("two")
    # In the project, its agent may have changed the file: the user names it again.
    refused = task.ask("retry")
    assert (refused.returncode, "--env-file" in refused.stderr) == (3, True), refused.stderr
    assert task.ask("retry", "--env-file", os.path.join(workspace(), "env")).returncode == 0
    task.wait_for("completed")
    assert task.log().splitlines()[-1] == "two"


# ── errors ──


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "neither a prompt nor a command was given"),
        (["--agent", "scriptd", "x"], "did you mean 'scripted'?"),
        (["--", "no-such-program"], "no-such-program: command not found"),
        (
            ["--project", "/nowhere/at/all", "--", "true"],
            "the project directory /nowhere/at/all does not exist",
        ),
        (["--env-file", "nowhere", "--", "true"], "cannot read the environment file"),
        (["--deadlin", "1h", "--", "true"], "--deadline"),
    ],
)
def test_what_is_wrong_as_written_exits_2_and_makes_nothing(args: list[str], words: str, home: str) -> None:
    done = run("-d", *args)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert not os.path.exists(os.path.join(home, "tasks")) or os.listdir(os.path.join(home, "tasks")) == []


def test_a_follower_that_is_killed_leaves_the_task_alone() -> None:
    command = [sys.executable, "-m", "holdfast", "run", "--id", "it", "--", "sh", "-c", kin.WAIT]
    follower = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=workspace()
    )
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it"))
    eventually(task.agent_pid)
    follower.send_signal(signal.SIGKILL)
    follower.wait(timeout=10)
    kin.go()
    task.wait_for("completed")


@pytest.mark.req("CTX-7", "LCH-2")
def test_everything_in_a_home_is_private_whatever_the_umask(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    umask = os.umask(0)
    try:
        done = run("--", "sh", "-c", "echo secret; exit 1")
        packet_of(done).ask("retry")
        packet_of(done).ask("wait")
        assert holdfast("ls").returncode == 0
        assert holdfast("down").returncode == 0
    finally:
        os.umask(umask)
    names = set()
    for folder, folders, files in os.walk(home):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            names.add(name)
            assert os.lstat(path).st_mode & 0o077 == 0, f"{oct(os.lstat(path).st_mode)} {path}"
    assert {"keeper.log", "index.db", "down", "stdout.log", "events.jsonl", "output.log"} <= names


@pytest.mark.req("AUD-7")
def test_every_move_is_journalled_with_its_old_and_new_state() -> None:
    task = packet_of(run("--", "true"))
    moves = [(event["old"], event["new"]) for event in task.events("task.moved")]
    assert moves == [("spawning", "running"), ("running", "completing"), ("completing", "completed")]
    assert all(event["at"] for event in task.events("task.moved"))


def test_a_name_that_is_cut_says_so() -> None:
    script = "true " + "and so on " * 20
    done = holdfast("run", "-d", "--json", "--", "sh", "-c", f": {script}", cwd=workspace())
    name = json.loads(done.stdout)["task_name"]
    assert name == f"sh -c : {script}"[:59].rstrip() + "…"
