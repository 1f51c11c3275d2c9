"""The journal of a task, checked against its seals: for the runner that continues it, and for readers.

What no seal vouches for does not count. A runner removes it, keeps it beside the journal, and records
`journal.forged`, on which the planner leaves the task to a person.
"""

from __future__ import annotations

import os

from holdfast import files, ids
from holdfast.errors import CorruptFile, ForgedJournal, HoldfastError, NotFound, NotPossible
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.store import admitted, atomic, journal, layout, seals
from holdfast.store.journal import Folded, Journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.task import Task
    from holdfast.store.layout import Packet
    from holdfast.store.seals import Seal

#: In a chore: how much of which journal its runner believes.
_pinned: tuple[str, Seal] | None = None


def pin(packet: Packet, text: str) -> None:
    """In this process, believe exactly what the runner believed (`Journal.pin`) when it started it."""
    global _pinned
    size, _, digest = text.partition(":")
    _pinned = packet.path, seals.Seal(int(size), bytes.fromhex(digest), seals.this_boot())


def fold(packet: Packet) -> Task:
    """The task, for a reader. Raises FileNotFoundError, CorruptFile, ForgedJournal.

    An append in progress, and lines from anything but the runner, are left out.
    """
    return _fold(packet)[0].task


def fold_admitted(packet: Packet) -> Task:
    """As `fold`, for what takes from the first line what is run. Raises NotPossible if no command made that
    line: it is the one that was read, whatever is in its place now."""
    return _fold_admitted(packet)[0].task


def fold_to_run(packet: Packet) -> Task:
    """As `fold_admitted`, for a process that runs what the journal says and is not started by its runner.

    Raises ForgedJournal if the journal is in doubt, also if a runner has found that and asked nobody yet.
    """
    folded, sealed = _fold_admitted(packet)
    reason = seals.gone(packet) if _is_doubtful(folded, sealed) else folded.task.distrust
    if reason:
        hint = f"'holdfast resume {packet.task_id}' leaves it to you what of it counts"
        raise ForgedJournal(f"{packet.task_id} is in doubt: {reason}", hint=hint)
    return folded.task


def _fold_admitted(packet: Packet) -> tuple[Folded, tuple[Seal, Seal] | None]:
    try:
        folded, sealed = _fold(packet)
    except FileNotFoundError as error:
        raise missing(packet) from error
    if not admitted.has_first_line(packet, folded.first_line):
        hint = f"'holdfast resume {packet.task_id}' says what it would run"
        raise NotPossible(admitted.objection(packet), hint=hint)
    return folded, sealed


def _fold(packet: Packet) -> tuple[Folded, tuple[Seal, Seal] | None]:
    """With the seals by which it was checked."""
    if _pinned is not None and _pinned[0] == packet.path:
        sealed = (_pinned[1], _pinned[1])
        return journal.fold_sealed(packet.journal, sealed), sealed
    sealed = _sealed(packet)
    try:
        return _fold_sealed(packet, sealed), sealed
    except ForgedJournal:
        again = _sealed(packet)
        if again is None or (sealed is not None and again[0].size == sealed[0].size):
            raise
        return _fold_sealed(packet, again), again  # a runner was writing meanwhile


def _fold_sealed(packet: Packet, sealed: tuple[Seal, Seal] | None) -> Folded:
    folded = journal.fold_sealed(packet.journal, sealed)
    seals.check_found(packet, sealed, folded.lines)
    return folded


def _sealed(packet: Packet) -> tuple[Seal, Seal] | None:
    try:
        return seals.last_two(packet.seals)
    except OSError:
        return None  # no file


def missing(packet: Packet) -> HoldfastError:
    """The error for a packet without a journal."""
    if os.path.isdir(packet.path):
        hint = f"restore it from a backup; 'holdfast rm --force {packet.task_id}' removes the task"
        return CorruptFile(f"{packet.journal} is missing", hint=hint)
    return NotFound(f"no task at {packet.path}")


def has_ended(packet: Packet) -> bool:
    """Whether the task has ended, and its journal is not in doubt. Raises as `fold`."""
    try:
        folded, sealed = _fold(packet)
    except FileNotFoundError as error:
        raise missing(packet) from error
    return folded.task.has_ended and not _is_doubtful(folded, sealed)


def _is_doubtful(folded: Folded, sealed: tuple[Seal, Seal] | None) -> bool:
    """Whether the journal has no seals. Only that of its first line may be lost, with the power; then
    `store.admitted` vouches for the line."""
    return sealed is None and folded.lines > 1


