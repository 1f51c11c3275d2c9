"""Rows of the table `items`: as an Item, and the next one that may be claimed."""

from __future__ import annotations

import json

from holdfast import clock, ids
from holdfast.queue.engine import ALL, Capacity, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.database import Database

COLUMNS = (
    "task_id", "priority", "pool", "agent", "after", "not_before", "state", "reason", "front", "claimed_by",
    "claimed_at", "attempts", "lost", "added_at", "memory_mb",
)  # fmt: skip
#: Position of `attempts` in a selected row.
ATTEMPTS = 1 + COLUMNS.index("attempts")
SELECT = f"SELECT seq, {', '.join(COLUMNS)} FROM items"
ORDER = "ORDER BY front DESC, priority DESC, seq"
READY = "line = 0"
_STATE = 1 + COLUMNS.index("state")
_STATES = ("queued", "claimed", "held", "poison")
_TIMES = tuple(1 + COLUMNS.index(name) for name in ("not_before", "claimed_at", "added_at"))
#: Columns that are not texts.
_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("priority", "front", "attempts", "lost", "memory_mb"), int),
    **dict.fromkeys(("not_before", "claimed_by", "claimed_at"), (str, type(None))),
}
#: The types of rows that were looked at: there are few different ones.
_known_types: set[tuple[type, ...]] = set()
ANY = Capacity()

_CANDIDATES = (
    f"{SELECT} WHERE {READY} AND not_before_s <= ? AND (NOT EXISTS (SELECT 1 FROM paused) OR"
    " (pool NOT IN (SELECT pool FROM paused WHERE pool IS NOT NULL)"
    f" AND NOT EXISTS (SELECT 1 FROM paused WHERE pool = '{ALL}')))"
)
_FIRST = f"{_CANDIDATES} {ORDER} LIMIT 1"


def item(row: tuple[Any, ...], waits_for: tuple[str, ...], **changes: Any) -> Item | None:
    """The item of a row; the row starts with its sequence number. None if it is no row of ours: an agent can
    write any value into any column."""
    if not _is_sound(row):
        return None
    values: dict[str, Any] = dict(zip(COLUMNS, row[1:], strict=True), waits_for=waits_for)
    values["after"] = () if values["after"] == "[]" else _names(values["after"])
    values["front"] = values["front"] == 1
    values.update(changes)
    return Item(**values)


def _is_sound(row: tuple[Any, ...]) -> bool:
    if tuple(map(type, row)) not in _known_types:
        kinds = zip(row[1:], COLUMNS, strict=True)
        if type(row[0]) is not int or not all(
            isinstance(value, _KINDS.get(name, str)) for value, name in kinds
        ):
            return False
        _known_types.add(tuple(map(type, row)))
    try:
        for place in _TIMES:
            if row[place] is not None:
                clock.parse_iso(row[place])
    except ValueError:
        return False
    return row[_STATE] in _STATES and ids.is_safe_name(row[1], 64)


def _names(after: Any) -> tuple[str, ...]:
    """The dependencies in a row; none if they cannot be read, because an agent can write the file. Those that
    count have rows of their own."""
    try:
        return tuple(map(str, json.loads(after)))
    except (ValueError, TypeError, RecursionError):
        return ()


def next_row(database: Database, capacity: Capacity) -> tuple[Any, ...] | None:
    """The first row that may be claimed now."""
    if capacity is ANY:
        return database.execute(_FIRST, clock.now()).fetchone()
    full_agents, full_pools, is_full = _full(database, capacity)
    if is_full:
        return None
    where = ""
    values: list[Any] = [clock.now()]
    for column, names in (("agent", full_agents), ("pool", full_pools)):
        if names:
            where += f" AND {column} NOT IN ({', '.join('?' * len(names))})"
            values += names
    if capacity.memory_mb is not None:
        where += " AND memory_mb <= ?"
        values.append(capacity.memory_mb)
    return database.execute(f"{_CANDIDATES}{where} {ORDER} LIMIT 1", *values).fetchone()


def _full(database: Database, capacity: Capacity) -> tuple[list[str], list[str], bool]:
    """The agents and pools without capacity, and whether there is no capacity at all."""
    if capacity.slots is None and not capacity.agents and not capacity.pools:
        return [], [], False
    agents: dict[str, int] = {}
    pools: dict[str, int] = {}
    query = "SELECT agent, pool, count(*) FROM items WHERE line = 1 GROUP BY agent, pool"
    total = 0
    for agent, pool, count in database.execute(query).fetchall():
        agents[agent] = agents.get(agent, 0) + count
        pools[pool] = pools.get(pool, 0) + count
        total += count
    return (
        [name for name, most in capacity.agents.items() if agents.get(name, 0) >= most],
        [name for name, most in capacity.pools.items() if pools.get(name, 0) >= most],
        capacity.slots is not None and total >= capacity.slots,
    )
