"""queue.json: what users changed in the queue: pauses, claims of external workers, priorities.

No packet contains these, so a rebuilt queue.db gets them from this file. It is written inside the transaction
that changes the rows, so that writers are serialized.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import CorruptFile
from holdfast.model.record import Record
from holdfast.queue.claim_owner import is_external
from holdfast.queue.engine import Item, parse_priority
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class UserChanges(Record):
    """`<home>/queue.json`."""

    schema: str = "holdfast.queue-kept/1"
    paused: list[str] = []
    #: Task → owner and time.
    claims: dict[str, dict[str, str]] = {}
    priorities: dict[str, int] = {}


def read(path: str) -> UserChanges | None:
    """Read the file.

    None if it is missing or unreadable: then the rows stay as they are. Invalid values are dropped.
    """
    try:
        data: dict[str, Any] | None = atomic.read_json(path)
        changes = None if data is None else UserChanges.from_json(data)
    except (CorruptFile, ValueError):
        return None
    parts: tuple[Any, ...] = () if changes is None else (changes.paused, changes.claims, changes.priorities)
    if changes is None or [type(each) for each in parts] != [list, dict, dict]:
        return None
    return changes.evolve(
        paused=[pool for pool in changes.paused if _is_text(pool)],
        claims={key: claim for key, claim in changes.claims.items() if _is_text(key) and _is_claim(claim)},
        priorities={
            key: value for key, value in changes.priorities.items() if _is_text(key) and _is_priority(value)
        },
    )


def _is_text(value: Any) -> bool:
    """Whether the value is a string that the database can store (no lone surrogates)."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_claim(value: Any) -> bool:
    try:
        by, at = value["by"], value["at"]
        return _is_text(by) and is_external(by) and clock.parse_iso(at) >= 0
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        return False


def _is_priority(value: Any) -> bool:
    try:
        return type(value) is int and parse_priority(value) == value
    except ValueError:
        return False


def write(path: str, changes: UserChanges) -> None:
    """Write the file. Raises StorageError, and then the transaction is rolled back."""
    atomic.write_json(path, changes.to_json(), durable=True)


def claimed(changes: UserChanges, task_id: str, *, by: str, at: str) -> UserChanges:
    """An external worker claimed the task."""
    return changes.evolve(claims={**changes.claims, task_id: {"by": by, "at": at}})


def unclaimed(changes: UserChanges, task_id: str) -> UserChanges:
    """The claim was released."""
    return changes.evolve(claims={key: claim for key, claim in changes.claims.items() if key != task_id})


def without(changes: UserChanges, task_id: str) -> UserChanges:
    """The item left the queue."""
    priorities = {key: value for key, value in changes.priorities.items() if key != task_id}
    return unclaimed(changes, task_id).evolve(priorities=priorities)


def with_user_changes(item: Item, changes: UserChanges | None) -> Item:
    """A new row for an old item, with the user's changes applied."""
    if changes is None:
        return item
    item = item.evolve(priority=changes.priorities.get(item.task_id, item.priority))
    claim = changes.claims.get(item.task_id)
    if claim is None or item.state != "queued":
        return item
    return item.evolve(state="claimed", claimed_by=claim["by"], claimed_at=claim["at"])
