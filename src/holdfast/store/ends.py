"""The end of a task, from the last lines of its journal: cheap enough for every `wait` and for the keeper.

An agent can write `manifest.json` and `_task.done`. The journal is sealed (`store/seals.py`), so it decides.
Folding it would cost a command more than all it does otherwise; here only its digest is computed, and the
last move is looked for.
"""

from __future__ import annotations

import os

from holdfast import files, quick_json
from holdfast.store import seals
from holdfast.store.digest import running

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
        return ends_as(packet.journal, packet.seals, packet.admission, status)
    except OSError:
        # A packet in the archive of which only the summary was kept has no seals either. If there are some,
        # an agent has removed the journal.
        is_archived = packet.path == packet.home.archived(packet.task_id).path
        return is_archived and not os.path.lexists(packet.seals)


def ends_as(journal: str, its_seals: str, admission: str, status: str) -> bool | None:
    """As `confirms`, for a list of thousands of tasks. Raises OSError if a file cannot be opened."""
    sealed = seals.last_two(its_seals)
    descriptor, size = files.open_sized(journal)
    try:
        if sealed is not None:
            last = _last_move(descriptor, size, sealed)
        elif os.path.lexists(admission):
            last = None
        else:
            last = _last_in(descriptor, size)  # of a copied home: it is shown as it is, and never run
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return last == status if last is not None else None


def _last_move(descriptor: int, size: int, sealed: tuple[Seal, Seal]) -> str | None:
    """The status of the last move that a runner has written; None if that is not plain, or further up."""
    if not sealed[0].is_last:
        return _last_in(descriptor, size)  # the last seals may have been lost with the power
    seal = next((each for each in sealed if each.size <= size), None)
    if seal is None:
        return None
    if seal.size > _DIGEST_BYTES:
        return _last_in(descriptor, seal.size)
    data = os.pread(descriptor, seal.size, 0)
    digest = running()
    digest.update(data)
    return _search(data, max(0, seal.size - _TAIL_BYTES)) if digest.digest() == seal.digest else None


def _last_in(descriptor: int, end: int) -> str | None:
    start = max(0, end - _TAIL_BYTES)
    # From the end of the line before.
    data = os.pread(descriptor, end - start, start)
    return _search(data, data.find(b"\n") if start else 0)


def _search(data: bytes, start: int) -> str | None:
    """The status of the last move in whole lines after a position; None if there is none."""
    end = len(data)
    while (at := data.rfind(_MOVED, start, end)) >= 0:
        begin = data.rfind(b"\n", 0, at) + 1
        try:
            event = quick_json.loads(data[begin : data.find(b"\n", at) + 1 or len(data)])
        except ValueError:
            return None
        # The words may be in a text, too.
        if isinstance(event, dict) and event.get("type") == "task.moved":  # pyright: ignore[reportUnknownMemberType]
            return str(event.get("new"))  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
        end = begin
    return None
