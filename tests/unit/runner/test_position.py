"""state/ingest: how far the raw logs were read, across kills, for several attempts, by earlier versions."""

from __future__ import annotations

import os

import pytest

from holdfast.runner.output.position import IngestPosition
from holdfast.store.layout import Home, Packet


@pytest.fixture
def packet(home: str) -> Packet:
    found = Home(home).packet("t")
    os.makedirs(found.state)
    return found


def shown(packet: Packet) -> str:
    with open(packet.output_log, encoding="utf-8") as file:
        return file.read()


def note(packet: Packet, text: str) -> None:
    with open(os.path.join(packet.state, "ingest"), "w", encoding="utf-8") as file:
        file.write(text)


def output(packet: Packet, text: str) -> None:
    with open(packet.output_log, "a", encoding="utf-8") as file:
        file.write(text)


def test_an_attempt_begins_at_the_beginning(packet: Packet) -> None:
    position = IngestPosition(packet)
    assert position.begin(1) == (0, 0)
    position.close()


def test_a_successor_goes_on_where_each_attempt_was(packet: Packet) -> None:
    first = IngestPosition(packet)
    first.begin(2)
    first.begin(3)
    first.show(["from the left"])
    first.reach(2, 100, 7)
    first.show(["from the right"])
    first.reach(3, 50, 0)
    first.close()
    second = IngestPosition(packet)
    assert (second.begin(3), second.begin(2), second.begin(4)) == ((50, 0), (100, 7), (0, 0))
    second.close()
    assert shown(packet) == "from the left\nfrom the right\n"


def test_what_was_shown_behind_the_note_is_cut_off(packet: Packet) -> None:
    first = IngestPosition(packet)
    first.begin(1)
    first.show(["noted"])
    first.reach(1, 10, 0)
    first.show(["shown, and then came the kill"])
    first.close()
    second = IngestPosition(packet)
    assert second.begin(1) == (10, 0)
    second.show(["shown again"])
    second.reach(1, 20, 0)
    second.close()
    assert shown(packet) == "noted\nshown again\n"


def test_a_kill_of_one_of_two_costs_the_other_nothing(packet: Packet) -> None:
    """Both write to output.log: lines without a recorded position are cut off, the others stay."""
    first = IngestPosition(packet)
    first.begin(1)
    first.begin(2)
    first.show(["one"])
    first.reach(1, 4, 0)
    first.show(["two, not noted"])
    first.close()
    second = IngestPosition(packet)
    assert (second.begin(1), second.begin(2)) == ((4, 0), (0, 0))
    second.close()
    assert shown(packet) == "one\n"


def test_an_attempt_that_ended_is_forgotten_with_the_next_note(packet: Packet) -> None:
    first = IngestPosition(packet)
    for number in (1, 2, 3):
        first.begin(number)
    first.end(1)
    first.end(2)
    first.reach(3, 9, 1)
    first.close()
    # The new content is shorter than the old one, whose end is still in the file.
    second = IngestPosition(packet)
    assert [second.begin(number) for number in (1, 2, 3)] == [(0, 0), (0, 0), (9, 1)]
    second.close()


def test_the_note_of_an_earlier_version_is_read(packet: Packet) -> None:
    output(packet, "noted\nnot noted\n")
    note(packet, f"{2:10d} {914:20d} {3:20d} {6:20d}\n")
    position = IngestPosition(packet)
    assert (position.begin(2), position.begin(3)) == ((914, 3), (0, 0))
    position.close()
    assert shown(packet) == "noted\n"


@pytest.mark.parametrize(
    "torn",
    ["", "\n", "x y z", "1", "1 2 3", "2 6\n1 1 1\n", "1 6\n1 two 3\n", "-1 -6\n", "1 -6\n1 2 3\n", "\0\0\0"],
)
def test_an_empty_note_is_ignored_and_nothing_is_lost(packet: Packet, torn: str) -> None:
    output(packet, "noted\n")
    note(packet, torn)
    position = IngestPosition(packet)
    assert position.begin(1)[1] in (0, 1, 3)
    position.close()
    assert shown(packet) == "noted\n"


def test_a_position_that_no_file_has_is_not_used(packet: Packet) -> None:
    note(packet, f"1 6\n1 {10**30} 3\n")
    position = IngestPosition(packet)
    assert position.begin(1) == (0, 0)
    position.close()


def test_a_shorter_output_is_left_as_it_is(packet: Packet) -> None:
    output(packet, "short\n")
    note(packet, f"{1:10d} {1000:20d}\n{1:10d} {5:20d} {0:20d}\n")
    position = IngestPosition(packet)
    position.begin(1)
    position.show(["more"])
    position.close()
    assert shown(packet) == "short\nmore\n"


def test_a_state_directory_that_was_removed_is_made_again(packet: Packet) -> None:
    os.rmdir(packet.state)
    position = IngestPosition(packet)
    position.begin(1)
    position.reach(1, 5, 0)
    position.close()
    again = IngestPosition(packet)
    assert again.begin(1) == (5, 0)
    again.close()
