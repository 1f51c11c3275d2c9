"""Files that are whole or not there."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from holdfast.errors import CorruptFile, DiskFull, NotFound
from holdfast.store import atomic
from tests.conftest import Place


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


def test_a_missing_directory_is_reported(place) -> None:
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


def test_what_is_not_there_reads_as_none_and_may_be_removed(path: str) -> None:
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


@pytest.mark.starts_processes
def test_only_temporaries_of_dead_writers_are_removed_where_others_write(place) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(timeout=30)
    kept = [f".a.json.{os.getpid()}-1.tmp", ".b.json.1-7.tmp", "c.json", ".d.tmp", ".odd.name.tmp"]
    kept += [".g.².tmp", f".h.{10**20}.tmp"]  # no numbers of processes
    dead = [f".e.json.{gone.pid}-1.tmp", f".f.{gone.pid}-22.tmp"]
    for name in (*kept, *dead):
        with open(os.path.join(place.root, name), "wb"):
            pass
    atomic.forget_temporaries(place.root, only_of_the_dead=True)
    assert sorted(os.listdir(place.root)) == sorted(kept)
    atomic.forget_temporaries(place.root)
    assert os.listdir(place.root) == ["c.json"]


@pytest.mark.parametrize("kind", ["nothing", "directory", "file", "link", "pipe"])
def test_a_directory_is_made_whatever_is_in_its_way(place, kind: str) -> None:
    path, elsewhere = os.path.join(place.root, "state"), os.path.join(place.root, "elsewhere")
    os.mkdir(elsewhere)
    {
        "nothing": lambda: None,
        "directory": lambda: os.mkdir(path, 0o700),
        "file": lambda: atomic.write(path, b"x", durable=False),
        "link": lambda: os.symlink(elsewhere, path),
        "pipe": lambda: os.mkfifo(path),
    }[kind]()
    for _ in range(2):
        atomic.make_directory(path)
        assert os.path.isdir(path)
        assert not os.path.islink(path)
        assert os.stat(path).st_mode & 0o777 == 0o700
    aside = ["state.aside-1"] if kind in ("file", "link", "pipe") else []
    assert sorted(os.listdir(place.root)) == sorted(["elsewhere", "state", *aside])


def test_many_make_the_same_directory_at_once(place) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(200):
            path = os.path.join(place.root, f"shared-{number}")
            together = Barrier(8)

            def make(_: int, path: str = path, together: Barrier = together) -> None:
                together.wait(10)
                atomic.make_directory(path)

            assert list(pool.map(make, range(8))) == [None] * 8


def test_a_small_file_is_read_and_nothing_else(place) -> None:
    names = {name: os.path.join(place.root, name) for name in ("file", "link", "pipe", "folder", "missing")}
    atomic.write(names["file"], b"0123456789", durable=False)
    os.symlink(names["file"], names["link"])
    os.mkfifo(names["pipe"])
    os.mkdir(names["folder"])
    found = {name: atomic.read_small(path, 4) for name, path in names.items()}
    assert found == {"file": b"0123", "link": None, "pipe": None, "folder": None, "missing": None}


@pytest.mark.parametrize("text", ["\ud83d", "a\udcff", "\udfff\ud800", "Grüße 🦑"])
def test_text_that_is_none_survives_its_file(path: str, text: str) -> None:
    atomic.write_json(path, {"text": text, text: 1}, durable=False)
    with open(path, encoding="utf-8") as file:
        json.load(file)
    assert atomic.read_json(path) == {"text": text, text: 1}


@pytest.mark.parametrize("folder", ["tasks/mine/reports", "tasks/reports"])
def test_a_link_of_the_user_is_followed_also_below_a_folder_named_tasks(place: Place, folder: str) -> None:
    path, elsewhere = os.path.join(place.root, folder), os.path.join(place.root, "elsewhere")
    os.makedirs(os.path.dirname(path))
    os.mkdir(elsewhere)
    os.symlink(elsewhere, path)
    atomic.write(os.path.join(path, "file"), b"data", durable=False)
    atomic.make_directory(os.path.join(path, "inner"))
    assert os.path.islink(path)
    assert sorted(os.listdir(elsewhere)) == ["file", "inner"]
