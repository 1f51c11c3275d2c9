"""A hard link in place of one of our files: the file of the user is neither written, cut nor opened up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from holdfast.model import events as ev
from holdfast.packet import sealed
from holdfast.store import atomic, audit
from holdfast.store.directories import restore_modes
from holdfast.store.layout import Home, Packet
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually


@pytest.fixture
def precious(home: str) -> str:
    path = os.path.join(os.path.dirname(home), "precious")
    with open(path, "w", encoding="utf-8") as file:
        file.write("mine\n")
    os.chmod(path, 0o400)
    return path


def _check(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        assert file.read() == "mine\n"
    assert os.stat(path).st_mode & 0o777 == 0o400


def test_modes_of_a_file_with_a_second_name_stay(home: str, precious: str) -> None:
    task = Task.shell("true")
    task.wait_for("completed")
    os.link(precious, task.path("state", "x"))
    restore_modes(task.packet)
    _check(precious)


def test_a_log_is_not_written_through_a_second_name(home: str, precious: str) -> None:
    """The runner is killed, so that the next one opens the log again."""
    going = os.path.join(workspace(), "going")
    log_of_it = "$HOLDFAST_PACKET/output.log"
    script = (
        f"echo begun; until test -s {log_of_it}; do sleep 0.1; done; ln -f {precious} {log_of_it}; "
        f"until test -e {going}; do sleep 0.1; done; echo evil"
    )
    task = Task.shell(script)
    log = task.path("output.log")
    eventually(lambda: os.path.exists(log) and os.stat(log).st_nlink == 2, 20, "the link is there")
    task.kill_runner()
    with open(going, "w", encoding="utf-8"):
        pass
    task.start_runner()
    task.wait_for("completed", within_s=30)
    assert "evil" in task.log()
    _check(precious)


def test_the_audit_is_not_written_through_a_second_name(home: str, precious: str) -> None:
    os.makedirs(home, exist_ok=True)
    os.link(precious, os.path.join(home, "audit.jsonl"))
    audit.append(Home(home), {"operation": "x"})
    _check(precious)


def test_a_file_with_a_second_name_is_not_cut(home: str, precious: str) -> None:
    os.makedirs(home, exist_ok=True)
    path = os.path.join(home, "file")
    os.link(precious, path)
    os.close(atomic.open_own(path, os.O_WRONLY | os.O_TRUNC))
    assert os.stat(path).st_size == 0
    _check(precious)


def test_a_name_that_is_removed_after_the_open_does_not_hide_that_of_a_user(
    home: str, precious: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The open file has then only one name: that of the user."""
    os.makedirs(home, exist_ok=True)
    os.chmod(precious, 0o600)
    path, real = os.path.join(home, "file"), os.open
    os.link(precious, path)

    def exchange(name: str, *args: int, **given: int) -> int:
        opened = real(name, *args, **given)
        if name == "file":
            monkeypatch.setattr(os, "open", real)
            os.unlink(path)
        return opened

    monkeypatch.setattr(os, "open", exchange)
    descriptor = atomic.open_own(path, os.O_WRONLY | os.O_APPEND)
    is_own = os.path.samestat(os.fstat(descriptor), os.stat(path))
    os.close(descriptor)
    assert is_own


def test_a_journal_is_not_written_through_a_second_name(home: str) -> None:
    """Whether an agent or a backup made it."""
    task = Task.shell("true")
    task.wait_for("completed")
    other = os.path.join(os.path.dirname(home), "other")
    os.link(task.path("events.jsonl"), other)
    before = task.read("events.jsonl")
    _, journal, found = sealed.open_for_runner(Packet(task.packet))
    journal.append([ev.RunnerLeft(pid=1, reason="a")])
    journal.close()
    assert not found
    with open(other, "rb") as file:
        assert file.read() == before
    assert task.read("events.jsonl").startswith(before)
    assert b"runner.left" in task.read("events.jsonl")[len(before) :]


_OPEN = """
import sys
from holdfast.packet import sealed
from holdfast.store.layout import Packet
sealed.open_for_runner(Packet(sys.argv[1]))
"""


def test_a_journal_that_is_replaced_before_it_is_cut(home: str, precious: str) -> None:
    task = Task.shell("true")
    task.wait_for("completed")
    os.chmod(precious, 0o600)
    with open(precious, "ab") as file:
        file.write(b"x" * 100_000)
    path = task.path("events.jsonl")
    last = task.read("events.jsonl").rindex(b"completed")
    with open(path, "r+b") as file:
        file.seek(last)
        file.write(b"COMPLETED")
    env = {**os.environ, "HOLDFAST_FAILPOINT": "sealed.before_truncate=stop"}
    opener = subprocess.Popen([sys.executable, "-c", _OPEN, task.packet], env=env)
    try:
        assert os.WIFSTOPPED(os.waitpid(opener.pid, os.WUNTRACED)[1])
        os.link(precious, f"{path}.new")
        os.rename(f"{path}.new", path)
        os.kill(opener.pid, signal.SIGCONT)
        assert opener.wait(20) == 0
    finally:
        opener.kill()
        opener.wait()
    assert os.path.getsize(precious) == 100_005
