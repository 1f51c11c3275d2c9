"""What people said to the queue and no packet knows: pauses, claims of workers outside, other priorities.

queue.db can be deleted at any time; this file is what it gets them back from. It is written in the transaction that changes
the rows, so that two writers follow each other.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import CorruptFile
from holdfast.model.record import Record
from holdfast.queue.engine import Item, parse_priority
from holdfast.queue.owner import is_outside
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Kept(Record):
    """`<home>/queue.json`."""

    schema: str = "holdfast.queue-kept/1"
    paused: list[str] = []
    #: Task → who has it, since when.
    claims: dict[str, dict[str, str]] = {}
    priorities: dict[str, int] = {}


def read(path: str) -> Kept | None:
    """What is kept; None where nothing was, or where it cannot be read: then the rows stand as they are. Of what somebody
    edited, values with which the queue cannot go on are dropped."""
    try:
        data: dict[str, Any] | None = atomic.read_json(path)
        found = None if data is None else Kept.from_json(data)
    except (CorruptFile, ValueError):
        return None
    given: tuple[Any, ...] = () if found is None else (found.paused, found.claims, found.priorities)
    if found is None or [type(each) for each in given] != [list, dict, dict]:
        return None
    return found.evolve(
        paused=[pool for pool in found.paused if _is_text(pool)],
        claims={key: claim for key, claim in found.claims.items() if _is_text(key) and _is_claim(claim)},
        priorities={
            key: value for key, value in found.priorities.items() if _is_text(key) and _is_priority(value)
        },
    )


def _is_text(value: Any) -> bool:
    """Whether it is a text that the database takes: half of a surrogate pair is none."""
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
        return _is_text(by) and is_outside(by) and clock.parse_iso(at) >= 0
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        return False


def _is_priority(value: Any) -> bool:
    try:
        return type(value) is int and parse_priority(value) == value
    except ValueError:
        return False


def write(path: str, kept: Kept) -> None:
    """Keep it. Raises StorageError, and then the transaction is undone."""
    atomic.write_json(path, kept.to_json(), durable=True)


def claimed(kept: Kept, task_id: str, *, by: str, at: str) -> Kept:
    """A worker outside has taken it."""
    return kept.evolve(claims={**kept.claims, task_id: {"by": by, "at": at}})


def unclaimed(kept: Kept, task_id: str) -> Kept:
    """Its claim was given back."""
    return kept.evolve(claims={key: claim for key, claim in kept.claims.items() if key != task_id})


def without(kept: Kept, task_id: str) -> Kept:
    """Its item is out of the queue."""
    priorities = {key: value for key, value in kept.priorities.items() if key != task_id}
    return unclaimed(kept, task_id).evolve(priorities=priorities)


def as_left(item: Item, kept: Kept | None) -> Item:
    """A new row of an old item, as people left it."""
    if kept is None:
        return item
    item = item.evolve(priority=kept.priorities.get(item.task_id, item.priority))
    claim = kept.claims.get(item.task_id)
    if claim is None or item.state != "queued":
        return item
    return item.evolve(state="claimed", claimed_by=claim["by"], claimed_at=claim["at"])
