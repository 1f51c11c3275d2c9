"""A hard link in place of one of our files: the file of the user is neither written, cut nor opened up."""

from __future__ import annotations

import os

import pytest

from holdfast.store import atomic, audit
from holdfast.store.directories import restore_modes
from holdfast.store.layout import Home
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
