"""A full disk whose blocks are smaller than a page: SQLite maps a file with holes, which cannot be filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.conftest import Place
from tests.support.tasks import holdfast, workspace
from tests.support.tools import give_up, need


@pytest.fixture
def small_blocks(place: Place) -> Iterator[str]:
    """A file system of 8 MB with blocks of 1 KB."""
    need("mount", "umount", "mkfs.ext4")
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    image, path = os.path.join(place.root, "image"), os.path.join(place.root, "disk")
    os.mkdir(path)
    with open(image, "wb") as file:
        file.truncate(8 * 1024 * 1024)
    made = ["mkfs.ext4", "-q", "-b", "1024", "-m", "0", "-O", "^has_journal", image]
    subprocess.run(made, timeout=60, check=True)
    mounted = subprocess.run(["mount", "-o", "loop", image, path], timeout=20, check=False)
    if mounted.returncode != 0:
        give_up("no loop device")
    yield path
    subprocess.run(["umount", "--lazy", path], timeout=20, check=True)


def fill(path: str, *, but: int) -> None:
    """Leave room for `but` bytes."""
    hole = os.path.join(path, "hole")
    with open(hole, "wb") as file:
        file.write(b"0" * but)
    with open(os.path.join(path, "ballast"), "ab", buffering=0) as file:
        try:
            while True:
                file.write(b"0" * 1024)
        except OSError:
            os.remove(hole)


def test_no_command_dies_on_a_full_disk_with_small_blocks(
    small_blocks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", os.path.join(small_blocks, "home"))
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    monkeypatch.chdir(workspace())
    assert holdfast("run", "--id", "one", "--", "true").returncode == 0
    assert holdfast("submit", "--id", "two", "--", "true").returncode == 0
    for room in (24 * 1024, 10 * 1024, 0):
        fill(small_blocks, but=room)
        for words in (("ls",), ("status",), ("digest",), ("show", "two"), ("report",)):
            done = holdfast(*words)
            assert done.returncode == 0, (room, words, done)
        assert "one" in holdfast("ls").stdout
        for words in (("queue", "ls"), ("submit", "--", "true"), ("run", "--", "true")):
            done = holdfast(*words)
            assert done.returncode in (0, 3), (room, words, done)
            told = "full" in done.stderr or "No space left" in done.stderr
            assert done.returncode == 0 or told, (room, words, done)
        os.remove(os.path.join(small_blocks, "ballast"))
    assert holdfast("queue", "ls").returncode == 0
    assert "two" in holdfast("queue", "ls").stdout
