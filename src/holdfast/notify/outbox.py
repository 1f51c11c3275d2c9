"""The outbox: one durable file per notice and rule; the keeper delivers them.

`post` is fire and forget: an error such as a full disk loses the notice and nothing else. A notice that must
follow a file (`after`: the task's done marker) is posted before that file is written and waits for it. So
no notice is sent too early, and a kill in between loses none. A notice whose rule is null was posted
while the rules were unreadable: the keeper assigns the rules later.
"""

from __future__ import annotations

import os

from holdfast import clock, ids, paths
from holdfast.errors import HoldfastError
from holdfast.notify import rules as notify_rules
from holdfast.packet import inbox
from holdfast.store import atomic, no_links
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

SCHEMA = "holdfast.notice/1"
#: A reason may be long; a notice should not be.
_REASON_CHARS = 2000


def post(
    home: Home,
    rules: Iterable[dict[str, Any]] | None,
    event: dict[str, Any],
    redact: Callable[[str], str],
    *,
    after: str | None = None,
) -> int:
    """Post a notice for each rule that matches `event` (event, task_id, status, reason, project_dir, …).

    If the rules are unknown (None), one notice without a rule is posted. Returns the number of notices; never
    raises.
    """
    try:
        return _post(home, rules, event, redact, after=after)
    except (OSError, HoldfastError, ValueError, KeyError, TypeError):
        return 0  # only the notice is lost


def _post(
    home: Home,
    rules: Iterable[dict[str, Any]] | None,
    event: dict[str, Any],
    redact: Callable[[str], str],
    *,
    after: str | None,
) -> int:
    matching = [None] if rules is None else _concerned(rules, event)
    if not matching:
        return 0
    redacted = {**event, "reason": redact(str(event.get("reason") or ""))[:_REASON_CHARS]}
    atomic.make_directory(home.outbox)
    notice = {
        "at": clock.iso_now(),
        **redacted,
        "home": home.path,
        "text": redact(notify_rules.message(redacted)),
        "tries": 0,
        "next_at": None,
        "after": after,
        "error": None,
    }
    for rule in matching:
        _leave(home, notice, rule)
    inbox.ring_keeper(home)
    return len(matching)


def address(home: Home, notice: dict[str, Any], rules: Iterable[dict[str, Any]]) -> None:
    """Replace a notice without a rule by one for each matching rule.

    If it is killed in between, some are delivered twice. Raises StorageError.
    """
    for rule in _concerned(rules, notice):
        _leave(home, notice, rule)
    atomic.remove(home.notice(notice["id"]))


def _concerned(rules: Iterable[dict[str, Any]], event: dict[str, Any]) -> list[dict[str, Any]]:
    return notify_rules.matching(rules, event["event"], project=event.get("project_dir"))


def _leave(home: Home, notice: dict[str, Any], rule: dict[str, Any] | None) -> None:
    name = ids.new_ulid()
    named = {**notice, "schema": SCHEMA, "id": name, "rule": rule}
    atomic.write_json(home.notice(name), named, durable=True)


def placed(path: str, notice: dict[str, Any]) -> dict[str, Any]:
    """A notice with the id that follows from its path, and the home of this process: an agent can write other
    ones, and one is a part of a path, the other the home of the user's program."""
    name = os.path.basename(path)
    return {**notice, "id": name.removesuffix(".json"), "home": paths.chosen_home()}


def names(home: Home) -> list[str]:
    """File names of the pending notices, oldest first. None behind a link: they would be removed."""
    if not no_links.is_directory(home.outbox):
        return []
    try:
        return sorted(
            name
            for name in os.listdir(home.outbox)
            if name.endswith(".json") and ids.is_ulid(name.removesuffix(".json"))
        )
    except OSError:
        return []


def status(home: Home) -> dict[str, Any]:
    """The state of the deliveries: `pending`, `given_up`, and the last failure of each failing rule."""
    try:
        given_up = len([name for name in os.listdir(home.outbox_failed) if name[0] != "."])
    except OSError:
        given_up = 0
    return {"pending": len(names(home)), "given_up": given_up, "failing": failing(home)}


def failing(home: Home) -> dict[str, dict[str, Any]]:
    """The last failure of each failing rule. Anything else in its file is ignored: an agent can write it."""
    try:
        found: Any = (atomic.read_json(home.outbox_status) or {}).get("failing")
    except HoldfastError:
        return {}
    rules: dict[str, Any] = dict(found) if isinstance(found, dict) else {}  # pyright: ignore
    return {rule: failure for rule, failure in rules.items() if isinstance(failure, dict)}
