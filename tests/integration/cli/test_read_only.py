"""A read-only or unreadable home: reading commands print the same, or an error, and write nothing."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys

import pytest

from holdfast.store import atomic
from tests.support import kin, loops
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import need

READS = [
    ["ls"],
    ["show", "it"],
    ["logs", "it"],
    ["status"],
    ["queue", "ls"],
    ["queue", "show", "waits"],
    ["queue", "check"],
    ["queue", "next"],
    ["metrics"],
    ["metrics", "it"],
    ["report"],
    ["audit"],
    ["events", "it"],
    ["wait", "it"],
]


def without_power(*args: str) -> subprocess.CompletedProcess[str]:
    """Run a command that obeys file modes: root drops the capabilities to bypass them."""
    argv = [sys.executable, "-m", "holdfast", *args]
    if os.geteuid() == 0:
        need("setpriv")
        argv = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", *argv]
    return subprocess.run(argv, cwd=workspace(), capture_output=True, timeout=30, text=True, check=False)


@pytest.fixture
def filled(home: str) -> str:
    """A home with an ended task, a queued one, and a paused pool."""
    Task.shell("echo hello", "--id", "it").wait_for("completed")
    loops.fill(waits="true")
    loops.settings('pool_limits = ["night=1"]\n')
    assert holdfast("queue", "pause", "night").returncode == 0
    assert holdfast("ls", "-q").returncode == 0
    return home


#: Clock times, durations, and tasks per hour: they differ between two runs of the same command.
_TIMES = re.compile(
    r"(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d(:\d\d(\.\d+)?)?|\b(\d+(\.\d+)?[dhms])+\b|[\d.]+(?= tasks?( an hour|$))",
    re.M,
)


def without_times(text: str) -> str:
    """The text with times masked, and with the alignment of columns removed."""
    return " ".join(_TIMES.sub("TIME", text).split())


def everything(home: str) -> dict[str, tuple[int, int]]:
    files_of_home: dict[str, tuple[int, int]] = {}
    for folder, _, files in os.walk(home):
        for name in (".", *files):
            state = os.stat(os.path.join(folder, name))
            files_of_home[os.path.join(folder, name)] = (state.st_size, state.st_mtime_ns)
    return files_of_home


def forbid(home: str, mode: int) -> None:
    for folder, _, files in os.walk(home, topdown=False):
        for name in (*files, "."):
            path = os.path.join(folder, name)
            os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & ~mode)


@pytest.mark.parametrize("args", READS, ids=" ".join)
def test_a_read_only_home_is_shown_as_usual_and_not_changed(filled: str, args: list[str]) -> None:
    usual = holdfast(*args)
    forbid(filled, 0o222)
    before = everything(filled)
    done = without_power(*args)
    assert done.returncode == usual.returncode, done.stderr
    assert without_times(done.stdout) == without_times(usual.stdout)
    assert without_times(done.stderr) == without_times(usual.stderr)
    assert everything(filled) == before


def test_the_queue_of_a_home_that_cannot_be_written(filled: str) -> None:
    forbid(filled, 0o222)
    assert "waits" in without_power("queue", "ls").stdout
    assert without_power("queue", "next").stdout == "waits\n"
    assert without_power("queue", "check").stdout == "1\n"
    for args in (["queue", "claim"], ["queue", "rm", "waits"], ["queue", "pause"]):
        done = without_power(*args)
        assert done.returncode == 3, done.stderr
        assert "hint: is it read-only, or does it belong to another user?" in done.stderr


def test_who_may_only_read_the_queue_changes_nothing_that_people_said_to_it(filled: str) -> None:
    assert holdfast("queue", "priority", "waits", "7").returncode == 0
    kept = os.path.join(filled, "queue.json")
    before = atomic.read_json(kept)
    assert before is not None
    assert before["priorities"] == {"waits": 7}
    # The copy of the queue drops its item, as the packet is gone.
    shutil.rmtree(os.path.join(filled, "tasks", "waits"))
    for name in os.listdir(filled):
        if name.startswith("queue.db"):
            os.chmod(os.path.join(filled, name), 0o400)
    assert without_power("queue", "ls").returncode == 0
    assert atomic.read_json(kept) == before


@pytest.mark.parametrize("args", READS, ids=" ".join)
def test_what_cannot_be_read_is_no_empty_home(home: str, args: list[str]) -> None:
    kin.make("--", "true", task_id="it")
    os.chmod(home, 0)
    done = without_power(*args)
    os.chmod(home, 0o700)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"error: cannot read the home {home}: Permission denied" in done.stderr
    assert "hint: " in done.stderr


@pytest.mark.parametrize(
    ("args", "name"),
    [
        (["logs", "it"], "output.log"),
        (["events", "it"], "events.jsonl"),
        (["audit"], "../../audit.jsonl"),
    ],
)
def test_a_file_that_cannot_be_read_is_no_bug(filled: str, args: list[str], name: str) -> None:
    os.remove(os.path.join(filled, "index.db"))
    os.chmod(os.path.join(filled, "tasks", "it", name), 0)
    done = without_power(*args)
    assert done.returncode == 3, done.stderr
    message = " ".join(done.stderr.split())
    assert os.path.basename(name) in message
    assert "Permission denied" in message
    assert "hint: is it read-only, or does it belong to another user?" in message


@pytest.mark.parametrize("args", [["show", "it"], ["ls"]])
def test_a_manifest_that_cannot_be_read_is_rebuilt_from_the_journal(filled: str, args: list[str]) -> None:
    os.remove(os.path.join(filled, "index.db"))
    os.chmod(os.path.join(filled, "tasks", "it", "manifest.json"), 0)
    done = without_power(*args)
    assert done.returncode == 0, done.stderr
    assert "completed" in done.stdout
