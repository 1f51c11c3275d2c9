"""The journal on a disk that becomes full, and one to which somebody else writes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.errors import DiskFull, ForgedJournal
from holdfast.model import events as ev
from holdfast.model.spec import Limits, TaskSpec
from holdfast.store import journal
from holdfast.store.seals import Seals


def test_a_short_write_and_a_full_disk_leave_no_part_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "events.jsonl")
    Path(path).touch()
    opened = journal.Journal(path)
    opened.append([ev.TaskMoved(old="spawning", new="running")])
    before, write, calls = os.path.getsize(path), os.write, []

    def full_after_ten_bytes(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:10])

    monkeypatch.setattr(os, "write", full_after_ten_bytes)
    with pytest.raises(DiskFull):
        opened.append([ev.TaskMoved(old="running", new="waiting")])
    monkeypatch.setattr(os, "write", write)
    assert len(calls) == 2
    assert (os.path.getsize(path), opened.size) == (before, before)

    opened.append([ev.TaskMoved(old="running", new="completed")])
    opened.close()
    events = [event for _, event in journal.read(path)]
    assert [event.new for event in events if isinstance(event, ev.TaskMoved)] == ["running", "completed"]
    assert len(events) == 2


def sealed(folder: Path) -> journal.Journal:
    """A journal with one line, as its runner opens it."""
    path = str(folder / "events.jsonl")
    spec = TaskSpec(
        task_id="a", task_name="a", goal="", agent="command", project_dir="/", stages=(), limits=Limits()
    )
    created = ev.TaskCreated(task_id="a", status="spawning", spec=spec.to_json())
    Path(path).touch()
    journal.Journal(path).append([created])
    return journal.Journal(path, folded=journal.fold_sealed(path, None), seals=Seals(str(folder / "seals")))


def test_what_others_write_during_an_append_is_noticed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = sealed(tmp_path)
    sync = os.fdatasync

    def forge(descriptor: int) -> None:
        sync(descriptor)
        with open(opened.path, "ab") as file:
            file.write(b'{"type":"task.moved"}\n')
        monkeypatch.setattr(os, "fdatasync", sync)

    monkeypatch.setattr(os, "fdatasync", forge)
    opened.append([ev.RunnerLeft(pid=1, reason="a")])
    with pytest.raises(ForgedJournal):
        opened.append([ev.RunnerLeft(pid=1, reason="b")])
    opened.close()


def test_a_journal_that_could_not_be_reached_for_a_moment_is_still_ours(tmp_path: Path) -> None:
    # As when an agent takes away the permissions of the packet, and they are given back.
    opened = sealed(tmp_path)
    hidden = f"{opened.path}.hidden"
    os.rename(opened.path, hidden)
    opened.append([ev.RunnerLeft(pid=1, reason="a")])
    os.rename(hidden, opened.path)
    opened.append([ev.RunnerLeft(pid=1, reason="b")])
    with open(opened.path, "ab") as file:
        file.write(b'{"type":"task.moved"}\n')
    with pytest.raises(ForgedJournal):
        opened.append([ev.RunnerLeft(pid=1, reason="c")])
    opened.close()
