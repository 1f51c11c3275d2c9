"""The start of an agent: what it gets, what it does not get, and a start that cannot succeed."""

from __future__ import annotations

import errno
import itertools
import json
import os
import stat
import subprocess
import sys

import pytest

from holdfast import clock
from holdfast.testing import Scenario
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

RUN = ("attempts", "001-command_run")


def program(text: str, name: str = "program") -> str:
    """An executable file in the workspace."""
    path = os.path.join(workspace(), name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def _replaces_itself(line: str) -> str:
    """A script that replaces itself and is killed: one that is wrong from the start is refused before there
    is a task."""
    return f"#!/bin/sh\necho '{line}' > new; chmod +x new; mv new ./program; kill -KILL $$\n"


# ── a start that fails ──


@pytest.mark.req("SUP-7", "SUP-13", "BUD-7", "BUD-9")
@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("#!/bin/sh\nrm ./program; kill -KILL $$\n", errno.ENOENT),
        ("#!/bin/sh\nchmod 600 ./program; kill -KILL $$\n", errno.EACCES),
        (_replaces_itself("#!/no/such/interpreter"), errno.ENOENT),
        (_replaces_itself("neither a script nor a binary"), errno.ENOEXEC),
    ],
    ids=["deleted", "not-executable", "bad-interpreter", "no-format"],
)
def test_a_program_that_cannot_be_executed_ends_failed_without_a_storm(
    home: str, text: str, number: int
) -> None:
    path = program(text)
    limits = ("--base-interval", "0.1s", "--max-interval", "0.3s", "--max-retries", "4")
    task = Task.start(*limits, "--", path)
    manifest = task.wait_for("failed")
    ended = [event for event in task.events("attempt.ended") if event["outcome"] == "spawn_failed"]
    assert len(ended) >= 3
    for event in ended:
        assert event["exec_errno"] == number
        assert (event["exit_code"], event["exit_signal"]) == (None, None)
        assert os.strerror(number) in event["detail"]
    assert os.strerror(number) in manifest["status_reason"]
    assert manifest["exit_code"] is None
    record = task.json(task.attempts()[-1], "exit.json")
    assert (record["exec_errno"], record["wait_status"]) == (number, None)
    # Only the first attempt, which could be executed, has an identity.
    with_identity = [os.path.exists(os.path.join(path, "identity.json")) for path in task.attempts()]
    assert with_identity == [True, False, False, False, False]
    # Never more attempts than retries allow, with a growing pause before each of them except a resume.
    assert len(task.attempts()) == 5
    planned = {event["total"]: event["delay_s"] for event in task.events("retry.planned")}
    opened = [clock.parse_iso(event["at"]) for event in task.events("attempt.opened")]
    for n, (sooner, later) in enumerate(itertools.pairwise(opened), start=1):
        assert later - sooner >= planned[n]
    assert all(planned[n] >= 0.1 for n in (2, 3, 4))
    assert task.ask("wait").returncode == 1


@pytest.mark.req("SUP-13", "SUP-16")
def test_exit_127_of_a_shell_is_no_failed_exec(home: str) -> None:
    task = Task.shell("no-such-program-anywhere")
    manifest = task.wait_for("failed")
    assert manifest["exit_code"] == 127
    assert manifest["total_retries"] == 0
    ended = task.events("attempt.ended")[0]
    assert (ended["outcome"], ended["exec_errno"]) == ("failed", None)


@pytest.mark.req("SUP-7", "RES-4")
def test_a_start_that_failed_is_not_a_start(home: str) -> None:
    """Once the program can be executed, it runs for the first time."""
    path = program("\0 of a format that nobody knows\n")
    task = Task.start("--base-interval", "0.3s", "--", path)
    task.wait_for("waiting")
    os.unlink(path)
    program("#!/bin/sh\necho count $HOLDFAST_RESUME_COUNT\n", "new")
    os.rename(os.path.join(workspace(), "new"), path)
    task.wait_for("completed")
    assert task.log().splitlines()[-1] == "count 0"
    assert {event["mode"] for event in task.events("attempt.opened")} == {"fresh"}


@pytest.mark.req("SUP-7")
def test_a_directory_that_is_gone_is_waited_for(home: str) -> None:
    folder = os.path.join(workspace(), "gone")
    os.mkdir(folder)
    script = '[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; rmdir "$PWD"; kill -KILL $$'
    task = Task.shell(script, "--base-interval", "0.2s", project=folder)
    task.wait_for("waiting")
    failed = task.wait_for_event("attempt.ended", 2)
    assert (failed["outcome"], failed["exec_errno"]) == ("spawn_failed", errno.ENOENT)
    os.mkdir(folder)
    task.wait_for("completed")


