"""Which packets may go: old ones, all but the newest, or as many as are too much. Pure."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Candidate(Record):
    """A packet of a task that has ended."""

    task_id: str
    #: Seconds since 1970.
    ended: float
    size_bytes: int
    is_archived: bool = False


def choose(
    candidates: Iterable[Candidate],
    now: float,
    *,
    older_than_s: float | None = None,
    keep: int = 0,
    max_bytes: int | None = None,
) -> list[tuple[Candidate, str]]:
    """Those that go, oldest first, and why. The `keep` newest always stay.

    Without an age and without a size, all but the kept ones go. `max_bytes` is what may stay in all, the kept ones
    included; the oldest go until it fits.
    """
    by_age = sorted(candidates, key=lambda found: (found.ended, found.task_id))
    free = by_age[: max(0, len(by_age) - keep)]
    chosen: dict[str, tuple[Candidate, str]] = {}
    if older_than_s is not None:
        for found in free:
            if now - found.ended > older_than_s:
                chosen[found.task_id] = (found, "old")
    elif max_bytes is None:
        chosen = {
            found.task_id: (found, f"not one of the {keep} newest" if keep else "ended") for found in free
        }
    if max_bytes is not None:
        left_bytes = sum(found.size_bytes for found in by_age if found.task_id not in chosen)
        for found in free:
            if left_bytes <= max_bytes:
                break
            if found.task_id not in chosen:
                chosen[found.task_id] = (found, "too much in all")
                left_bytes -= found.size_bytes
    return [chosen[found.task_id] for found in by_age if found.task_id in chosen]
