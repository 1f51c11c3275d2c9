"""Failures in a row hold the queue back: forget them, so that it goes on at once."""

from __future__ import annotations

from holdfast.errors import CorruptFile
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: More failures than these are no count of ours.
_MOST = 10**9


def forget(home: Home, *, removes_file: bool, also: dict[str, Any] | None = None) -> str:
    """Forget the failures and their backoff. Returns what that changed, as text; empty for nothing.

    With `removes_file`, any interrupt file is removed; otherwise only one of the keeper.
    `also`: other fields of loop.json to set. The keeper forgets the failures, too, when the file is gone: it
    may write loop.json at the same time.
    """
    try:
        state = atomic.read_json(home.loop)
    except CorruptFile:
        state = None
    found = (state or {}).get("failures")
    failures = found if type(found) is int and 0 < found < _MOST else 0  # an agent can write the file
    told: list[str] = []
    if state is not None:
        cleared = {"failures": 0, "not_before": None, **(also or {})}
        atomic.write_json(home.loop, {**state, **cleared}, durable=False)
    if failures:
        are = "is" if failures == 1 else "are"
        told.append(f"{amounts.plural(failures, 'failure')} in a row {are} forgotten")
    if (removes_file or failures) and atomic.read_small(home.interrupt_request, 1) is not None:
        atomic.remove(home.interrupt_request)
        told.append(f"{home.interrupt_request} is removed")
    return "; ".join(told)
