"""An idle recorder: forked in advance, it executes one order later, or none."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import idle_recorder, recorder
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from tests.support import processes
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    yield
    idle_recorder.dismiss()


def waiting_pid() -> int:
    assert idle_recorder._waiting is not None  # pyright: ignore[reportPrivateUsage] -- whom else could the test kill?
    return idle_recorder._waiting.pid  # pyright: ignore[reportPrivateUsage]


def order(folder: Path, script: str, **env: str) -> recorder.Order:
    (folder / "in").write_bytes(b"")
    return recorder.Order(
        directory=str(folder),
        argv=["/bin/sh", "-c", script],
        env={"PATH": os.defpath, **env},
        cwd=str(folder),
        stdin=str(folder / "in"),
        umask=0o077,
        limits={},
    )


def hand_over(told: recorder.Order, *, keep: tuple[int, ...] = ()) -> int:
    """As a runner does it; returns the recorder's pid once the agent was executed."""
    lock = locks.acquire(os.path.join(told.directory, "lock"), role="runner")
    started, starting = os.pipe()
    pid = idle_recorder.send_order(
        told, lock.descriptors, starting, keep=keep, sign=lambda pid: lock_owner.signature("recorder", pid)
    )
    os.close(starting)
    lock.release()
    assert os.read(started, 1) == b""
    os.close(started)
    return pid


def exit_code(folder: Path, pid: int) -> int:
    os.waitpid(pid, 0)
    return json.loads((folder / "exit.json").read_text())["exit_code"]


def test_the_one_that_waits_starts_the_agent_and_holds_its_lock(tmp_path: Path) -> None:
    idle_recorder.prepare()
    waits = waiting_pid()
    go = tmp_path / "go"
    os.mkfifo(go)
    pid = hand_over(order(tmp_path, f"read x < {go}; exit 3"))
    assert pid == waits
    path = str(tmp_path / "lock")
    assert locks.is_held(path)
    owner = lock_owner.owner(path)
    assert owner is not None
    assert owner.pid == pid
    assert lock_owner.role(path) == "recorder"
    go.write_text("go\n")
    assert exit_code(tmp_path, pid) == 3
    assert not locks.is_held(path)


def test_an_order_of_any_size_and_any_bytes_arrives_whole(tmp_path: Path) -> None:
    weird = os.fsdecode(b"\xff\xfe ' \" \n \\")
    # More than a socket takes at once.
    many = {f"V{number}": "x" * 100_000 for number in range(10)}
    pid = hand_over(order(tmp_path, 'printf %s "$WEIRD" > got; printf %s "$V9" >> got', WEIRD=weird, **many))
    assert exit_code(tmp_path, pid) == 0
    assert (tmp_path / "got").read_bytes() == os.fsencode(weird) + b"x" * 100_000


def test_locks_to_keep_are_held_by_the_recorder_and_not_by_the_agent(tmp_path: Path) -> None:
    kept = os.open(tmp_path / "session.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(kept, fcntl.LOCK_EX)
    go = tmp_path / "go"
    os.mkfifo(go)
    pid = hand_over(order(tmp_path, f"read x < {go}"), keep=(kept,))
    os.close(kept)
    assert locks.is_held(str(tmp_path / "session.lock"))
    agent = json.loads((tmp_path / "identity.json").read_text())["pid"]
    # Its loader has a file open for a moment.
    eventually(lambda: set(os.listdir(f"/proc/{agent}/fd")) == {"0", "1", "2"}, what="it has no other")
    go.write_text("go\n")
    assert exit_code(tmp_path, pid) == 0
    assert not locks.is_held(str(tmp_path / "session.lock"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_one_that_was_killed_or_stopped_while_it_waited_costs_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    idle_recorder.prepare()
    waits = waiting_pid()
    os.kill(waits, number)
    if number is signal.SIGKILL:
        eventually(lambda: not processes.is_alive(waits), what="it is dead")
    pid = hand_over(order(tmp_path, "exit 4"))
    assert (pid == waits) == (number is signal.SIGSTOP)
    assert exit_code(tmp_path, pid) == 4


def test_it_leaves_with_its_runner_and_starts_nothing_from_half_an_order(tmp_path: Path) -> None:
    idle_recorder.prepare()
    found = idle_recorder._waiting  # pyright: ignore[reportPrivateUsage]
    assert found is not None
    lock = locks.acquire(str(tmp_path / "lock"), role="runner")
    rights = (
        idle_recorder._socket.SOL_SOCKET,
        idle_recorder._socket.SCM_RIGHTS,
        idle_recorder._DESCRIPTOR.pack(lock.descriptor),
    )  # pyright: ignore[reportPrivateUsage]
    found.channel.sendmsg([idle_recorder._LENGTHS.pack(10, 10, 980) + b"half"], [rights])  # pyright: ignore[reportPrivateUsage]
    lock.release()
    assert locks.is_held(str(tmp_path / "lock"))
    found.channel.close()
    assert os.waitpid(found.pid, 0)[1] == 0
    idle_recorder._waiting = None  # pyright: ignore[reportPrivateUsage]
    assert not locks.is_held(str(tmp_path / "lock"))
    assert os.listdir(tmp_path) == ["lock"]


# ── files that an agent of another task planted before the start ──


@pytest.mark.parametrize("name", ["stdout.log", "stderr.log"])
@pytest.mark.parametrize("plant", ["second name", "pipe", "directory"])
def test_a_planted_log_is_put_aside(tmp_path: Path, name: str, plant: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine\n")
    if plant == "second name":
        os.link(precious, tmp_path / name)
    else:
        (os.mkfifo if plant == "pipe" else os.mkdir)(tmp_path / name)
    pid = hand_over(order(tmp_path, "echo evil; echo evil >&2"))
    assert exit_code(tmp_path, pid) == 0
    assert (tmp_path / name).read_text() == "evil\n"
    assert precious.read_text() == "mine\n"
    assert len(list(tmp_path.glob(f"{name}.aside-*"))) == 1


@pytest.mark.parametrize("plant", ["pipe", "link"])
def test_a_planted_input_does_not_block_the_start(tmp_path: Path, plant: str) -> None:
    told = order(tmp_path, "cat")
    os.unlink(told.stdin)
    os.mkfifo(told.stdin) if plant == "pipe" else os.symlink("/etc/hostname", told.stdin)
    pid = hand_over(told)
    os.waitpid(pid, 0)
    expected = errno.EINVAL if plant == "pipe" else errno.ELOOP
    assert json.loads((tmp_path / "exit.json").read_text())["exec_errno"] == expected
