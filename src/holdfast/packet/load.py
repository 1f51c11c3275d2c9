"""Reading packets: find one by its id or a part of it, fold its journal, and tell whether it is live."""

from __future__ import annotations

import os

from holdfast import clock, ids
from holdfast.errors import AmbiguousId, CorruptFile, HoldfastError, NotFound
from holdfast.model.status import ENDS, PARKED, Status
from holdfast.packet import inbox
from holdfast.store import atomic, layout
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.task import Task


def find(home: Home, text: str, *, archived: bool = False) -> Packet:
    """The packet of an id or of its unique prefix. Raises NotFound, AmbiguousId, InvalidId.

    `archived` is for those who only read, or remove: they find it in the archive where it is nowhere else.
    """
    ids.check_task_id(text)
    exact = home.packet(text)
    if os.path.isdir(exact.path) and (not os.path.islink(exact.path) or os.path.exists(exact.journal)):
        return exact
    found = _only(text, task_ids(home))
    if found is not None:
        return home.packet(found)
    in_archive = _only(text, archived_ids(home)) if os.path.isdir(home.archive) else None
    if in_archive is None:
        raise NotFound(f"there is no task {text!r} in {home.path}", hint=_near(home, text))
    if not archived:
        raise NotFound(
            f"{in_archive} is in the archive", hint=f"it can be read: 'holdfast show {in_archive}'"
        )
    return home.archived(in_archive)


def wherever(packet: Packet) -> Packet:
    """The packet itself, or where it lies in the archive by now."""
    put_away = packet.home.archived(packet.task_id)
    return put_away if not os.path.isdir(packet.path) and os.path.isdir(put_away.path) else packet


def _only(text: str, names: list[str]) -> str | None:
    """The id, or the one that begins with it."""
    if text in names:
        return text
    fitting = [name for name in names if name.startswith(text)]
    if len(fitting) > 1:
        some = ", ".join(fitting[:4]) + (", …" if len(fitting) > 4 else "")
        raise AmbiguousId(f"{text!r} could be {some}")
    return fitting[0] if fitting else None


def archived_ids(home: Home) -> list[str]:
    """Every task of the archive, in the order of their ids."""
    return _packets_in(home.archive)


def _packets_in(folder: str) -> list[str]:
    """The directories in it; what else people or their editors leave there is no task."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name[0] != "." and layout.is_packet(entry))
    except FileNotFoundError:
        return []
    except OSError as error:
        atomic.storage_failed(error, f"cannot read {folder}")


def _near(home: Home, text: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(text, task_ids(home), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def is_settled(packet: Packet, manifest: dict[str, Any]) -> bool:
    """Whether nothing more happens by itself. An end counts once it is marked: then every file is written."""
    if manifest["status"] in ENDS:
        return os.path.exists(packet.task_done)
    return manifest["status"] == Status.INTERRUPTED


def task_ids(home: Home) -> list[str]:
    """Every task of the home, in the order of their ids."""
    return _packets_in(home.tasks)


def attempt_names(packet: Packet) -> list[str]:
    """The directories of its attempts, in order; an agent may have put anything beside them."""
    try:
        names = os.listdir(packet.attempts)
    except OSError:
        return []
    found: list[tuple[int, str]] = []
    for name in names:
        head, dash, _ = name.partition("-")
        if dash and head.isascii() and head.isdecimal() and os.path.isdir(packet.attempt(name).path):
            found.append((int(head), name))
    return [name for _, name in sorted(found)]


def fold(packet: Packet) -> Task:
    """The task as its journal tells it. Raises NotFound, CorruptFile."""
    # Loaded late: commands that read a manifest need none of it.
    from holdfast.model.fold import apply
    from holdfast.model.task import Task
    from holdfast.store import journal

    task = Task()
    try:
        for at, event in journal.read(packet.journal):
            apply(task, event, at)
    except FileNotFoundError as error:
        raise NotFound(f"there is no task at {packet.path}") from error
    if not task.created_at:
        raise CorruptFile(
            f"{packet.journal} is empty", hint="the task cannot be read; remove it with 'holdfast rm'"
        )
    return task


def read_manifest(packet: Packet) -> dict[str, Any]:
    """manifest.json; derived from the journal where it is missing or torn, since that is all it ever is."""
    try:
        data = atomic.read_json(packet.manifest)
    except CorruptFile:
        data = None
    if data is not None and "status" in data:
        return data
    from holdfast.model import manifest

    return manifest.render(fold(packet), packet.path, manifest.Observed())


#: A request that lies in the inbox for longer, or a manifest that no heartbeat has touched for as long, means that the
#: runner is stopped. (The base interval is 30 s unless a task sets it.)
DEAF_S, SILENT_S = 5.0, 120.0


def is_unresponsive(packet: Packet) -> bool:
    """Whether the task's living runner answers neither bell nor heartbeat."""
    now = clock.now()
    names = inbox.names(packet)
    try:
        if names:
            return now - os.stat(os.path.join(packet.inbox, names[0])).st_mtime > DEAF_S
        data = atomic.read_json(packet.manifest)
        silent_s = now - os.stat(packet.manifest).st_mtime
        if silent_s <= SILENT_S or data is None or data.get("status") != Status.RUNNING:
            return False
        return silent_s > 2 * _base_interval_s(packet)
    except (OSError, HoldfastError):
        return False


def _base_interval_s(packet: Packet) -> float:
    """How often the task's runner looks, as its first event says."""
    from holdfast.store import journal

    for _, event in journal.read(packet.journal):
        limits = getattr(event, "spec", {}).get("limits", {})
        return float(limits.get("base_interval_s", 0.0))
    return 0.0


def is_live(packet: Packet, status: str) -> bool:
    """Whether a runner ought to live for the task (its manifest says `status`)."""
    if inbox.names(packet):
        return True
    return not os.path.exists(packet.task_done) and Status(status) not in PARKED