@pytest.mark.req("RES-5", "SUP-7", "W-A6")
def test_a_failed_start_in_between_does_not_lose_the_session(home: str) -> None:
    folder = os.path.join(workspace(), "gone")
    os.mkdir(folder)
    scenario = (
        Scenario().tool("Bash", command="rmdir ../gone", stays_open=True).crash("KILL", once=True).say("back")
    )
    task = Task.play(scenario, "--base-interval", "0.3s", project=folder)
    task.wait_for("waiting")
    assert [event["outcome"] for event in task.events("attempt.ended")] == ["crashed", "spawn_failed"]
    os.mkdir(folder)
    manifest = task.wait_for("completed")
    assert [event["mode"] for event in task.events("attempt.opened")][::2] == ["fresh", "resume"]
    first, second = task.memory().starts()
    assert (first.is_resume, second.is_resume) == (False, True)
    assert second.env["HOLDFAST_RESUME_COUNT"] == "1"
    # The message names how the attempt ended, and the tool call that was cut off.
    assert "killed by signal 9" in second.prompt
    assert "rmdir ../gone" in second.prompt
    assert manifest["session_id"] == task.events("attempt.opened")[0]["session_id"]


# ── what an agent gets ──


@pytest.mark.req("LCH-3", "LCH-5")
def test_only_what_was_captured_and_our_own_variables_reach_the_agent(home: str) -> None:
    env = {
        "SECRET_OF_THE_SHELL": "x",
        "LC_TIME": "C",
        "XDG_DATA_HOME": "/tmp/x",
        "WANTED": "yes",
        "TERM": "dumb",
    }
    task = Task.start("--env", "WANTED", "--", "cat", "/proc/self/environ", env=env)
    task.wait_for("completed")
    pairs = dict(item.split("=", 1) for item in task.read(*RUN, "stdout.log").decode().split("\0") if item)
    ours = {
        "HOLDFAST_TASK": task.id,
        "HOLDFAST_ATTEMPT": task.path(*RUN),
        "HOLDFAST_PACKET": task.packet,
        "HOLDFAST_RESUME_COUNT": "0",
        "TASK_TMPDIR": task.path("scratch"),
        "SESSION_ID": task.events("attempt.opened")[0]["attempt_id"],
        "INTERRUPT_FILE": task.path("state", "interrupt-request.txt"),
        "HARNESS_SESSION": "true",
        "BD_ACTOR": "harness-agent",
        "ITERATION": "1",
    }
    assert {name: pairs[name] for name in ours} == ours
    captured = set(pairs) - set(ours)
    assert {"PATH", "HOME", "TERM", "LC_TIME", "XDG_DATA_HOME", "WANTED", "HOLDFAST_HOME"} <= captured
    allowed = {
        "USER",
        "LOGNAME",
        "SHELL",
        "TZ",
        "TMPDIR",
        "LANG",
        "SSH_AUTH_SOCK",
        "WANTED",
        "PATH",
        "HOME",
        "TERM",
    }
    allowed |= {"HOLDFAST_HOME", "HOLDFAST_TRUST_DIR"} | {
        name for name in os.environ if name.lower().endswith("_proxy")
    }
    assert [n for n in captured - allowed if not n.startswith(("LC_", "XDG_"))] == []
    assert pairs["WANTED"] == "yes"


