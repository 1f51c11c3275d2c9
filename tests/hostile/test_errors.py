"""Errors name the cause, and junk files delay nothing."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time

import pytest

from holdfast.errors import UsageError
from holdfast.views.service import unit_text
from tests.support.tasks import Task, holdfast

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("name", ["events.jsonl", "output.log"])
@pytest.mark.parametrize("verb", ["events", "logs"])
def test_a_directory_in_place_of_a_file_is_not_reported_as_a_bug(verb: str, name: str) -> None:
    task = Task.shell("echo hello")
    task.wait_for("completed")
    os.unlink(task.path(name))
    os.mkdir(task.path(name))
    try:
        done = holdfast(verb, task.id)
    finally:
        os.rmdir(task.path(name))
    assert done.returncode in (0, 2, 3), done.stderr
    assert "has a bug" not in done.stderr


def test_a_refused_system_call_is_not_called_a_problem_of_the_output() -> None:
    task = Task.shell("true")
    task.wait_for("completed")
    script = (
        "import os, sys\n"
        "from holdfast.views.cli import entry\n"
        "from holdfast.views.cli.commands import show\n"
        "def fail(values):\n"
        "    raise OSError(24, 'Too many open files')\n"
        "show.run = fail\n"
        "sys.exit(entry.run(['show', 'x']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "Too many open files" in done.stderr
    assert "output" not in done.stderr


def test_a_full_output_is_still_reported() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "help"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False,
        )  # fmt: skip
    assert done.returncode == 3
    assert "cannot write the output: No space left on device" in done.stderr


@pytest.mark.parametrize(
    "home", ["/tmp/a\\", "/tmp/a\\nb", "/tmp/a\rb", "/tmp/a\nb", "/tmp/a\tb", "/tmp/a\x01b"]
)
def test_a_unit_has_the_path_of_any_home(home: str) -> None:
    keeper = unit_text.KeeperUnit(
        home=home, is_default=False, python="/usr/bin/python3", log=f"{home}/keeper.log"
    )
    text = unit_text.systemd(keeper)
    assert "\r" not in text
    assert not any(
        line.endswith("\\") for line in text.splitlines()
    )  # systemd would join it with the next line
    (line,) = [line for line in text.splitlines() if "HOLDFAST_HOME" in line]
    value = line.removeprefix('Environment="').removesuffix('"')
    assert value.encode().decode("unicode_escape") == f"HOLDFAST_HOME={home}"


@pytest.mark.parametrize("home", ["/tmp/a\rb", "/tmp/a\x01b"])
def test_a_property_list_that_cannot_name_the_home_is_refused(home: str) -> None:
    keeper = unit_text.KeeperUnit(
        home=home, is_default=False, python="/usr/bin/python3", log=f"{home}/keeper.log"
    )
    with pytest.raises(UsageError, match="property list"):
        unit_text.launchd(keeper)


@pytest.mark.parametrize("kind", ["junk", "forged"])
def test_thousands_of_files_in_the_inbox_do_not_delay_stop(kind: str) -> None:
    task = Task.shell("sleep 600", "--base-interval", "60s")
    task.wait_for("running")
    count = 20_000 if kind == "junk" else 3_000
    for number in range(count):
        name = f"{number:026d}"
        with open(task.path("inbox", f"{name}.json"), "w", encoding="utf-8") as file:
            if kind == "forged":
                file.write(f'{{"id": "{name}", "verb": "resume", "args": {{}}, "by": "x", "at": "x"}}')
            else:
                file.write("{")
    began = time.monotonic()
    done = holdfast("stop", task.id)
    assert done.returncode == 0, done.stderr
    task.wait_for("killed", within_s=20.0)
    assert time.monotonic() - began < 10, "answering each file separately took 31 s"
    for name in os.listdir(task.path("inbox")):  # the runner would refuse them one by one before it leaves
        with contextlib.suppress(FileNotFoundError):
            os.unlink(task.path("inbox", name))
