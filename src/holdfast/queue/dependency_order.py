"""Order of tasks by dependency, and dependency cycles. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def dependencies_first(waits: Mapping[str, Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The names, each after its dependencies, otherwise in their order; and the cycles.

    A cycle is `[last, …, first]`: last waits for …, which waits for first, which waits for last. Removing the
    first wait of each cycle leaves none. Dependencies without an entry are ignored.
    """
    order: list[str] = []
    cycles: list[list[str]] = []
    visited: set[str] = set()
    # No recursion: a chain may have thousands of tasks.
    for start in waits:
        if start in visited:
            continue
        visited.add(start)
        path, on_path = [start], {start}
        ahead: list[Iterator[str]] = [iter(waits[start])]
        while path:
            on_id = next(ahead[-1], None)
            if on_id is None:
                ahead.pop()
                order.append(path.pop())
                on_path.discard(order[-1])
            elif on_id in on_path:
                cycles.append([path[-1], *path[path.index(on_id) : -1]])
            elif on_id in waits and on_id not in visited:
                visited.add(on_id)
                path.append(on_id)
                on_path.add(on_id)
                ahead.append(iter(waits[on_id]))
    return order, cycles


def cycle_text(cycle: Sequence[str]) -> str:
    """A cycle as text."""
    if len(cycle) == 1:
        return f"{cycle[0]} waits for itself"
    return f"{cycle[0]} waits for itself: it is after {', which is after '.join([*cycle[1:], cycle[0]])}"