@pytest.mark.req("LCH-3", "LCH-7", "LCH-17")
def test_nothing_else_is_inherited(home: str) -> None:
    """Three descriptors, default signals, the caller's umask and limits, its own session, its directory."""
    script = (
        "import json, os, resource, signal\n"
        "fds = sorted(int(n) for n in os.listdir('/proc/self/fd'))\n"
        "facts = {'fds': fds[:-1], 'links': [os.readlink(f'/proc/self/fd/{n}') for n in (0, 1, 2)]}\n"
        "umask = os.umask(0); facts['umask'] = umask\n"
        "status = dict(l.split(':\\t') for l in open('/proc/self/status') if ':\\t' in l)\n"
        "facts['blocked'], facts['ignored'] = status['SigBlk'].strip(), status['SigIgn'].strip()\n"
        "facts['nofile'] = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "facts['leads'] = os.getpid() == os.getsid(0) == os.getpgrp()\n"
        "facts['cwd'] = os.getcwd()\n"
        "print(json.dumps(facts))\n"
    )
    path = os.path.join(workspace(), "facts.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    argv = [sys.executable, "-m", "holdfast", "run", "-d", "--", sys.executable, path]
    # A caller with an odd umask, a lower limit, an ignored signal and a descriptor that would be inherited.
    shell = 'umask 031; ulimit -Sn 321; trap "" USR1; exec 9<&0; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", *argv],
        cwd=workspace(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    task = Task(os.path.join(home, "tasks", done.stdout.strip()))
    task.wait_for("completed")
    facts = json.loads(task.read(*RUN, "stdout.log"))
    assert facts["fds"] == [0, 1, 2]
    assert facts["links"] == ["/dev/null", task.path(*RUN, "stdout.log"), task.path(*RUN, "stderr.log")]
    assert facts["umask"] == 0o031
    assert int(facts["blocked"], 16) == 0
    # CPython itself ignores SIGPIPE (13) and SIGXFSZ (25); posix_spawn, which make uses, the two that belong
    # to glibc (32, 33).
    assert int(facts["ignored"], 16) & ~(1 << 12 | 1 << 24 | 1 << 31 | 1 << 32) == 0
    assert facts["nofile"][0] == 321
    assert facts["leads"] is True
    assert facts["cwd"] == workspace()
    assert stat.S_IMODE(os.stat(task.path(*RUN, "stdout.log")).st_mode) == 0o600


@pytest.mark.req("LCH-3", "LCH-6")
def test_a_prompt_reaches_the_agent_byte_for_byte_by_stdin(home: str) -> None:
    prompt = "line one\n$(touch owned) `id` \"q\" 'q' \\n é\t\r\n".encode() + b"\xff\xfe\0end without newline"
    task = Task.start("-f", "-", "--agent", "command", "--", "cat", stdin=prompt)
    task.wait_for("completed")
    assert task.read(*RUN, "stdout.log") == prompt
    assert task.read("inputs", "user_request.md") == prompt
    assert os.listdir(workspace()) == []


@pytest.mark.req("LCH-3")
def test_a_prompt_is_in_no_command_line(home: str) -> None:
    task = Task.play(Scenario().hang(), "--name", "plain", prompt="a very private sentence")
    pid = task.agent_pid()
    eventually(
        lambda: task.memory().starts()[0].prompt == "a very private sentence", what="the agent read it"
    )
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        assert b"private" not in file.read()
    assert "private" not in json.dumps(task.json("attempts", "001-scripted_run", "argv.json"))
    task.stop()


@pytest.mark.req("LCH-17", "TST-4")
def test_the_shortest_task_takes_the_same_path(home: str) -> None:
    task = Task.start("--", "true")
    task.wait_for("completed")
    kinds = [event["type"] for event in task.events()]
    assert kinds[:4] == ["task.created", "runner.started", "attempt.opened", "attempt.started"]
    assert "attempt.ended" in kinds
    assert "stage.done" in kinds
    assert task.json(*RUN, "exit.json")["by"] == "recorder"


@pytest.mark.req("LCH-19", "LCH-1")
def test_the_agent_outlives_the_shell_that_started_it(home: str) -> None:
    """The starter's whole process group and session is hung up and killed."""
    gate = os.path.join(workspace(), "go")
    argv = [
        sys.executable,
        "-m",
        "holdfast",
        "run",
        "-d",
        "--",
        "sh",
        "-c",
        f"until [ -e {gate} ]; do sleep 0.05; done",
    ]
    shell = subprocess.Popen(
        ["sh", "-c", '"$@"; sleep 60', "sh", *argv],
        cwd=workspace(), stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert shell.stdout is not None
    with shell.stdout:
        task = Task(os.path.join(home, "tasks", shell.stdout.readline().strip()))
    pid = task.agent_pid()
    os.killpg(shell.pid, 1)
    os.killpg(shell.pid, 9)
    shell.wait(timeout=10)
    assert task.agent_pid() == pid
    with open(gate, "w", encoding="utf-8"):
        pass
    task.wait_for("completed")
    assert len(task.events("runner.started")) == 1


@pytest.mark.req("LCH-2", "LCH-8", "LCH-9")
def test_names_are_checked_and_a_taken_one_is_refused(home: str) -> None:
    task = Task.start("--id", "mine", "--", "true")
    task.wait_for("completed")
    before = task.read("events.jsonl")
    again = holdfast("run", "-d", "--id", "mine", "--", "true", cwd=workspace())
    assert again.returncode == 2
    assert "mine" in again.stderr
    assert task.read("events.jsonl") == before
    twins = [Task.start("--name", "twin", "--", "true") for _ in range(2)]
    assert twins[0].id != twins[1].id
    for twin in twins:
        twin.wait_for("completed")
    for bad in ("../up", "a/b", "", ".hidden", "x" * 65, "sp ace"):
        refused = holdfast("run", "-d", f"--id={bad}", "--", "true", cwd=workspace())
        assert refused.returncode == 2, bad
    unknown = holdfast("run", "-d", "--agent", "comand", "do it", cwd=workspace())
    assert unknown.returncode in (2, 3)
    assert "did you mean 'command'" in unknown.stderr
