"""The keeper of a home, for tests."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable

from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home
from tests.support import processes
from tests.support.tasks import holdfast
from tests.support.waiting import eventually


def pid(home: str) -> int:
    """The keeper's pid; 0 if none runs."""
    lock = Home(home).keeper_lock
    owner = lock_owner.owner(lock) if locks.is_held(lock) else None
    return owner.pid if owner is not None and processes.is_alive(owner.pid) else 0


def wait_for(home: str, *, other_than: int = 0, within_s: float = 15.0) -> int:
    """Wait for a keeper other than `other_than`. Returns its pid."""
    return eventually(
        lambda: (found := pid(home)) != other_than and found, within_s, "a keeper lives", journal=log_of(home)
    )


def kill(home: str) -> int:
    """Kill the keeper. Returns its pid. A runner may have started the next one by then."""
    found = wait_for(home)
    os.kill(found, signal.SIGKILL)
    eventually(lambda: not processes.is_alive(found), what="the keeper is gone")
    return found


def log_of(home: str) -> str:
    return Home(home).keeper_log


def log(home: str) -> list[str]:
    """The lines of the keeper's log, without times."""
    with open(log_of(home), encoding="utf-8") as file:
        return [line.split(": ", 1)[1].strip() for line in file if ": " in line]


def all_pids(home: str) -> list[int]:
    """Every keeper process of the home, with or without the lock."""
    found = [p for p in processes.marked(f"HOLDFAST_HOME={home}") if "holdfast.keeper" in p.command]
    return [p.pid for p in found]


def failures(home: str) -> int:
    """How many keepers in a row died before they had worked, or are about to begin."""
    with open(Home(home).keeper_starts, encoding="utf-8") as file:
        found = json.load(file)
    return found.get("failures", len(found["starts"]))


def status(home: str) -> dict:
    """`holdfast status --json`."""
    return json.loads(holdfast("status", "--json").stdout)


def stays(fn: Callable[[], object], for_s: float, what: str = "") -> None:
    """Check that `fn` is true now and for the next `for_s` seconds."""
    ends_mono = time.monotonic() + for_s

    def over() -> bool:
        nonlocal broken
        broken = broken or not fn()
        return broken or time.monotonic() >= ends_mono

    broken = False
    eventually(over, for_s + 10)
    assert not broken, f"it did not last: {what}"
