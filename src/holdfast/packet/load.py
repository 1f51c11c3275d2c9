"""Read packets: find one by id or prefix, fold its journal, check whether it is live."""

from __future__ import annotations

import os

from holdfast import clock, ids
from holdfast.errors import AmbiguousId, CorruptFile, HoldfastError, NotFound
from holdfast.model.soundness import is_sound
from holdfast.model.status import ENDS, PARKED, Status
from holdfast.packet import inbox
from holdfast.store import atomic, layout, no_links
from holdfast.store import lock as locks
from holdfast.store.directories import restore_modes
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import TaskSpec
    from holdfast.model.task import Task


#: Ids that are suggested.
_MOST_NEAR = 3


def find(home: Home, text: str, *, archived: bool = False) -> Packet:
    """Find a packet by its id or a unique prefix. Raises NotFound, AmbiguousId, InvalidId.

    With `archived`, archived packets are found too; for callers that only read or remove. The whole id of an
    archived task never means another task that it is a prefix of.
    """
    ids.check_task_id(text)
    exact = home.packet(text)
    if not os.access(exact.path, os.R_OK | os.X_OK):
        restore_modes(exact.path)  # its agent has hidden it
    if _is_there(exact):
        return exact
    # The archive may be long: it is listed last.
    is_archived = no_links.is_directory(home.archive) and _is_there(home.archived(text))
    task_id = None if is_archived else _only(text, task_ids(home))
    if task_id is not None:
        return home.packet(task_id)
    in_archive = text if is_archived else _only(text, archived_ids(home))
    if in_archive is None:
        raise NotFound(f"no task {text!r} in {home.path}", hint=_suggestion(home, text))
    if not archived:
        raise NotFound(
            f"{in_archive} is archived",
            hint=f"'holdfast show {in_archive}' still reads it, 'holdfast archive --restore {in_archive}' "
            "brings it back",
        )
    return home.archived(in_archive)


def _is_there(packet: Packet) -> bool:
    """Whether there is a packet, or a link to one that was moved elsewhere (`layout.is_packet`)."""
    return os.path.isdir(packet.path) and (not os.path.islink(packet.path) or os.path.exists(packet.journal))


def wherever(packet: Packet) -> Packet:
    """The packet, or its archived copy if it was archived in the meantime."""
    put_away = packet.home.archived(packet.task_id)
    return put_away if not os.path.isdir(packet.path) and os.path.isdir(put_away.path) else packet


def _only(text: str, names: list[str]) -> str | None:
    """The name that equals or starts with the text."""
    if text in names:
        return text
    fitting = [name for name in names if name.startswith(text)]
    if len(fitting) > 1:
        some = ", ".join(fitting[:4]) + (", …" if len(fitting) > 4 else "")
        raise AmbiguousId(f"{text!r} is ambiguous: {some}")
    return fitting[0] if fitting else None


def archived_ids(home: Home) -> list[str]:
    """Ids of the archived tasks, sorted. Empty if the archive is a link: `prune` would remove what is in its
    target."""
    return _packets_in(home.archive) if no_links.is_directory(home.archive) else []


def _packets_in(folder: str) -> list[str]:
    """Names of the packets in a directory; other files there are ignored."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name[0] != "." and layout.is_packet(entry))
    except FileNotFoundError:
        return []
    except OSError as error:
        atomic.storage_failed(error, f"cannot read {folder}")


def _suggestion(home: Home, text: str) -> str:
    """What may be meant: a schedule, or a task whose id contains the text or is similar."""
    if os.path.exists(home.schedule(text)):
        return (
            f"it is a schedule: 'holdfast queue show {text}' shows it, 'holdfast queue rm {text}' removes it"
        )
    from difflib import get_close_matches

    known = task_ids(home)
    near = [name for name in known if text in name] or get_close_matches(text, known, n=1)
    return f"did you mean {' or '.join(map(repr, near[:_MOST_NEAR]))}?" if near else ""


def is_settled(packet: Packet, manifest: dict[str, Any]) -> bool:
    """Whether nothing more will happen without a request.

    An ended task counts once its marker, the last file, is written.
    """
    if manifest["status"] in ENDS:
        return os.path.exists(packet.task_done) and has_ended_as(packet, manifest["status"])
    return manifest["status"] == Status.INTERRUPTED


def has_ended_as(packet: Packet, status: str) -> bool:
    """Whether a task has really ended with the status that its manifest shows.

    The agent can write that file, so the journal decides.
    """
    if not locks.is_held(packet.runner_lock):
        from holdfast.store import ends

        is_confirmed = ends.confirms(packet, status)
        if is_confirmed is not None:
            return is_confirmed
    try:
        return fold(packet).status == status
    except HoldfastError:
        return False


def believed(packet: Packet, manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest, or one derived from the journal: if it shows an end that the journal does not have, and
    no runner is there to put it right. Raises as `fold`."""
    status = manifest["status"]
    if status not in ENDS or has_ended_as(packet, status) or locks.is_held(packet.runner_lock):
        return manifest
    return derived(packet)


def task_ids(home: Home) -> list[str]:
    """Ids of the home's tasks, sorted. Empty if their directory is a link, as for the archive."""
    return [] if os.path.islink(home.tasks) else _packets_in(home.tasks)


