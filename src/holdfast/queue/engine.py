"""The queue interface: SQLite on one machine, a database server across machines."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Protocol

#: Names of priorities; a priority may also be an integer. Higher goes first.
WEIGHTS = {"high": 10, "medium": 5, "low": 1}
#: After this many lost claims, an item is poison.
POISON_AFTER = 5
#: Maximum number of items per import.
MAX_IMPORT_ITEMS = 100
#: Stands for all pools in pause and resume.
ALL = "*"


class Item(Record):
    """A task's place in the queue."""

    schema: str = "holdfast.queue-item/1"
    task_id: str
    #: Higher goes first; the older one among equals.
    priority: int = WEIGHTS["medium"]
    pool: str = "default"
    agent: str = ""
    #: Tasks that must complete first, as requested; and those of them that have not completed.
    after: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    not_before: str | None = None
    #: queued, claimed, held (a dependency failed) or poison (too many lost claims, or an unreadable packet).
    state: str = "queued"
    #: Why it is held or poison.
    reason: str = ""
    #: Goes before all others: an interrupted task that was resumed.
    front: bool = False
    claimed_by: str | None = None
    claimed_at: str | None = None
    #: Deliveries so far, and how many were lost because the worker died.
    attempts: int = 0
    lost: int = 0
    added_at: str = ""
    #: Memory that its agent needs.
    memory_mb: int = 0


class Capacity(Record):
    """Free capacity. An agent or pool that is not listed has no limit."""

    #: Maximum number of claimed items; null means no limit.
    slots: int | None = None
    agents: dict[str, int] = {}
    pools: dict[str, int] = {}
    #: Free memory for another task; null means unknown.
    memory_mb: int | None = None


class QueueSummary(Record):
    """What a dispatcher needs before each claim; the cost must not grow with the queue."""

    #: Number of items.
    count: int = 0
    #: Agents of the queued items.
    agents: tuple[str, ...] = ()
    #: When the next delayed item is due, in seconds since 1970.
    due_at: float | None = None


if TYPE_CHECKING:

    class Line(Protocol):
        """The items, in the order in which they would be claimed."""

        def add(self, item: Item) -> bool:
            """Add an item. Returns False, without a change, if its task is there already."""
            ...

        def items(self, task_id: str | None = None) -> list[Item]:
            """All items, or one of them, in the order in which they would be claimed."""
            ...

        def summary(self, now: float) -> QueueSummary:
            """A summary."""
            ...

        def prioritize(self, task_id: str, priority: int) -> bool:
            """Change the priority of an item. Returns False if it is not there or already claimed."""
            ...

        def retry(self, task_id: str) -> bool:
            """Requeue a held or poison item: its lost claims and failed dependencies are forgotten."""
            ...

    class Claims(Protocol):
        """Claims. An item is never claimed twice at the same time."""

        def claim(self, owner: str, capacity: Capacity = ..., *, task_id: str | None = None) -> Item | None:
            """Claim the first ready item for `owner`, or the named one even if it is not its turn; None if
            there is none."""
            ...

        def claims(self) -> list[Item]:
            """The claimed items."""
            ...

        def ack(self, task_id: str, *, owner: str | None = None, status: str | None = None) -> bool:
            """Remove an item: its task ended with `status` (see `task_ended`), or left the queue.

            With an owner, only while that owner holds the claim; otherwise returns False.
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
            """Release a claim.

            `lost` counts towards poison. Returns False if there is no such claim (of this owner).
            """
            ...

        def poison(self, task_id: str, reason: str) -> bool:
            """Mark an item as poison, claimed or not: another delivery would be lost, too."""
            ...

    class Dependencies(Protocol):
        """Dependencies between tasks."""

        def task_ended(self, task_id: str, status: str) -> int:
            """A task ended: its dependents may start if it was completed, and are held otherwise.

            Returns how many changed.
            """
            ...

        def hold(self, task_id: str, on_id: str, reason: str) -> bool:
            """Hold a queued item because of a dependency, until it is retried."""
            ...

        def unhold(self, task_id: str, on_id: str) -> bool:
            """A held item waits again, because its dependency has not ended after all; unless another one
            holds it."""
            ...

        def failed_dependencies(self, task_id: str) -> list[str]:
            """The dependencies that hold an item: `retry` forgets them."""
            ...

        def outside_dependencies(self) -> list[str]:
            """Dependencies that are not in the queue."""
            ...

    class Pauses(Protocol):
        """Pools from which nothing is claimed."""

        def pause(self, pool: str = ALL, *, is_paused: bool = True) -> None:
            """Claim nothing from this pool, or from any, until it is resumed (`is_paused=False`)."""
            ...

        def paused(self) -> list[str]:
            """The paused pools; with ALL if everything is paused."""
            ...

    class Engine(Line, Claims, Dependencies, Pauses, Protocol):
        """A queue.

        Pauses, claims of external workers and changed priorities survive its rows. No method waits for work,
        and none keeps state in memory, so every process may open the queue.
        """


def requeue_lost(engine: Claims, is_valid: Callable[[Item], bool]) -> list[Item]:
    """Release the claims that are no longer valid. Ended tasks are not requeued."""
    lost = [item for item in engine.claims() if not is_valid(item)]
    return [item for item in lost if engine.release(item.task_id, owner=item.claimed_by, lost=True)]


def weights(pairs: Iterable[str] = ()) -> dict[str, int]:
    """Priorities by name, including those of the setting `priorities`: `["high=20"]`."""
    configured = {name.lower(): int(weight) for name, _, weight in (pair.partition("=") for pair in pairs)}
    return {**WEIGHTS, **configured}


def parse_priority(text: str | int, weights: Mapping[str, int] = WEIGHTS) -> int:
    """Parse `high`, `medium`, `low` or an integer. Raises ValueError."""
    if isinstance(text, str) and text.lower() in weights:
        return weights[text.lower()]
    try:
        value = int(text)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"not a priority: {text!r} (use {', '.join(weights)} or an integer)") from None
    if abs(value) > 2**31:
        raise ValueError(f"priority out of range: {text!r}")
    return value


def is_ready(item: Item, *, now: float, paused: list[str]) -> bool:
    """Whether an item could be claimed now, given enough capacity."""
    if item.state != "queued" or item.waits_for or ALL in paused or item.pool in paused:
        return False
    return item.not_before is None or clock.parse_iso(item.not_before) <= now
