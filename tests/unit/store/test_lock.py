"""Locks: held is held, whatever the file says, and freed by the kernel."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import LockHeld, StorageError
from holdfast.store import lock as locks
from holdfast.store import lock_holders, lock_owner
from holdfast.store.layout import anchor_of
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
    owner = lock_owner.owner(path)
    assert owner is not None
    assert owner.pid == process.pid
    with pytest.raises(LockHeld, match=f"held by process {process.pid}") as caught:
        locks.acquire(path, role="test", within_s=0.0)
    assert caught.value.exit_status == 75
    process.kill()
    process.communicate(timeout=10)
    assert not locks.is_held(path)
    # The text stays, but has no meaning.
    assert lock_owner.owner(path) == owner
    locks.acquire(path, role="test", within_s=0.0).release()


@pytest.mark.starts_processes
@pytest.mark.req("W-A6")
def test_a_forked_copy_keeps_the_lock_and_is_found_among_its_holders(path: str) -> None:
    process = holder(path, "fork")
    lines = {process.stdout.readline(), process.stdout.readline()}
    child = int((lines - {b"held\n"}).pop())
    assert sorted(lock_holders.holders(path)) == sorted([process.pid, child])
    process.kill()
    process.wait(timeout=10)
    assert locks.is_held(path)
    assert lock_holders.holders(path) == [child]
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
    assert lock_owner.owner(path) is None
    assert not locks.is_held(path)
    locks.acquire(path, role="test").release()
    assert lock_owner.owner(path).pid == os.getpid()


def test_a_symlink_is_never_locked(path: str, place) -> None:
    victim = os.path.join(place.root, "victim")
    with open(victim, "wb") as file:
        file.write(b"precious")
    os.symlink(victim, path)
    assert lock_owner.owner(path) is None
    assert not locks.is_held(path)
    locks.acquire(path, role="test").release()
    with open(victim, "rb") as file:
        assert file.read() == b"precious"
    assert not os.path.islink(path)
    assert os.readlink(f"{path}.aside-1") == victim


def test_what_is_not_there_is_neither_held_nor_owned(path: str) -> None:
    assert not locks.is_held(path)
    assert lock_owner.owner(path) is None
    assert lock_holders.holders(path) == []


_WAITER = r"""
import os, sys
from holdfast.store import lock as locks
os.write(1, b"waits\n")
lock = locks.acquire(sys.argv[1], role="waiter", within_s=30.0)
os.write(1, b"held\n")
sys.stdin.read()
"""


# ── a half of it is removed ──


#: Lock file and half to remove. An anchor that is the directory itself goes with everything in it.
HALVES = [
    (name, half)
    for name in ("lock", "runner.lock", "keeper.lock", "queue.db.lock")
    for half in ("file", "anchor")
    if half == "file" or anchor_of(f"/folder/{name}") != "/folder"
]


def remove(path: str, half: str) -> None:
    os.unlink(path) if half == "file" else os.rmdir(anchor_of(path))


@pytest.mark.starts_processes
@pytest.mark.req("PKT-17")
@pytest.mark.parametrize(("name", "half"), HALVES)
def test_a_lock_with_one_half_removed_is_held(place, name: str, half: str) -> None:
    """And a waiting process gets it when its owner dies."""
    any_path = os.path.join(place.root, "folder", name)
    os.mkdir(os.path.dirname(any_path))
    first = holder(any_path)
    assert first.stdout.readline() == b"held\n"
    remove(any_path, half)
    assert locks.is_held(any_path)
    with pytest.raises(LockHeld):
        locks.acquire(any_path, role="test")
    assert locks.is_held(any_path)
    waiter = subprocess.Popen(
        [sys.executable, "-c", _WAITER, any_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert waiter.stdout.readline() == b"waits\n"
    assert locks.is_held(any_path)
    first.communicate(timeout=10)
    assert waiter.stdout.readline() == b"held\n"
    assert locks.is_held(any_path)
    assert lock_owner.owner(any_path).pid == waiter.pid
    waiter.communicate(timeout=10)
    assert not locks.is_held(any_path)


@pytest.mark.parametrize("half", ["file", "anchor"])
def test_the_owner_puts_back_what_was_removed(place, half: str) -> None:
    path = os.path.join(place.root, "keeper.lock")
    lock = locks.acquire(path, role="test")
    for _ in range(3):
        remove(path, half)
        assert lock.mend()
        assert os.path.isdir(anchor_of(path))
        assert lock_owner.owner(path).pid == os.getpid()
        assert lock_owner.role(path) == "test"
    # Both halves are locked again: each alone keeps others out.
    os.unlink(path)
    assert locks.is_held(path)
    assert lock.mend()
    os.rmdir(anchor_of(path))
    assert locks.is_held(path)
    assert lock.mend()
    lock.release()
    assert not locks.is_held(path)


def test_an_owner_without_either_half_is_none(place) -> None:
    path = os.path.join(place.root, "keeper.lock")
    lock = locks.acquire(path, role="test")
    remove(path, "file")
    remove(path, "anchor")
    assert not lock.mend()
    assert not os.path.exists(path)
    taken = locks.acquire(path, role="other")
    assert not lock.mend()
    assert lock_owner.role(path) == "other"
    taken.release()
    lock.release()


def test_removed_with_its_anchor_by_the_owner_itself(place) -> None:
    path = os.path.join(place.root, "sessions.lock")
    lock = locks.acquire(path, role="test")
    lock.unlink()
    lock.release()
    assert os.listdir(place.root) == []


def test_where_directories_cannot_be_locked_the_file_is_the_lock(
    place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS."""
    flock = fcntl.flock

    def of_nfs(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", of_nfs)
    path = os.path.join(place.root, "keeper.lock")
    assert not locks.is_held(path)
    lock = locks.acquire(path, role="test")
    assert not lock.is_anchored
    assert locks.is_held(path)
    with pytest.raises(LockHeld):
        locks.acquire(path, role="test", within_s=0.0)
    assert lock.mend()
    os.unlink(path)
    assert not lock.mend(), "it must leave"
    assert not os.path.exists(path)
    lock.release()


def listening(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)


@pytest.mark.parametrize("makes", ["directory", "pipe", "socket", "dangling", "zero"])
def test_what_is_no_file_is_put_aside(place, makes: str) -> None:
    path = os.path.join(place.root, "keeper.lock")
    make = {
        "directory": os.mkdir,
        "pipe": os.mkfifo,
        "socket": listening,
        "dangling": lambda path: os.symlink("/nowhere/else", path),
        "zero": lambda path: os.symlink("/dev/zero", path),
    }[makes]
    make(path)
    assert lock_owner.owner(path) is None
    assert not locks.is_held(path)
    lock = locks.acquire(path, role="test")
    assert lock_owner.owner(path).pid == os.getpid()
    assert os.path.lexists(f"{path}.aside-1")
    os.unlink(path)
    make(path)
    assert lock.mend()
    assert lock_owner.owner(path).pid == os.getpid()
    lock.release()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE])
