"""The inbox: reading whatever is in it."""

from __future__ import annotations

import json
import os
import select

import pytest

from holdfast.errors import HoldfastError
from holdfast.model.request import Request
from holdfast.packet import inbox
from holdfast.store.layout import Packet


@pytest.fixture
def packet(place) -> Packet:
    packet = Packet(os.path.join(place.root, "task"))
    os.makedirs(packet.inbox)
    os.mkfifo(packet.bell)
    return packet


@pytest.mark.req("PKT-21")
def test_what_was_dropped_is_read_in_its_order(packet: Packet) -> None:
    dropped = [inbox.drop(packet, "stop", {"reason": str(number)}, by="me") for number in range(20)]
    names = inbox.names(packet)
    assert names == [f"{request.id}.json" for request in dropped]
    assert [inbox.read(packet, name) for name in names] == dropped
    assert os.stat(packet.request(dropped[0].id)).st_mode & 0o777 == 0o600


def test_a_listener_that_leaves_while_it_is_rung_does_not_listen(
    packet: Packet, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = os.open(packet.bell, os.O_RDONLY | os.O_NONBLOCK)
    looked_at = os.fstat

    def leave(descriptor: int) -> os.stat_result:
        os.close(listener)
        monkeypatch.undo()
        return looked_at(descriptor)

    monkeypatch.setattr(os, "fstat", leave)  # between opening the bell and writing to it
    assert inbox.ring(packet) is False


@pytest.mark.req("PKT-21")
def test_only_plain_files_with_a_name_are_requests(packet: Packet) -> None:
    os.mkfifo(os.path.join(packet.inbox, "a.json"))
    os.mkdir(os.path.join(packet.inbox, "b.json"))
    os.symlink("/dev/zero", os.path.join(packet.inbox, "c.json"))
    for name in (".d.json", "e.txt", ".f.json.1-2.tmp"):
        with open(os.path.join(packet.inbox, name), "wb"):
            pass
    assert inbox.names(packet) == []


@pytest.mark.parametrize("field", ["id", "verb", "by", "at", "args"])
@pytest.mark.parametrize("value", [None, 5, [], ["a"], {"a": 1}, "other"])
def test_a_field_of_the_wrong_type_is_reported_and_not_raised(
    packet: Packet, field: str, value: object
) -> None:
    good = Request(id="x", verb="stop", args={}, by="me", at="now").to_json()
    with open(os.path.join(packet.inbox, "x.json"), "w", encoding="utf-8") as file:
        json.dump({**good, field: value}, file)
    found = inbox.read(packet, "x.json")
    fits = type(value) is dict if field == "args" else isinstance(value, str) and field != "id"
    assert isinstance(found, Request if fits else HoldfastError)


def test_too_much_is_refused_without_being_read_into_the_journal(packet: Packet) -> None:
    inbox.drop(packet, "stop", {"reason": "x" * inbox.MAX_BYTES}, by="me")
    found = inbox.read(packet, inbox.names(packet)[0])
    assert isinstance(found, HoldfastError)
    assert len(str(found)) < 500


def test_a_bell_without_listener_or_with_a_full_pipe(packet: Packet) -> None:
    assert not inbox.ring(packet)
    listener = os.open(packet.bell, os.O_RDWR | os.O_NONBLOCK)
    assert inbox.ring(packet)
    while _has_room(listener):
        os.write(listener, b"!" * 4096)
    assert inbox.ring(packet)
    os.close(listener)
    os.unlink(packet.bell)
    assert not inbox.ring(packet)


def _has_room(descriptor: int) -> bool:
    return bool(select.select([], [descriptor], [], 0)[1])


@pytest.mark.parametrize("what", ["directory", "file", "link"])
def test_a_broken_bell_or_inbox_wakes_nothing(packet: Packet, what: str) -> None:
    os.unlink(packet.bell)
    if what == "directory":
        os.mkdir(packet.bell)
    elif what == "link":
        os.symlink(packet.bell, packet.bell)
    else:
        os.rmdir(packet.inbox)
        with open(packet.inbox, "wb"):
            pass
        assert inbox.names(packet) == []
        return
    assert not inbox.ring(packet)
