"""Reading attachments."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import ForbiddenInput, UnreadableFile
from holdfast.pipeline.prompt import attachments
from holdfast.pipeline.prompt.attachments import Attachment, read, read_input, shown
from holdfast.pipeline.prompt.forbidden import Forbidden
from holdfast.store.layout import Packet

FREE = Forbidden([])


@pytest.fixture
def packet(tmp_path: object) -> Packet:
    found = Packet(os.path.join(str(tmp_path), "task"))
    os.makedirs(found.attachments)
    return found


def put(packet: Packet, name: str, data: bytes = b"text\n") -> str:
    path = os.path.join(packet.attachments, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def test_files_are_read_by_name_with_those_in_folders(packet: Packet) -> None:
    for name in ("notes.md", "git.diff", "logs/b.txt", "logs/a.txt"):
        put(packet, name, name.encode())
    assert [(each.name, each.text) for each in read(packet, FREE)] == [
        ("git.diff", "git.diff"),
        ("notes.md", "notes.md"),
        ("logs/a.txt", "logs/a.txt"),
        ("logs/b.txt", "logs/b.txt"),
    ]


def test_no_attachments_are_none(packet: Packet) -> None:
    assert read(packet, FREE) == []
    os.rmdir(packet.attachments)
    assert read(packet, FREE) == []


def test_named_files_come_too(packet: Packet, tmp_path: object) -> None:
    path = os.path.join(str(tmp_path), "elsewhere.log")
    with open(path, "w", encoding="utf-8") as file:
        file.write("x")
    assert [each.name for each in read(packet, FREE, named=[path])] == ["elsewhere.log"]
    with pytest.raises(UnreadableFile):
        read(packet, FREE, named=[path + ".gone"])
    with pytest.raises(ForbiddenInput):
        read(packet, Forbidden(["elsewhere.*"]), named=[path])


@pytest.mark.parametrize("data", [b"\x89PNG\0\0", b"\xff\xfea\0b\0", bytes(range(128, 256)) * 9])
def test_a_binary_file_is_named_and_not_included(packet: Packet, data: bytes) -> None:
    put(packet, "a.bin", data)
    (found,) = read(packet, FREE)
    assert (found.name, found.text, found.size_bytes) == ("a.bin", None, len(data))
    text, said = shown(found, lines=200)
    assert str(len(data)) in text
    assert "only named" in said


def test_a_log_with_a_stray_byte_is_a_text(packet: Packet) -> None:
    put(packet, "logs.txt", b"fine\n" * 50 + b"\xff\n")
    (found,) = read(packet, FREE)
    assert found.text is not None
    assert found.text.endswith("\ufffd\n")


@pytest.mark.req("CTX-3")
@pytest.mark.parametrize("name", [".env", "secrets/db.json", "deep/er/key.pem"])
def test_a_forbidden_file_is_refused(packet: Packet, name: str) -> None:
    put(packet, name)
    with pytest.raises(ForbiddenInput, match="forbidden path"):
        read(packet, Forbidden([".env", "secrets/", "*.pem"]))


@pytest.mark.req("CTX-3")
def test_a_link_that_leads_out_is_refused_and_one_inside_is_followed(
    packet: Packet, tmp_path: object
) -> None:
    outside = os.path.join(str(tmp_path), "outside")
    os.mkdir(outside)
    put(packet, "a.txt", b"inside")
    os.symlink("a.txt", os.path.join(packet.attachments, "b.txt"))
    assert [each.text for each in read(packet, FREE)] == ["inside", "inside"]
    link = os.path.join(packet.attachments, "c")
    for target in (outside, "/etc/hostname", "../../../outside"):
        os.symlink(target, link)
        with pytest.raises(ForbiddenInput, match="link out of the packet"):
            read(packet, FREE)
        os.unlink(link)
    os.symlink("/etc/hostname", packet.user_request)
    with pytest.raises(ForbiddenInput, match="link out of the packet"):
        read_input(packet, packet.user_request)


@pytest.mark.req("CTX-3")
def test_a_link_to_a_forbidden_file_is_refused_whatever_its_own_name(packet: Packet) -> None:
    path = os.path.join(packet.inputs, "key.pem")
    with open(path, "w", encoding="utf-8") as file:
        file.write("x")
    os.symlink(path, os.path.join(packet.attachments, "notes.md"))
    with pytest.raises(ForbiddenInput, match="forbidden path"):
        read(packet, Forbidden(["*.pem"]))


def test_a_pipe_is_refused_without_blocking(packet: Packet) -> None:
    os.mkfifo(os.path.join(packet.attachments, "pipe"))
    with pytest.raises(UnreadableFile, match="not a regular file"):
        read(packet, FREE)


@pytest.mark.req("W-B6")
def test_a_huge_file_is_read_at_both_ends_with_a_note(
    packet: Packet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "MAX_BYTES", 1000)
    monkeypatch.setattr(attachments, "_END_BYTES", 100)
    data = b"".join(b"line %04d\n" % number for number in range(500))
    put(packet, "logs.txt", data)
    (found,) = read(packet, FREE)
    assert found.text is not None
    lines = found.text.split("\n")
    assert lines[0] == "line 0000"
    assert lines[-2] == "line 0499"
    assert f"bytes cut here: the file has {len(data)}" in found.text
    assert all(line.startswith(("line ", "[… about ")) for line in lines[:-1])
    assert found.size_bytes == len(data)


def test_when_enough_was_read_only_the_ends_of_later_files_are(
    packet: Packet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "_ENOUGH_BYTES", 100)
    monkeypatch.setattr(attachments, "_SHORT_END_BYTES", 20)
    for name in ("a.txt", "b.txt", "c.txt"):
        put(packet, name, b"0123456\n" * 15)
    first, second, third = read(packet, FREE)
    assert first.text == "0123456\n" * 15
    assert [each.text.count("0123456") if each.text else 0 for each in (second, third)] == [4, 4]


def test_a_tree_of_files_is_not_attached_whole(packet: Packet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_FILES", 3)
    for number in range(5):
        put(packet, f"{number}.txt")
    found = read(packet, FREE)
    assert len(found) == 4
    assert "left out" in found[-1].name


@pytest.mark.req("CTX-5", "W-B6")
def test_what_was_cut_is_said_in_the_text_and_beside_it() -> None:
    text = "".join(f"{number}\n" for number in range(500))
    cut, said = shown(Attachment(name="a", text=text, size_bytes=len(text)), lines=200)
    assert "[… 100 lines (400 bytes) cut here …]" in cut
    assert said == f"{len(text)} bytes, 100 lines (400 bytes) cut"
    assert shown(Attachment(name="a", text="x" * 9000), lines=200)[1] == "9000 bytes, 1 long lines cut"
    assert "no room" in shown(Attachment(name="a", text=text), lines=0)[0]


def test_a_missing_input_is_skipped_and_a_picture_is_an_error(packet: Packet) -> None:
    assert read_input(packet, packet.context_pack) is None
    with open(packet.context_pack, "wb") as file:
        file.write(b"\0\0")
    with pytest.raises(UnreadableFile, match="not a text"):
        read_input(packet, packet.context_pack)