def test_a_lock_that_cannot_be_checked_is_not_taken_for_free(
    path: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    locks.acquire(path, role="test").release()
    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StorageError, match="cannot check"):
        locks.is_held(path)


def test_a_second_name_of_a_user_s_file_is_not_written(path: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine\n")
    os.link(precious, path)
    lock = locks.acquire(path, role="test", within_s=0.0)
    assert precious.read_text() == "mine\n"
    assert locks.is_held(path)
    os.unlink(path)
    os.link(precious, path)
    assert lock.mend()
    assert precious.read_text() == "mine\n"
    owner = lock_owner.owner(path)
    assert owner is not None
    assert owner.pid == os.getpid()
    lock.release()


def test_a_second_name_that_a_backup_made_frees_no_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "keeper.lock")
    lock = locks.acquire(path, role="test", within_s=0.0)
    os.link(path, tmp_path / "backup")
    os.rmdir(anchor_of(path))
    with pytest.raises(LockHeld):
        locks.acquire(path, role="test", within_s=0.0)
    assert lock.mend()
    lock.release()
    locks.acquire(path, role="test", within_s=0.0).release()


def test_many_locks_are_asked_at_once_and_doubtful_ones_are_left_out(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for name in ("held", "free", "pipe", "link", "gone"):
        os.mkdir(f"{folder}/{name}")
    held = locks.acquire(f"{folder}/held/runner.lock", role="runner")
    locks.acquire(f"{folder}/free/runner.lock", role="runner").release()
    os.mkfifo(f"{folder}/pipe/runner.lock")
    os.symlink(f"{folder}/held/runner.lock", f"{folder}/link/runner.lock")
    names = [f"{name}/runner.lock" for name in ("held", "free", "pipe", "link", "gone", "none")]
    assert locks.held_among(folder, names) == {"held/runner.lock"}
    os.unlink(held.path)  # a cleaner of lock files: only the anchor is left
    assert locks.held_among(folder, names) == set()
    assert locks.is_held(held.path)
    held.release()
    assert locks.held_among(f"{folder}/none", names) == set()