def attempt_names(packet: Packet) -> list[str]:
    """Names of the attempt directories, in order. Other files there and takeovers by people are ignored."""
    return [name for name, _ in numbered_attempts(packet)]


def numbered_attempts(packet: Packet) -> list[tuple[str, int | None]]:
    """The same, each with its number as shown to users. Chores and takeovers have a directory, but do not
    count: None for a chore."""
    try:
        names = os.listdir(packet.attempts)
    except OSError:
        return []
    directories: list[tuple[int, str]] = []
    for name in names:
        head, dash, _ = name.partition("-")
        number = ids.number_in(head)
        if dash and number is not None and os.path.isdir(packet.attempt(name).path):
            directories.append((number, name))
    found: list[tuple[str, int | None]] = []
    others = 0
    for number, name in sorted(directories):
        is_agent = "." not in name
        others += not is_agent
        if not name.endswith(".takeover"):
            # As in the fold: a gap in the numbers counts as an attempt.
            found.append((name, number - others if is_agent else None))
    return found


def last_number(packet: Packet) -> int:
    """The highest number of an attempt's directory; 0 if there is none."""
    try:
        names = os.listdir(packet.attempts)
    except OSError:
        return 0  # an agent removed it
    return max((ids.number_in(name.partition("-")[0]) or 0 for name in names if "-" in name), default=0)


def fold(packet: Packet) -> Task:
    """The task, folded from its journal. Raises NotFound, CorruptFile."""
    # Imported late: commands that only read a manifest do not need it.
    from holdfast.packet import sealed

    try:
        return sealed.fold(packet)
    except FileNotFoundError as error:
        raise sealed.missing(packet) from error


def moved_project(spec: TaskSpec) -> str:
    """Where a link leads that has taken the place of the project since the task was created; empty if there
    is none."""
    now = os.path.realpath(spec.project_dir) if spec.project_real else ""
    return now if now != spec.project_real and os.path.isdir(now) else ""


def read_manifest(packet: Packet) -> dict[str, Any]:
    """manifest.json; if it is missing, torn or makes no sense, it is derived from the journal.

    Id and path are those of the directory, whatever the file says: it may have been archived or renamed.
    """
    try:
        data = atomic.read_json(packet.manifest)
    except CorruptFile:
        data = None
    if data is not None and is_sound(data):
        if data.get("task_id") == packet.task_id and data.get("tmpdir") == packet.path:
            return data
        return {**data, "task_id": packet.task_id, "tmpdir": packet.path}
    return derived(packet)


def read_true(packet: Packet) -> dict[str, Any]:
    """As `read_manifest`, but an end counts only if the journal has it, also while a runner lives: an agent
    can write the file more often than its runner. For what acts on a task, or shows it to a person."""
    manifest = read_manifest(packet)
    return (
        manifest
        if manifest["status"] not in ENDS or has_ended_as(packet, manifest["status"])
        else derived(packet)
    )


def derived(packet: Packet) -> dict[str, Any]:
    """The manifest as it follows from the journal, whatever the file says. Raises as `fold`.

    For what leaves the home: an agent can write the file, with an end, gates and objections.
    """
    from holdfast.model import manifest

    return {
        **manifest.render(fold(packet), packet.path, manifest.Observed()),
        "task_id": packet.task_id,
    }


#: A runner is considered stopped if a request stays in the inbox, or the manifest gets no heartbeat, for
#: longer than this. (The base interval is 30 s unless the task sets it.)
DEAF_S, SILENT_S = 5.0, 120.0


def is_unresponsive(packet: Packet) -> bool:
    """Whether the task's runner is alive but reacts neither to the bell nor to its heartbeat interval."""
    now = clock.now()
    names = inbox.names(packet)
    try:
        if names:
            return now - os.stat(os.path.join(packet.inbox, names[0])).st_mtime > DEAF_S
        silent_s = now - os.stat(packet.manifest).st_mtime
        if silent_s <= SILENT_S:
            return False  # before anything is read: the keeper asks often
        data = atomic.read_json(packet.manifest)
        if data is None or data.get("status") != Status.RUNNING:
            return False
        return silent_s > 2 * _base_interval_s(packet)
    except (OSError, HoldfastError):
        return False


def _base_interval_s(packet: Packet) -> float:
    """The base interval of the task's runner, from its first event."""
    from holdfast.store import journal

    for _, event in journal.read(packet.journal):
        limits = getattr(event, "spec", {}).get("limits", {})
        return float(limits.get("base_interval_s", 0.0))
    return 0.0


def is_live(packet: Packet, status: str) -> bool:
    """Whether the task should have a runner, given the status in its manifest."""
    if inbox.names(packet):
        return True
    if status in ENDS:
        return not os.path.exists(packet.task_done)
    # A marker of a task that has not ended is not ours.
    return Status(status) not in PARKED


def is_stripped(packet: Packet) -> bool:
    """Whether only the summary is left."""
    return not os.path.exists(packet.journal)


def require_whole(packet: Packet) -> None:
    """Raises NotFound if `prune --keep-summaries` has left only the summary of an archived task."""
    if packet.path.startswith(f"{packet.home.archive}/") and is_stripped(packet):
        raise NotFound(
            f"of {packet.task_id} only the summary is left",
            hint=f"'holdfast show {packet.task_id} --summary' prints it",
        )
