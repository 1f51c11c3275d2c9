"""What waits for what: an order in which nothing comes before what it waits for, and what waits for itself. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def dependencies_first(waits: Mapping[str, Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """(The names in their order, but each behind those that it waits for; the circles).

    A circle is `[last, …, first]` as in "last waits for … waits for first", which waits for last; without that one wait of
    each there is none left. Names that are waited for and have no entry are passed over.
    """
    order: list[str] = []
    circles: list[list[str]] = []
    seen: set[str] = set()
    # No recursion: a chain of a thousand tasks is nothing unusual.
    for start in waits:
        if start in seen:
            continue
        seen.add(start)
        path, on_path = [start], {start}
        ahead: list[Iterator[str]] = [iter(waits[start])]
        while path:
            on_id = next(ahead[-1], None)
            if on_id is None:
                ahead.pop()
                order.append(path.pop())
                on_path.discard(order[-1])
            elif on_id in on_path:
                circles.append([path[-1], *path[path.index(on_id) : -1]])
            elif on_id in waits and on_id not in seen:
                seen.add(on_id)
                path.append(on_id)
                on_path.add(on_id)
                ahead.append(iter(waits[on_id]))
    return order, circles


def words(circle: Sequence[str]) -> str:
    """A circle for people."""
    if len(circle) == 1:
        return f"{circle[0]} waits for itself"
    return f"{circle[0]} waits for itself: it is after {', which is after '.join([*circle[1:], circle[0]])}"
