"""holdfast demo: kills and recoveries are real, and false claims are errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.support import processes
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually


def folder_of(home: str) -> str:
    return os.path.join(os.path.dirname(home), "demo")


def packet_of(folder: str) -> Task:
    tasks = os.path.join(folder, "home", "tasks")
    (name,) = [name for name in os.listdir(tasks) if name[0] != "."]
    return Task(os.path.join(tasks, name))


def test_three_kills_are_healed_and_every_part_is_written_once(home: str) -> None:
    folder = folder_of(home)
    done = holdfast("demo", "--home", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(os.path.join(folder, "project", "result.txt"), encoding="utf-8") as file:
        assert file.read() == "".join(f"part {part} of 4\n" for part in range(1, 5))

    # Check its claims against the journal.
    task = packet_of(folder)
    assert task.status() == "completed"
    ended = task.events("attempt.ended")
    assert [(event["outcome"], event["exit_signal"]) for event in ended] == [
        ("crashed", 9),
        ("success", None),
    ]
    assert len({event["session_id"] for event in task.events("agent.session")}) == 1
    started = [event["pid"] for event in task.events("runner.started")]
    assert len(set(started)) == 2
    assert len(task.events("runner.left")) == 1  # the first runner was killed
    with open(os.path.join(folder, "home", "keeper.log"), encoding="utf-8") as file:
        assert file.read().count("started") == 2

    for role in ("agent", "runner", "keeper"):
        assert f", the {role}\n" in done.stdout
    assert done.stdout.count("noticed   after") == done.stdout.count("recovered after") == 3
    assert done.stdout.count("  ok  ") == 6
    assert "# demo: completed" in done.stdout
    assert f"The files are in {folder}" in done.stdout
    assert "Try next:" in done.stdout
    assert processes.marked(folder) == []
    assert os.listdir(home) == []  # the user's home was not touched


@pytest.mark.parametrize("columns", ["80"])
def test_in_a_bare_environment_the_output_is_plain_ascii_of_80_columns(home: str, columns: str) -> None:
    user = os.path.join(os.path.dirname(home), "nobody")
    os.mkdir(user)
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "demo"],
        env={
            "PATH": os.environ["PATH"],
            "HOME": user,
            "TMPDIR": os.environ["TMPDIR"],
            "TERM": "dumb",
            "LC_ALL": "C",
            "COLUMNS": columns,
        },
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    text = done.stdout.decode("ascii")
    assert "\x1b" not in text
    folder = text.partition("The files are in ")[2].partition(":\n")[0]
    assert folder.startswith(os.environ["TMPDIR"])
    assert max(len(line.replace(folder, "/tmp/holdfast-demo-abcdefgh")) for line in text.splitlines()) < 80
    assert os.listdir(user) == []  # nothing leaks outside the demo's own directory


def test_the_callers_settings_and_task_do_not_matter(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = os.path.join(os.environ["HOME"], ".config", "holdfast")
    os.makedirs(config)
    with open(os.path.join(config, "config.toml"), "w", encoding="utf-8") as file:
        file.write("max_retries = 0\n")
    monkeypatch.setenv("MONITOR_MAX_RETRIES", "0")
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    done = holdfast("demo", "--json", "--home", folder_of(home))
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["schema"] == "holdfast.demo/1"
    assert [kill["what"] for kill in facts["kills"]] == ["agent", "runner", "keeper"]
    for kill in facts["kills"]:
        assert 0 <= kill["noticed_ms"] <= kill["healed_ms"] < 15000
    assert facts["seconds"] < 30


def test_a_directory_with_something_in_it_is_refused(home: str) -> None:
    folder = folder_of(home)
    os.mkdir(folder)
    with open(os.path.join(folder, "mine"), "w", encoding="utf-8"):
        pass
    done = holdfast("demo", "--home", folder)
    assert done.returncode == 2
    assert "is not empty" in done.stderr
    assert os.listdir(folder) == ["mine"]


def start(*words: str, tmp: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", "demo", *words],
        env={**os.environ, "TMPDIR": tmp},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_a_signal_ends_all_of_it_and_removes_its_own_folder(home: str, number: signal.Signals) -> None:
    tmp = os.path.join(os.path.dirname(home), "tmp of the demo")
    os.mkdir(tmp)
    demo = start(tmp=tmp)
    assert demo.stdout is not None
    folder = demo.stdout.readline().strip().partition("The demo runs in ")[2]
    assert os.path.dirname(folder) == tmp
    eventually(lambda: packet_of(folder).events("agent.tool_started"), what="the agent works")
    os.kill(demo.pid, number)
    _, stderr = demo.communicate(timeout=40)
    assert stderr == "demo stopped\n"
    assert demo.returncode == 128 + number
    assert processes.marked(folder) == []
    assert os.listdir(tmp) == []


def test_stopped_before_there_is_a_task_it_leaves_nothing_either(home: str) -> None:
    tmp = os.path.join(os.path.dirname(home), "tmp of the demo")
    os.mkdir(tmp)
    demo = start(tmp=tmp)
    assert demo.stdout is not None
    folder = demo.stdout.readline().strip().partition("The demo runs in ")[2]
    os.kill(demo.pid, signal.SIGTERM)
    _, stderr = demo.communicate(timeout=40)
    assert (demo.returncode, stderr) == (143, "demo stopped\n")
    assert processes.marked(folder) == []
    assert os.listdir(tmp) == []


def test_a_folder_that_was_named_stays(home: str) -> None:
    folder = folder_of(home)
    demo = start("--home", folder, tmp=os.environ["TMPDIR"])
    eventually(lambda: packet_of(folder).events("agent.tool_started"), what="the agent works")
    os.kill(demo.pid, signal.SIGINT)
    os.kill(demo.pid, signal.SIGINT)  # a second Ctrl-C
    _, stderr = demo.communicate(timeout=40)
    assert demo.returncode == 130
    assert stderr == f"demo stopped; its files are in {folder}\n"
    assert processes.marked(folder) == []
    assert packet_of(folder).status() == "killed"


def test_a_demo_whose_cleanup_guard_is_killed_goes_on_to_its_last_line(home: str) -> None:
    demo = start("--home", folder_of(home), tmp=os.environ["TMPDIR"])
    assert demo.stdout is not None
    demo.stdout.readline()
    with open(f"/proc/{demo.pid}/task/{demo.pid}/children", encoding="ascii") as file:
        guard = int(file.read().split()[0])  # its first child
    eventually(lambda: os.getsid(guard) == guard, what="it has a session of its own")
    os.kill(guard, signal.SIGKILL)
    stdout, stderr = demo.communicate(timeout=60)
    assert demo.returncode == 0, stderr
    assert "no process is left" in stdout
    assert "Try next:" in stdout


def test_the_command_that_removes_the_files_can_be_copied(home: str) -> None:
    folder = os.path.join(os.path.dirname(home), "my demo")
    done = holdfast("demo", "--home", folder)
    assert done.returncode == 0, done.stderr
    assert f"  rm -r '{folder}'" in done.stdout


def test_it_ends_with_a_command_that_opens_its_task_in_a_browser(home: str) -> None:
    folder = os.path.join(os.path.dirname(home), "my demo")
    done = holdfast("demo", "--home", folder)
    assert done.returncode == 0, done.stderr
    title, _, command = done.stdout.rpartition("in a browser:\n")
    assert title
    # As a person pastes it; `holdfast` may not be on the path of a test.
    words = command.replace("python -m holdfast", "holdfast").replace(
        "holdfast serve", '"$0" -m holdfast serve'
    )
    argv = ["sh", "-c", f"{words.strip()} --port 0", sys.executable]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline()
        os.killpg(server.pid, signal.SIGINT)
    assert f"/task/{packet_of(folder).id}#" in address
    assert processes.marked(folder) == []


def test_a_demo_that_goes_wrong_fails_and_says_what(home: str) -> None:
    """The agent is killed once more, so it needs three attempts instead of the claimed two."""
    folder = folder_of(home)
    demo = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "demo", "--home", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(
        lambda: len(packet_of(folder).events("attempt.started")) == 2, what="the agent was killed once"
    )
    task = packet_of(folder)
    os.kill(task.events("attempt.started")[-1]["pid"], signal.SIGKILL)
    _, stderr = demo.communicate(timeout=60)
    assert demo.returncode == 1, stderr
    assert stderr.startswith("error: ")
    assert processes.marked(folder) == []


def test_help_has_examples() -> None:
    done = holdfast("demo", "--help")
    assert done.returncode == 0
    assert "holdfast demo --home" in done.stdout


@pytest.mark.parametrize("given", [True, False], ids=["--home", "in TMPDIR"])
def test_a_demo_that_is_killed_leaves_no_process_behind(home: str, *, given: bool) -> None:
    flags = ["--home", folder_of(home)] if given else []
    argv = [sys.executable, "-m", "holdfast", "demo", *flags]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as demo:
        assert demo.stdout is not None
        folder = demo.stdout.readline().split()[-1]
        for line in demo.stdout:
            if line.startswith("The task has runner"):
                break
        assert processes.marked(folder)
        os.killpg(demo.pid, signal.SIGKILL)
    # A temporary folder is removed.
    eventually(lambda: not processes.marked(folder) and os.path.exists(folder) is given, 20, "all is gone")
