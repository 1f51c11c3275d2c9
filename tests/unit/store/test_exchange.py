"""A file in the place of another, without a wait for the disk."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from holdfast.store import atomic, exchange


@pytest.mark.parametrize("has_call", [True, False], ids=["exchange", "rename"])
def test_it_is_there_whether_or_not_something_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_call: bool
) -> None:
    if not has_call:
        monkeypatch.setattr(exchange, "_renameat2", None)
    path = str(tmp_path / "file.json")
    for number in range(3):
        atomic.write_json(path, {"number": number}, durable=False, place=exchange.place)
        assert atomic.read_json(path) == {"number": number}
        assert os.listdir(tmp_path) == ["file.json"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges names")
def test_names_are_exchanged_and_not_one_put_over_the_other(tmp_path: Path) -> None:
    """What a rename cannot do: so it can be told which of them it was."""
    path = tmp_path / "file.json"
    path.mkdir()
    with pytest.raises(atomic.StorageError):
        atomic.write_json(str(path), {}, durable=False)
    atomic.write_json(str(path), {"is": "there"}, durable=False, place=exchange.place)
    assert atomic.read_json(str(path)) == {"is": "there"}


def test_a_reader_never_finds_half_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "file.json")
    atomic.write_json(path, {"text": ""}, durable=False)
    writer = os.fork()
    if not writer:
        for number in range(2000):
            text = {"text": str(number % 10) * 20000}
            atomic.write_json(path, text, durable=False, place=exchange.place)
        os._exit(0)
    looks = 0
    while os.waitpid(writer, os.WNOHANG)[0] == 0:
        found = atomic.read_json(path)
        assert found is not None
        assert len(set(found["text"])) <= 1
        looks += 1
    assert looks > 10


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        exchange.place(str(tmp_path / "gone" / "a"), str(tmp_path / "gone" / "b"))