def open_for_runner(packet: Packet, distrust: str = "") -> tuple[Task, Journal, tuple[ev.Event, ...]]:
    """The task, its journal for writing, and the events to begin with.

    `distrust`: why this runner, which had it open before, does not trust it. Raises CorruptFile, and
    ForgedJournal if nothing of it can be believed.
    """
    try:
        layout.make_records(packet.home.path)
    except OSError as error:
        atomic.storage_failed(error, f"cannot make the directory of {packet.seals}")
    try:
        descriptor = journal.open_to_write(packet.journal)
    except FileNotFoundError as error:
        raise missing(packet) from error
    try:
        return _open(packet, descriptor, distrust)
    except BaseException:
        os.close(descriptor)
        raise


def _open(packet: Packet, descriptor: int, distrust: str) -> tuple[Task, Journal, tuple[ev.Event, ...]]:
    found: list[ev.Event] = []
    is_rescued = False
    sealed = _sealed(packet)
    try:
        folded = journal.fold_sealed(packet.journal, sealed, descriptor)
    except CorruptFile:
        if sealed is None:
            raise
        folded, event = _rescue(packet, descriptor)
        found += [event] if event is not None else []
        sealed, is_rescued = None, True
    # Without a record, it is of an earlier version, a copy, or of other settings: it is not run anyway.
    is_ours = admitted.has_first_line(packet, folded.first_line)
    if not is_rescued and is_ours and _is_doubtful(folded, sealed):
        found.append(ev.JournalForged(reason=seals.gone(packet)))
        if folded.task.has_ended:
            # Only a new run can be left to a person, also if there are requests: an agent can write them.
            found.append(ev.RunOpened(run=folded.task.run + 1, request=ids.new_ulid()))
    own = seals.Seals(packet.seals)
    try:
        opened = Journal(packet.journal, descriptor=descriptor, folded=folded, seals=own)
        if folded.is_cut:
            own.drop_last()
        repaired = opened.repair()
        if repaired is not None:
            found.append(repaired)
        if sealed is None or sealed[0].size != folded.size or not sealed[0].is_open:
            opened.open_seals()
    except BaseException:
        own.close()
        raise
    if not any(isinstance(event, ev.JournalForged) for event in found):
        noted = seals.noted_forgery(packet.seals)
        if noted is not None:  # the runner before us was killed before it could record it
            found.append(ev.JournalForged(reason=noted[0], dropped_bytes=noted[1]))
        elif distrust:
            found.append(ev.JournalForged(reason=distrust))
    return folded.task, opened, tuple(found)


def _rescue(packet: Packet, descriptor: int) -> tuple[Folded, ev.JournalForged | None]:
    """Go back to what a seal vouches for, in an open journal. Raises ForgedJournal if there is nothing."""
    good, is_complete = seals.longest(packet.seals, descriptor)
    if good and not is_complete:
        # The last seals were lost with the power.
        return journal.fold_sealed(packet.journal, None, descriptor), None
    size = os.fstat(descriptor).st_size
    kept_at = atomic.free_name(f"{packet.journal}.forged")
    if not good:
        atomic.move(packet.journal, kept_at)
        atomic.forget(packet.manifest)  # it may say anything
        raise ForgedJournal(
            f"{packet.journal} was replaced: nothing in it was written by holdfast; it is now {kept_at}",
            hint=f"'holdfast rm --force {packet.task_id}' removes the task",
        )
    if size <= files.MAX_BYTES:
        with files.stream_open(descriptor) as file:
            atomic.write(kept_at, file.read(files.MAX_BYTES), durable=True)
    reason = (
        f"another process changed the journal; its first {good} bytes are genuine, the rest is ignored "
        f"(all of it is in {os.path.basename(kept_at)})"
    )
    dropped_bytes = max(0, size - good)
    seals.note_forgery(packet.seals, reason, dropped_bytes)
    failpoint("sealed.before_truncate")
    os.ftruncate(descriptor, good)
    failpoint("sealed.truncated")
    folded = journal.fold_sealed(packet.journal, None, descriptor)
    return folded, ev.JournalForged(reason=reason, dropped_bytes=dropped_bytes)


def settle(packet: Packet) -> None:
    """What was removed from the journal is recorded now."""
    seals.forget_forgery(packet.seals)
