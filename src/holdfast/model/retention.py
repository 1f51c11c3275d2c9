"""Which packets to remove: by age, by number, or by total size. Pure."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Candidate(Record):
    """The packet of an ended task."""

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
    """The packets to remove, oldest first, with the reason. The `keep` newest always stay.

    Without an age and a size, all others are removed. `max_bytes` limits the total size of the remaining
    packets, the `keep` newest included: the oldest are removed until the limit is met.
    """
    by_age = sorted(candidates, key=lambda packet: (packet.ended, packet.task_id))
    free = by_age[: max(0, len(by_age) - keep)]
    chosen: dict[str, tuple[Candidate, str]] = {}
    if older_than_s is not None:
        for packet in free:
            if now - packet.ended > older_than_s:
                chosen[packet.task_id] = (packet, "old")
    elif max_bytes is None:
        chosen = {
            packet.task_id: (packet, f"not one of the {keep} newest" if keep else "ended") for packet in free
        }
    if max_bytes is not None:
        left_bytes = sum(packet.size_bytes for packet in by_age if packet.task_id not in chosen)
        for packet in free:
            if left_bytes <= max_bytes:
                break
            if packet.task_id not in chosen:
                chosen[packet.task_id] = (packet, "over the size limit")
                left_bytes -= packet.size_bytes
    return [chosen[packet.task_id] for packet in by_age if packet.task_id in chosen]
