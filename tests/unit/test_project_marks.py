"""What marks the root of a project, and that a mark is noticed whenever it is made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast import program_search
from tests.support.waiting import eventually


def _tick(path: Path) -> None:
    """The clock of a file system has ticks: wait for the next one."""
    beside, last = path.with_name("beside"), path.stat().st_ctime_ns
    eventually(lambda: beside.touch() or beside.stat().st_ctime_ns > last)


def test_a_mark_that_is_made_later_is_noticed_though_times_are_set_back(tmp_path: Path) -> None:
    before = tmp_path.stat()
    assert not program_search.is_marked(str(tmp_path))
    _tick(tmp_path)
    (tmp_path / ".git").mkdir()
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert program_search.is_marked(str(tmp_path))
    _tick(tmp_path)
    (tmp_path / ".git").rmdir()
    assert not program_search.is_marked(str(tmp_path))


def test_a_directory_of_cvs_is_one_with_entries(tmp_path: Path) -> None:
    (tmp_path / "CVS").mkdir()
    assert not program_search.is_marked(str(tmp_path))
    (tmp_path / "CVS" / "Entries").touch()
    assert program_search.is_marked(str(tmp_path))


def test_an_unchanged_directory_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    exists = os.path.lexists
    monkeypatch.setattr(os.path, "lexists", lambda path: asked.append(path) or exists(path))
    for _ in range(2):
        assert not program_search.is_marked(str(tmp_path))
    assert len(set(asked)) == len(asked) > 1
