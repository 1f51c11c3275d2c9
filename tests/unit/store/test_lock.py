"""Locks: held is held, whatever the file says, and freed by the kernel."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import pytest

from holdfast.errors import LockHeld, StorageError
from holdfast.store import lock as locks
from holdfast.store.process import open_files
from tests.support.waiting import eventually

_HOLDER = r"""
import os, sys, time
from holdfast.store import lock as locks
lock = locks.acquire(sys.argv[1], role="holder")
if len(sys.argv) > 2 and os.fork() == 0:
    os.write(1, b"%d\n" % os.getpid())
    time.sleep(60)
    os._exit(0)
os.write(1, b"held\n")
sys.stdin.read()
"""


@pytest.fixture
def path(place) -> str:
    return os.path.join(place.root, "lock")


def holder(path: str, *more: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", _HOLDER, path, *more]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.starts_processes
@pytest.mark.req("PKT-17", "W-A6")
def test_a_held_lock_is_refused_with_its_owner_and_free_after_a_kill(path: str) -> None:
    process = holder(path)
    assert process.stdout.readline() == b"held\n"
    assert locks.is_held(path)
    owner = locks.owner(path)
    assert owner is not None
    assert owner.pid == process.pid
    with pytest.raises(LockHeld, match=f"held by process {process.pid}") as caught:
        locks.acquire(path, role="test", within_s=0.0)
    assert caught.value.exit_status == 75
    process.kill()
    process.communicate(timeout=10)
    assert not locks.is_held(path)
    # The text stays, and means nothing.
    assert locks.owner(path) == owner
    locks.acquire(path, role="test", within_s=0.0).release()


@pytest.mark.starts_processes
@pytest.mark.req("W-A6")
def test_a_forked_copy_keeps_the_lock_and_is_found_among_its_holders(path: str) -> None:
    process = holder(path, "fork")
    lines = {process.stdout.readline(), process.stdout.readline()}
    child = int((lines - {b"held\n"}).pop())
    assert sorted(locks.holders(path)) == sorted([process.pid, child])
    process.kill()
    process.wait(timeout=10)
    assert locks.is_held(path)
    assert locks.holders(path) == [child]
    os.kill(child, signal.SIGKILL)
    eventually(lambda: not locks.is_held(path), what="the last copy is gone")
    process.stdin.close()
    process.stdout.close()


def test_release_frees_and_does_not_unlink(path: str) -> None:
    lock = locks.acquire(path, role="test")
    assert locks.is_held(path)
    lock.release()
    assert not locks.is_held(path)
    assert os.path.exists(path)
    assert os.stat(path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"5", b'{"pid": 1}', b"\xff"])
def test_a_lock_file_with_nonsense_has_no_owner_and_can_be_taken(path: str, text: bytes) -> None:
    with open(path, "wb") as file:
        file.write(text)
    assert locks.owner(path) is None
    assert not locks.is_held(path)
    locks.acquire(path, role="test").release()
    assert locks.owner(path).pid == os.getpid()


def test_a_symlink_is_never_locked(path: str, place) -> None:
    victim = os.path.join(place.root, "victim")
    with open(victim, "wb") as file:
        file.write(b"precious")
    os.symlink(victim, path)
    with pytest.raises(StorageError):
        locks.acquire(path, role="test")
    with open(victim, "rb") as file:
        assert file.read() == b"precious"


def test_what_is_not_there_is_neither_held_nor_owned(path: str) -> None:
    assert not locks.is_held(path)
    assert locks.owner(path) is None
    assert locks.holders(path) == []


_WAITER = r"""
import os, sys
from holdfast.store import lock as locks
os.write(1, b"waits\n")
lock = locks.acquire(sys.argv[1], role="waiter", within_s=30.0)
os.write(1, b"held\n")
sys.stdin.read()
"""


@pytest.mark.starts_processes
@pytest.mark.req("PKT-17")
@pytest.mark.parametrize("replaced_by", ["another", "nothing"])
def test_the_lock_of_a_file_that_is_gone_is_no_lock(path: str, replaced_by: str) -> None:
    """It was replaced while somebody waited for it: who gets the old file's lock asks for the new one's."""
    first = holder(path)
    assert first.stdout.readline() == b"held\n"
    argv = [sys.executable, "-c", _WAITER, path]
    waiter = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert waiter.stdout.readline() == b"waits\n"
    eventually(lambda: path in open_files(waiter.pid), what="it has the old file open")
    os.unlink(path)
    other = None
    if replaced_by == "another":
        other = holder(path)
        assert other.stdout.readline() == b"held\n"
    first.communicate(timeout=10)
    if other is not None:
        eventually(
            lambda: f"{path} (deleted)" not in open_files(waiter.pid) and path in open_files(waiter.pid),
            what="it waits for the new file",
        )
        other.communicate(timeout=10)
    assert waiter.stdout.readline() == b"held\n"
    assert locks.is_held(path)
    assert locks.owner(path).pid == waiter.pid
    waiter.communicate(timeout=10)


@pytest.mark.starts_processes
def test_of_two_who_wait_for_a_replaced_lock_one_has_it(path: str) -> None:
    first = holder(path)
    assert first.stdout.readline() == b"held\n"
    os.unlink(path)
    taken = locks.acquire(path, role="test")
    with pytest.raises(LockHeld):
        locks.acquire(path, role="test", within_s=0.0)
    taken.release()
    first.communicate(timeout=10)


@pytest.mark.parametrize("number", [errno.ELOOP, errno.EMFILE])
def test_a_lock_that_cannot_be_checked_is_not_taken_for_free(
    path: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    locks.acquire(path, role="test").release()
    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StorageError, match="cannot check"):
        locks.is_held(path)
