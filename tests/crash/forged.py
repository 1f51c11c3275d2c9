"""A life in which others write to the journal: no forged line is believed, and all are kept."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.packet import inbox
from holdfast.store import journal
from holdfast.store import lock as locks
from tests.crash import plain
from tests.crash.drive import Case


def with_forgers(case: Case) -> None:
    """Fails until it may succeed, so that the task ends even if a forged line was not noticed."""
    wait = f"while [ ! -e {plain.go(case)} ]; do sleep 0.05; done; "
    case.create(command=plain.counting(f"{wait}test -e {may_succeed(case)}"))


def may_succeed(case: Case) -> str:
    return os.path.join(case.project, "may_succeed")


def forged_line() -> bytes:
    """A success that no runner has written; it is longer than the line of a runner that leaves."""
    moved = ev.TaskMoved(old="running", new="completed", reason="success " * 50)
    return journal.encode_line(moved, clock.iso_now())


def replace_journal(case: Case) -> None:
    """Under a living runner. The agent ends, so the runner has something to append."""
    path = case.packet.journal
    with open(path, "rb") as old, open(f"{path}.new", "wb") as new:
        new.write(old.read() + forged_line())
    os.rename(f"{path}.new", path)
    plain.touch(plain.go(case))


def append_to_journal(case: Case) -> None:
    with open(case.packet.journal, "ab") as file:
        file.write(forged_line())
    go_on(case)


def change_journal(case: Case) -> None:
    """Write over its last line."""
    with open(case.packet.journal, "r+b") as file:
        data = file.read()
        file.seek(data.rindex(b"\n", 0, -1) + 1)
        file.write(forged_line())
    go_on(case)


def let_succeed(case: Case) -> None:
    plain.touch(may_succeed(case))
    go_on(case)


def rests(case: Case) -> bool:
    """Whether the task waits for a person, or has ended."""
    is_left = case.runner is None and not locks.is_held(case.packet.runner_lock)
    is_parked = case.status is Status.INTERRUPTED or os.path.exists(case.packet.task_done)
    return is_left and is_parked and not inbox.names(case.packet)


def go_on(case: Case) -> None:
    if case.status is Status.INTERRUPTED:
        case.ask("resume")
    else:
        case.ask("retry", env=case.captured())


def check_forged(case: Case, _: Task) -> None:
    """No forged line is left, and what was there is kept."""
    with open(case.packet.journal, "rb") as file:
        assert b"success success" not in file.read()
    kept = [name for name in os.listdir(case.packet.path) if name.startswith("events.jsonl.forged-")]
    assert len(kept) >= 3, kept
    # What was removed is told, also if its remover was killed before it could.
    with open(case.packet.journal, "rb") as file:
        assert file.read().count(b'"type":"journal.forged"') >= 3
