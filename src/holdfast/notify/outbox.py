"""The outbox: a durable file per notice and rule, which the keeper delivers.

`post` is fire and forget: whoever calls it has more important things to do, so a full disk costs the notice and nothing
else. A notice that must follow a file (`after`: the task's done marker) is posted before that file is written, and waits
for it: so nobody hears of an end before it is there, and a kill between the two loses nothing. A notice whose rule is null
is for whoever the rules name once they can be read: the keeper gives it its addresses.
"""

from __future__ import annotations

import os

from holdfast import clock, ids
from holdfast.errors import HoldfastError
from holdfast.notify import rules as notify_rules
from holdfast.packet import inbox
from holdfast.store import atomic
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

SCHEMA = "holdfast.notice/1"
#: A reason may be a whole page; a notice is not.
_REASON_CHARS = 2000


def post(
    home: Home,
    rules: Iterable[dict[str, Any]] | None,
    event: dict[str, Any],
    redact: Callable[[str], str],
    *,
    after: str | None = None,
) -> int:
    """Leave a notice for each rule that `event` (event, task_id, status, reason, project_dir, …) concerns; one without a rule
    where nobody can say what the rules are (None). Returns how many; never raises."""
    try:
        return _post(home, rules, event, redact, after=after)
    except (OSError, HoldfastError, ValueError, KeyError, TypeError):
        return 0  # nobody is told, and nothing else is lost


def _post(
    home: Home,
    rules: Iterable[dict[str, Any]] | None,
    event: dict[str, Any],
    redact: Callable[[str], str],
    *,
    after: str | None,
) -> int:
    found = [None] if rules is None else _concerned(rules, event)
    if not found:
        return 0
    said = {**event, "reason": redact(str(event.get("reason") or ""))[:_REASON_CHARS]}
    atomic.make_directory(home.outbox)
    notice = {
        "at": clock.iso_now(),
        **said,
        "home": home.path,
        "text": redact(notify_rules.words(said)),
        "tries": 0,
        "next_at": None,
        "after": after,
        "error": None,
    }
    for rule in found:
        _leave(home, notice, rule)
    inbox.ring_keeper(home)
    return len(found)


def address(home: Home, notice: dict[str, Any], rules: Iterable[dict[str, Any]]) -> None:
    """A notice without a rule becomes one for each that it concerns. Killed before it is gone itself, some are told twice.
    Raises StorageError."""
    for rule in _concerned(rules, notice):
        _leave(home, notice, rule)
    atomic.remove(os.path.join(home.outbox, f"{notice['id']}.json"))


def _concerned(rules: Iterable[dict[str, Any]], event: dict[str, Any]) -> list[dict[str, Any]]:
    return notify_rules.matching(rules, event["event"], project=event.get("project_dir"))


def _leave(home: Home, notice: dict[str, Any], rule: dict[str, Any] | None) -> None:
    name = ids.new_ulid()
    named = {**notice, "schema": SCHEMA, "id": name, "rule": rule}
    atomic.write_json(os.path.join(home.outbox, f"{name}.json"), named, durable=True)


def names(home: Home) -> list[str]:
    """The notices that are to be delivered, oldest first."""
    try:
        return sorted(
            name
            for name in os.listdir(home.outbox)
            if name.endswith(".json") and ids.is_ulid(name.removesuffix(".json"))
        )
    except OSError:
        return []


def status_path(home: Home) -> str:
    """What went wrong of late, for each rule."""
    return os.path.join(home.outbox, "status.json")


def failed_path(home: Home) -> str:
    """The folder of notices that were given up."""
    return os.path.join(home.outbox, "failed")


def look(home: Home) -> dict[str, Any]:
    """How deliveries are doing: `pending`, `given_up`, and the last failure of each rule that fails."""
    try:
        status = atomic.read_json(status_path(home)) or {}
    except HoldfastError:
        status = {}
    try:
        given_up = len([name for name in os.listdir(failed_path(home)) if name[0] != "."])
    except OSError:
        given_up = 0
    failing: dict[str, Any] = status.get("failing") or {}
    return {"pending": len(names(home)), "given_up": given_up, "failing": failing}
