"""Copying a written packet's inputs: files only, from inside, and not without end."""

from __future__ import annotations

import os
import stat

import pytest

from holdfast.errors import UnreadableFile, UsageError
from holdfast.packet import inputs


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "inputs"
    (folder / "attachments").mkdir(parents=True)
    (folder / "user_request.md").write_bytes(b"do it")
    (folder / "attachments" / "a").write_bytes(b"\x00\xff")
    return folder


def test_files_and_folders_are_copied_for_the_owner_only(source, tmp_path) -> None:
    (source / "attachments" / "a").chmod(0o777)
    inputs.copy(str(source), str(tmp_path / "out"), except_for=("user_request.md",))
    copied = tmp_path / "out" / "attachments" / "a"
    assert copied.read_bytes() == b"\x00\xff"
    assert stat.S_IMODE(copied.stat().st_mode) == 0o600
    assert not (tmp_path / "out" / "user_request.md").exists()


def test_a_link_inside_is_followed_and_one_that_leaves_is_refused(source, tmp_path) -> None:
    (source / "inner").symlink_to("attachments/a")
    inputs.copy(str(source), str(tmp_path / "out"))
    assert not (tmp_path / "out" / "inner").is_symlink()
    (source / "outer").symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match="a link to a file outside the packet"):
        inputs.copy(str(source), str(tmp_path / "out2"))


@pytest.mark.parametrize(
    ("target", "message"),
    [("nowhere", "a broken link"), ("attachments", "a link, but"), ("loop", "a broken link")],
)
def test_a_link_to_no_file_is_refused(source, tmp_path, target: str, message: str) -> None:
    (source / "loop").symlink_to(target)
    with pytest.raises(UsageError, match=message):
        inputs.copy(str(source), str(tmp_path / "out"))


def test_a_fifo_is_refused_and_not_waited_for(source, tmp_path) -> None:
    os.mkfifo(source / "pipe")
    with pytest.raises(UsageError, match="neither a file nor a directory"):
        inputs.copy(str(source), str(tmp_path / "out"))


def test_too_much_is_refused(source, tmp_path) -> None:
    with open(source / "big", "wb") as file:
        file.truncate(inputs.MAX_BYTES + 1)
    with pytest.raises(UsageError, match="larger than 256 MB"):
        inputs.copy(str(source), str(tmp_path / "out"))


def test_folders_without_end_are_refused(source, tmp_path) -> None:
    os.makedirs(source / "/".join("d" * 40))
    with pytest.raises(UsageError, match="more than 32 nested directories"):
        inputs.copy(str(source), str(tmp_path / "out"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_named(source, tmp_path) -> None:
    (source / "attachments" / "a").chmod(0)
    with pytest.raises(UnreadableFile):
        inputs.copy(str(source), str(tmp_path / "out"))


def test_missing_inputs_copy_nothing(tmp_path) -> None:
    inputs.copy(str(tmp_path / "none"), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_link_out_of_the_packet_is_not_read(tmp_path) -> None:
    folder = tmp_path / "packet"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"correct horse")
    (folder / "own").write_bytes(b"own")
    (folder / "request").symlink_to(tmp_path / "secret")
    (folder / "alias").symlink_to(folder / "own")
    with pytest.raises(OSError, match="outside"):
        inputs.contents(str(folder / "request"), 100, inside=str(folder))
    assert inputs.contents(str(folder / "alias"), 100, inside=str(folder)) == b"own"
