"""Files that are whole or not there."""

from __future__ import annotations

import errno
import os

import pytest

from holdfast.errors import CorruptFile, DiskFull, NotFound
from holdfast.store import atomic


@pytest.fixture
def path(place) -> str:
    return os.path.join(place.root, "file.json")


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize("durable", [True, False])
def test_a_write_replaces_the_file_as_a_whole(path: str, durable: bool) -> None:
    atomic.write_json(path, {"n": 1}, durable=durable)
    held = open(path, "rb")
    atomic.write_json(path, {"n": 2}, durable=durable)
    assert held.read() == b'{"n": 1}\n'  # a reader keeps what it opened
    held.close()
    assert atomic.read_json(path) == {"n": 2}
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(os.path.dirname(path)) == ["file.json"]


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize("point", ["atomic.before_fsync", "atomic.before_rename"])
def test_a_full_disk_leaves_the_old_file_and_no_other(
    path: str, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    atomic.write_json(path, {"n": 1}, durable=True)
    monkeypatch.setenv("HOLDFAST_FAILPOINT", f"{point}=enospc")
    with pytest.raises(DiskFull) as caught:
        atomic.write_json(path, {"n": 2}, durable=True)
    assert caught.value.exit_status == 3
    assert atomic.read_json(path) == {"n": 1}
    assert os.listdir(os.path.dirname(path)) == ["file.json"]


def test_a_directory_that_is_gone_is_told(place) -> None:
    with pytest.raises(NotFound):
        atomic.write(os.path.join(place.root, "gone", "x"), b"", durable=False)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"5", b"\xff", b"[" * 100_000, b'{"a":' * 50_000]
)
def test_what_is_no_json_object_is_corrupt(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
    with pytest.raises(CorruptFile, match=r"file\.json"):
        atomic.read_json(path)


def test_absent_files(path: str) -> None:
    assert atomic.read_json(path) is None
    atomic.remove(path)


def test_a_planted_symlink_is_replaced_and_not_followed(path: str, place) -> None:
    victim = os.path.join(place.root, "victim")
    with open(victim, "wb") as file:
        file.write(b"precious")
    os.symlink(victim, path)
    atomic.write(path, b"new", durable=True)
    with open(victim, "rb") as file:
        assert file.read() == b"precious"
    assert not os.path.islink(path)


def test_storage_errors_keep_their_reason() -> None:
    with pytest.raises(DiskFull, match="cannot do it: No space left"):
        atomic.storage_failed(OSError(errno.ENOSPC, "No space left on device"), "cannot do it")
