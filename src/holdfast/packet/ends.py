"""The end of a task, from the last lines of its journal: cheap enough for every `wait` and for the keeper.

An agent can write `manifest.json` and `_task.done`. The journal is sealed (`store/seals.py`), so it decides.
Folding it would cost a command more than all it does otherwise; here only its digest is computed, and the
last move is looked for.
"""

from __future__ import annotations

import os

from holdfast import files, quick_json
from holdfast.store import seals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet
    from holdfast.store.seals import Seal

#: After the end of a task, only a few lines are added: that it was applied, runners that came for a request.
_TAIL_BYTES = 1 << 16
#: The digest of more than this is left to the next runner.
_DIGEST_BYTES = 1 << 20
_MOVED = b'"type":"task.moved"'


def confirms(packet: Packet, status: str) -> bool | None:
    """Whether the journal of a task without a runner ends with this status; None: all of it must be read."""
    try:
        sealed = seals.last_two(packet.seals)
        descriptor = files.open_regular(packet.journal)
    except OSError:
        # Archived by an older version, or a packet of which only the results were kept.
        return packet.path == packet.home.archived(packet.task_id).path
    try:
        size = os.fstat(descriptor).st_size
        end = _genuine(descriptor, size, sealed) if sealed is not None else None
        last = _last_move(descriptor, end) if end is not None else None
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return last == status if last is not None else None


def _genuine(descriptor: int, size: int, sealed: tuple[Seal, Seal]) -> int | None:
    """How much of a journal its runners have written; None if that is not plain."""
    if not sealed[0].is_of_this_boot:
        return size  # the last seals may have been lost with the power
    seal = next((each for each in sealed if each.size <= size), None)
    if seal is None:
        return None
    if seal.size <= _DIGEST_BYTES and seals.digest_of(descriptor, seal.size).digest() != seal.digest:
        return None
    return seal.size


def _last_move(descriptor: int, end: int) -> str | None:
    """The status of the last move; None if it is further up."""
    start = max(0, end - _TAIL_BYTES)
    lines = os.pread(descriptor, end - start, start).split(b"\n")
    for line in reversed(lines[1:] if start else lines):
        if _MOVED not in line:
            continue
        try:
            event = quick_json.loads(line)
        except ValueError:
            return None
        # The words may be in a text, too.
        if isinstance(event, dict) and event.get("type") == "task.moved":  # pyright: ignore[reportUnknownMemberType]
            return str(event.get("new"))  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
    return None
