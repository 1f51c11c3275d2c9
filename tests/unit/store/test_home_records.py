"""Where the records of a home are found after it got another path, and who moves them."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.store import admitted, home_records, layout
from holdfast.store import lock as locks
from holdfast.store.layout import Home


@pytest.fixture
def kept(tmp_path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A home with records."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.delenv("HOLDFAST_TRUST_DIR", raising=False)
    home = os.path.realpath(tmp_path / "home")
    os.mkdir(home)
    write(home)
    return home


def write(home: str) -> None:
    admitted.admit_schedule(Home(home), "daily", {})


def places(home: str) -> list[str]:
    folder = os.path.dirname(layout.records_of(home))
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


def change_note(place: str, **changes: object) -> None:
    path = os.path.join(place, "home.json")
    with open(path, encoding="utf-8") as file:
        note = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**note, **changes}, file)


def note_of(place: str) -> dict[str, object]:
    with open(os.path.join(place, "home.json"), encoding="utf-8") as file:
        return json.load(file)


def move(home: str) -> str:
    os.rename(home, home + "-moved")
    return home + "-moved"


def test_a_reader_moves_nothing_and_a_writer_does(kept: str) -> None:
    place = layout.records_of(kept)
    moved = move(kept)
    assert home_records.find(moved)[0] == place
    assert places(moved) == [place]
    write(moved)
    new = layout.records_of(moved)
    assert places(moved) == [new] != [place]
    assert note_of(new)["path"] == moved


def test_records_are_found_after_a_kill_between_the_two_steps(kept: str) -> None:
    """The records have moved, their note is the old one; then the home is renamed back."""
    moved = move(kept)
    write(moved)
    place = layout.records_of(moved)
    change_note(place, path=kept)
    os.rename(moved, kept)
    assert layout.records_of(kept) == place
    write(kept)
    assert len(places(kept)) == 1
    assert note_of(layout.records_of(kept))["path"] == kept


def test_a_writer_notes_the_device_of_now(kept: str) -> None:
    """It may change with a reboot."""
    place = layout.records_of(kept)
    change_note(place, device=1)
    write(kept)
    assert layout.records_of(move(kept)) == place


def test_records_stay_under_a_running_keeper(kept: str) -> None:
    """It may see the home at another path, as a container does. A writer uses the same."""
    place = layout.records_of(kept)
    moved = move(kept)
    lock = locks.acquire(Home(moved).keeper_lock, role="keeper")
    write(moved)
    assert layout.records_of(moved) == place
    lock.release()
    write(moved)
    assert layout.records_of(moved) != place


def test_a_process_finds_records_that_another_one_has_moved(kept: str) -> None:
    place = layout.records_of(kept)
    assert layout.records_of(kept) == place  # and remembers it
    folder, name = os.path.split(place)
    os.rename(place, os.path.join(folder, "0" * 32 + name[32:]))
    change_note(places(kept)[0], path="/elsewhere/home")
    assert [layout.records_of(kept)] == places(kept)


def test_a_home_whose_device_is_now_that_of_another_one_keeps_its_records(kept: str) -> None:
    """After a reboot, another volume has its number, and its inode: that of a file system's root."""
    place = layout.records_of(kept)
    mode, inode, device, *rest = os.stat(kept)
    change_note(place, device=device + 1)
    other = os.stat_result((mode, inode, device + 1, *rest))
    assert not home_records._are_of(place, other)  # pyright: ignore[reportPrivateUsage]


def test_a_link_to_the_records_does_not_count(kept: str) -> None:
    place = layout.records_of(kept)
    os.rename(place, kept + "-records")
    os.symlink(kept + "-records", place)
    assert not os.path.isdir(home_records.find(kept)[0])
