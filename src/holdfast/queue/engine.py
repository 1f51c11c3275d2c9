"""The seam between what dispatches tasks and what keeps their order: SQLite here, a database server across machines."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Protocol

#: Words for a priority, beside whole numbers; higher goes first.
WEIGHTS = {"high": 10, "medium": 5, "low": 1}
#: How many times a claim may be lost before the item is put aside as poison.
POISON_AFTER = 5
#: How many items one look at a source takes in.
MOST = 100
#: The name of all pools, for pause and resume.
ALL = "*"


class Item(Record):
    """A task's place in the queue."""

    schema: str = "holdfast.queue-item/1"
    task_id: str
    #: Higher goes first; among equals the older.
    priority: int = WEIGHTS["medium"]
    pool: str = "default"
    agent: str = ""
    #: Tasks that must be completed first, as asked for; and those of them that are not yet.
    after: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    not_before: str | None = None
    #: queued, claimed, held (a task that it waits for failed) or poison (its claims were lost too often, or its packet
    #: cannot be read).
    state: str = "queued"
    #: Why it is held or poison.
    reason: str = ""
    #: Before all others: an interrupted task that was resumed.
    front: bool = False
    claimed_by: str | None = None
    claimed_at: str | None = None
    #: Deliveries so far, and how many of them were lost with whoever had claimed it.
    attempts: int = 0
    lost: int = 0
    added_at: str = ""
    #: Memory that its agent needs.
    memory_mb: int = 0


class Room(Record):
    """What there is room for. A name that is not listed has no limit."""

    #: Claimed items in all; null means no limit.
    slots: int | None = None
    agents: dict[str, int] = {}
    pools: dict[str, int] = {}
    #: Free memory for one more; null means that nobody counts it.
    memory_mb: int | None = None


class Outlook(Record):
    """What a dispatcher asks of a queue before each claim; its cost must not grow with the queue."""

    #: Items in all.
    count: int = 0
    #: Agents of those that wait.
    agents: tuple[str, ...] = ()
    #: When the next one that waits for a time is due, in seconds since 1970.
    due_at: float | None = None


if TYPE_CHECKING:

    class Line(Protocol):
        """The items, in the order in which they would be claimed."""

        def add(self, item: Item) -> bool:
            """Put an item in. False, and nothing changes, when its task is there already."""
            ...

        def items(self, task_id: str | None = None) -> list[Item]:
            """All items, or the one, in the order in which they would be claimed."""
            ...

        def outlook(self, now: float) -> Outlook:
            """What there is, in short."""
            ...

        def prioritize(self, task_id: str, priority: int) -> bool:
            """Give an item another priority; False when there is none, or it is claimed already."""
            ...

        def retry(self, task_id: str) -> bool:
            """Let a held or poison item go again: its losses are forgotten, and so are the failed tasks it waits for."""
            ...

    class Claims(Protocol):
        """Who has taken what. No item is ever claimed twice at a time, whoever asks."""

        def claim(self, owner: str, room: Room = ..., *, task_id: str | None = None) -> Item | None:
            """Take the first ready item, or the named one whatever its turn, for `owner`; None when there is none."""
            ...

        def claims(self) -> list[Item]:
            """The items that are claimed."""
            ...

        def ack(self, task_id: str, *, owner: str | None = None, status: str | None = None) -> bool:
            """Take an item out: its task ended with `status` (see `settle`), or is none of the queue's business any more.

            With an owner, only while that owner has the claim: a late one is refused with False.
            """
            ...

        def release(
            self,
            task_id: str,
            *,
            owner: str | None = None,
            lost: bool = False,
            front: bool = False,
            not_before: str | None = None,
        ) -> bool:
            """Give a claim back. `lost` counts towards poison; False when there is no such claim (of this owner)."""
            ...

        def condemn(self, task_id: str, reason: str) -> bool:
            """Put an item aside as poison, claimed or not: delivered again, it would only be lost again."""
            ...

    class Dependencies(Protocol):
        """Who waits for whom."""

        def settle(self, task_id: str, status: str) -> int:
            """A task ended: who waits for it goes on when it was completed, and is held otherwise. Returns how many changed."""
            ...

        def hold(self, task_id: str, on_id: str, reason: str) -> bool:
            """A queued item waits for a task for which it must not: it is held until somebody lets it go (`retry`)."""
            ...

        def expect(self, task_id: str, on_id: str) -> bool:
            """A held item waits for a task that has not ended after all: it waits again, unless another one holds it."""
            ...

        def strangers(self) -> list[str]:
            """Tasks that somebody waits for and that are not in the queue."""
            ...

    class Pauses(Protocol):
        """Pools from which nothing is claimed."""

        def pause(self, pool: str = ALL, *, is_paused: bool = True) -> None:
            """Claim nothing from this pool, or from any, until it is resumed (`is_paused=False`)."""
            ...

        def paused(self) -> list[str]:
            """The paused pools; ALL among them when everything is."""
            ...

    class Engine(Line, Claims, Dependencies, Pauses, Protocol):
        """A queue. Pauses, claims of workers outside and other priorities outlive its rows. No method waits for work, and none
        holds state in memory: every process may have one of its own."""


def requeue_lost(engine: Claims, stands: Callable[[Item], bool]) -> list[Item]:
    """Give back the claims that do not stand any more, and no others: a task's own end is final."""
    lost = [item for item in engine.claims() if not stands(item)]
    return [item for item in lost if engine.release(item.task_id, owner=item.claimed_by, lost=True)]


def weights(pairs: Iterable[str] = ()) -> dict[str, int]:
    """What the words for a priority weigh, with the pairs of the setting `priorities`: `["high=20"]`."""
    given = {name.lower(): int(weight) for name, _, weight in (pair.partition("=") for pair in pairs)}
    return {**WEIGHTS, **given}


def parse_priority(text: str | int, weights: Mapping[str, int] = WEIGHTS) -> int:
    """`high`, `medium`, `low` or a whole number. Raises ValueError."""
    if isinstance(text, str) and text.lower() in weights:
        return weights[text.lower()]
    try:
        value = int(text)
    except (TypeError, ValueError):
        raise ValueError(f"not a priority: {text!r} (write {', '.join(weights)} or a whole number)") from None
    if abs(value) > 2**31:
        raise ValueError(f"a priority that large is none: {text!r}")
    return value


def is_ready(item: Item, *, now: float, paused: list[str]) -> bool:
    """Whether an item could be claimed now, if there is room."""
    if item.state != "queued" or item.waits_for or ALL in paused or item.pool in paused:
        return False
    return item.not_before is None or clock.parse_iso(item.not_before) <= now
