"""Bad input: a clear error, a hint, the right exit status, and no data is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support import kin, processes
from tests.support.bad_input import complaint, nothing_made, refused, tree, without_power, wrote
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


# ── what is wrong as written: exit 2, nothing changed ──


@pytest.mark.req("LCH-8", "SUP-7")
@pytest.mark.parametrize(
    ("args", "error", "hint"),
    [
        (["--agent", "scriptd", "do it"], "no agent named 'scriptd'", "did you mean 'scripted'?"),
        (["--agent", "", "do it"], "no agent named ''", "agents: "),
        (["--agent", "../../etc", "do it"], "no agent named", "agents: "),
        ([], "neither a prompt nor a command", "-- COMMAND"),
        (["--"], "no command was given", "-- COMMAND"),
        (["--agent", "command"], "no command was given", "-- COMMAND"),
        (["--", "no-such-program-anywhere"], "no-such-program-anywhere: command not found", "PATH"),
        (["--", "./missing"], "./missing: command not found", "spelling"),
        (["--", "/etc/passwd"], "/etc/passwd is not executable", "it does not look like a program"),
        (["--", "/tmp"], "/tmp is a directory", "program"),
        (["--", ""], "no command was given", "COMMAND"),
        (["--agent", "scripted"], "no prompt for scripted", "PROMPT"),
        (["--agent", "scripted", "-f", "missing.md"], "cannot read the prompt file missing.md", "path"),
        (["--agent", "scripted", "-f", "/"], "cannot read the prompt file /", "path"),
        (
            ["--agent", "scripted", "-f", "x.md", "do it"],
            "a prompt and --file exclude each other",
            "one of them",
        ),
        (["--project", "nowhere", "--", "true"], "nowhere does not exist", "--project"),
        (["--project", "/etc/passwd", "--", "true"], "/etc/passwd is not a directory", "--project"),
        (
            ["-o", "nonsense", "--agent", "scripted", "hi"],
            "--option nonsense: not KEY=VALUE",
            "give it a value: --option nonsense=VALUE",
        ),
        (["--leftovers", "burn", "--", "true"], "'burn' is not one of", "--leftovers report|kill|keep"),
        (["--no-such-flag", "--", "true"], "--no-such-flag", "--help"),
        (["one", "two", "--", "true"], "two", "--help"),
    ],
)
def test_a_task_that_cannot_be_started_as_written(args: list[str], error: str, hint: str, home: str) -> None:
    said = refused("run", "-d", *args, cwd=workspace())
    assert error in said
    assert hint in said
    assert nothing_made(home)


def test_a_script_of_ones_own_may_be_made_executable(home: str) -> None:
    path = os.path.join(workspace(), "script")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    assert f"hint: chmod +x {path}" in refused("run", "--", path, cwd=workspace())
    assert nothing_made(home)


@pytest.mark.req("LCH-8")
@pytest.mark.parametrize(
    "task_id",
    ["a/b", "..", ".", "../x", "/etc", ".hidden", "-x", "_x", "a b", "a\nb", "ä", "a" * 65, "~", "a*"],
)
def test_an_id_that_is_no_id(task_id: str, home: str) -> None:
    said = refused("run", "-d", f"--id={task_id}", "--", "true", cwd=workspace())
    assert "not a task id" in said
    assert "hint: an id starts with a letter or digit" in said
    assert nothing_made(home)
    # The same text wherever a task is named; a path is never followed.
    if not task_id.startswith("-"):
        assert "not a task id" in refused("show", task_id, "--json")


@pytest.mark.req("LCH-8")
def test_the_longest_id_and_odd_but_valid_ones_work(home: str) -> None:
    for task_id in ("a" * 64, "0", "A.b_c-D", "run"):
        done = holdfast("run", "-d", "--id", task_id, "--", "true", cwd=workspace())
        assert (done.returncode, done.stdout) == (0, task_id + "\n"), done.stderr
        Task(os.path.join(home, "tasks", task_id)).wait_for("completed")


@pytest.mark.req("SUP-4", "SUP-5", "SUP-7")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MONITOR_BASE_INTERVAL", "soon"),
        ("MONITOR_BASE_INTERVAL", "0"),
        ("MONITOR_BASE_INTERVAL", "-5"),
        ("MONITOR_BASE_INTERVAL", "nan"),
        ("MONITOR_BASE_INTERVAL", "1e999"),
        ("MONITOR_MAX_INTERVAL", "1.2.3"),
        ("MONITOR_GRACE_PERIOD", "5 minutes"),
        ("MONITOR_DEADLINE", "tomorrow"),
        ("MONITOR_DEADLINE", "h"),
        ("MONITOR_MAX_RETRIES", "many"),
        ("MONITOR_MAX_RETRIES", "1.5"),
        ("MONITOR_MAX_RETRIES", "-1"),
    ],
)
def test_nonsense_in_the_monitor_variables(name: str, value: str, home: str) -> None:
    said = refused("run", "-d", "--", "true", env={name: value}, cwd=workspace())
    assert f"error: {name}" in said
    assert nothing_made(home)


@pytest.mark.req("SUP-7")
@pytest.mark.parametrize(
    "flag",
    [
        "--deadline=x",
        "--deadline=",
        "--deadline=-1h",
        "--grace=1y",
        "--stale=abc",
        "--max-retries=none",
        "--output-limit=1x",
        "--stop-pause=..",
        "--base-interval=0s",
        "--max-interval=١٢x",
    ],
)
def test_bad_durations_and_numbers(flag: str, home: str) -> None:
    said = refused("run", "-d", flag, "--", "true", cwd=workspace())
    assert f"error: {flag.partition('=')[0]}" in said
    assert nothing_made(home)


@pytest.mark.req("SUP-4", "SUP-5")
def test_empty_monitor_variables_mean_nothing_and_flags_beat_them(home: str) -> None:
    env = {"MONITOR_DEADLINE": "", "MONITOR_MAX_RETRIES": "3", "MONITOR_GRACE_PERIOD": "7"}
    task = Task.start("--max-retries", "4", "--deadline", "none", "--", "true", env=env)
    task.wait_for("completed")
    limits = task.events("task.created")[0]["spec"]["limits"]
    assert (limits["max_retries"], limits["grace_s"], limits["deadline_s"]) == (4, 7.0, None)


@pytest.mark.req("SUP-7")
def test_commands_that_are_none(home: str) -> None:
    assert "id you mean 'show'?" in refused("shwo", "x")
    assert "for example: holdfast show" in refused("show")
    assert "--help" in refused("show", "a", "b")
    assert "--timeout" in refused("wait", kin.make("--", "true").id, "--timeout", "soon")


@pytest.mark.req("SUP-7")
def test_a_prompt_file_that_may_not_be_read(home: str) -> None:
    path = wrote("secret.md", b"hello", 0o000)
    said = complaint(without_power("run", "-d", "--agent", "scripted", "-f", path), 2)
    assert f"error: cannot read the prompt file {path}: Permission denied" in said
    assert nothing_made(home)


# ── tasks that are there, or not: exit 2 and 3 ──


@pytest.mark.req("LCH-9")
def test_a_taken_id_is_refused_and_the_task_stays_as_it_was(home: str) -> None:
    task = Task.start("--id", "mine", "--", "echo", "first")
    task.wait_for("completed")
    eventually(lambda: not processes.marked(task.packet), what="the runner is gone")
    before = tree(task.packet)
    said = refused("run", "-d", "--id", "mine", "--", "true", cwd=workspace())
    assert "task mine already exists" in said
    assert "hint: choose another id" in said
    assert tree(task.packet) == before
    assert os.listdir(os.path.join(home, "tasks")) == ["mine"]


@pytest.mark.req("LCH-9")
def test_of_racing_duplicates_one_wins_and_nothing_is_left_of_the_others(home: str) -> None:
    argv = [sys.executable, "-m", "holdfast", "run", "-d", "--id", "mine", "--"]
    racers = [
        subprocess.Popen(
            [*argv, "sh", "-c", f"echo {number}"],
            cwd=workspace(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number in range(8)
    ]
    outputs = [racer.communicate(timeout=60) for racer in racers]
    assert sorted(racer.returncode for racer in racers) == [0] + [2] * 7
    assert sum(b"task mine already exists" in err for _, err in outputs) == 7
    winner = next(number for number, racer in enumerate(racers) if racer.returncode == 0)
    task = Task(os.path.join(home, "tasks", "mine"))
    assert task.wait_for("completed")["output_tail"] == str(winner)
    assert os.listdir(os.path.join(home, "tasks")) == ["mine"]


@pytest.mark.req("LCH-9")
def test_generated_ids_do_not_collide(home: str) -> None:
    script = "from holdfast import ids; print(*[ids.new_task_id('x') for _ in range(50)])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=30, check=True)
    assert len(set(done.stdout.split())) == 50


@pytest.mark.req("SUP-7")
def test_unknown_tasks_and_prefixes(home: str) -> None:
    assert "no task 'x'" in refused("show", "x", status=3)  # no home yet
    for task_id in ("alpha", "alphabet", "beta"):
        kin.make("--", "true", task_id=task_id)
    before = tree(home)
    for verb in ("show", "stop", "interrupt", "resume", "retry", "wait"):
        said = refused(verb, "gamma", status=3)
        assert f"error: no task 'gamma' in {home}" in said
        assert "hint: " in said
    said = refused("stop", "al", status=3)
    assert "error: 'al' is ambiguous: alpha, alphabet" in said
    assert "hint: type more of the id" in said
    assert tree(home) == before
    # An id that is a prefix of another one is found, and so is an unambiguous prefix.
    assert json.loads(holdfast("show", "alpha", "--json").stdout)["task_id"] == "alpha"
    assert json.loads(holdfast("show", "b", "--json").stdout)["task_id"] == "beta"


@pytest.mark.parametrize(
    "args",
    [
        ["logs", "it", "--lines", "9" * 5000],
        ["logs", "it", "--attempt", "9" * 5000],
        ["attach", "it", "--lines", "-1"],
        ["prune", "--keep", "9" * 5000],
        ["prune", "--max-size", "inf"],
        ["prune", "--max-size", "-1"],
        ["wait", "it", "--timeout", ""],
        ["report", "--since", ""],
        ["up", "--slots", "9" * 5000],
    ],
    ids=lambda args: " ".join(args)[:30],
)
def test_absurd_numbers(args: list[str]) -> None:
    Task.start("--id", "it", "--", "true").wait_for("completed")
    said = complaint(holdfast(*args), 2)
    assert args[-2] in said
