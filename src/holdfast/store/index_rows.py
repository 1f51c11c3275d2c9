"""Rows of index.db: the fields of a manifest that `ls` needs, read from a packet."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.soundness import UNREADABLE, is_sound
from holdfast.model.status import ENDS, Status
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Manifest fields in a row: enough for `ls`.
FIELDS = (
    "schema", "task_id", "task_name", "goal", "status", "status_reason", "status_cause", "agent", "model",
    "stage", "attempt", "retry_count", "total_retries", "started_at", "begun_at", "finished_at", "wake_at",
    "usage", "project_dir", "pid", "exit_code", "active_s", "interrupt", "last_progress_at", "progress",
    "verdict", "waiting_for", "stopping", "concerns", "denied", "labels", "status_updated_at", "deadline_at",
    "paid_calls", "session_id", "asked_s", "last_words", "permissions", "sandbox", "applied",
    "denied_readers", "run_started_at", "waited_s", "repairs", "over_budget",
    "accept", "run",
)  # fmt: skip
#: Of each stage, these.
_STAGE_FIELDS = ("name", "state", "agent", "decision", "passed_before")
#: Fields of a working task that the table of `ls` shows or computes with: these are always there, the others
#: if they are not empty.
_ALWAYS = ("task_id", "status", "agent", "stage", "started_at")
_BRIEF = (
    "stopping", "begun_at", "finished_at", "run_started_at", "waited_s", "asked_s", "wake_at",
    "interrupt", "progress", "waiting_for", "concerns", "denied", "denied_readers", "applied", "last_words",
    "labels",
)  # fmt: skip
#: What every row has, and what one of a table has that is not complete.
NEEDED, NEEDED_BRIEF = frozenset((*FIELDS, "stages")), frozenset(_ALWAYS)
#: A file or directory that changed this recently may change again without a newer timestamp.
RACY_S = 0.1


def short(manifest: dict[str, Any]) -> dict[str, Any]:
    """The fields of a manifest that `ls` needs."""
    return {
        **{field: manifest.get(field) for field in FIELDS},
        "schema": "holdfast.short-manifest/1",
        "stages": _short_stages(manifest.get("stages")),
    }


def brief(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a row that a table shows of a live task, without empty ones: a sixth of its text, for
    a list of thousands. A task that waits has more to show: its row is complete."""
    if row["status"] in (Status.WAITING, Status.QUEUED):
        return row
    listed = {name: row[name] for name in _ALWAYS}
    for name in _BRIEF:
        value = row[name]
        if value is not None and value not in ([], {}, ""):
            listed[name] = value
    if row["waited_s"] is None:
        listed["attempt"] = row["attempt"]  # an older version wrote it (`model.elapsed`)
    usage: dict[str, Any] = row["usage"] or {}
    if usage.get("cost_usd") is not None or any(usage.values()):
        listed["usage"] = usage
    return listed


def _short_stages(stages: Any) -> list[dict[str, Any]]:
    if not isinstance(stages, list):
        return []
    return [
        {name: stage[name] for name in _STAGE_FIELDS if name in stage}
        for stage in stages  # pyright: ignore[reportUnknownVariableType]
        if isinstance(stage, dict)
    ]


def stamp_of(path: str, now: float, folder: int | None = None) -> str:
    """Changes whenever the file does. Empty if there is none, or if it has just changed (see RACY_S).

    The path may be relative to an open folder.
    """
    try:
        found = os.lstat(path, dir_fd=folder)
    except OSError:
        return ""
    if now - found.st_mtime < RACY_S:
        return ""
    return f"{found.st_mtime_ns}.{found.st_size}.{found.st_ino}"


def read_row(home: Home, task_id: str) -> tuple[dict[str, Any], str] | None:
    """The row of a packet: from its manifest, else from its journal, else one that says what is wrong.

    And the stamp of the manifest, if it is from there. None if there is no packet. The id is that of the
    directory, whatever the file says.
    """
    path = home.manifest_of(task_id)
    # Before it is read: what comes later changes it.
    stamp = stamp_of(path, clock.now())
    try:
        manifest = atomic.read_json(path)
    except HoldfastError:
        manifest = None
    # An agent can write the file: an end counts only if the journal has it.
    is_true = (
        manifest is not None
        and is_sound(manifest)
        and (manifest["status"] not in ENDS or has_ended_as(home, task_id, manifest["status"]))
    )
    if manifest is None or not is_true:
        stamp, packet = "", home.packet(task_id)
        try:
            manifest = _derived(packet)
        except (HoldfastError, OSError) as error:
            unreadable = _unreadable(packet, error)
            return (unreadable, stamp) if unreadable is not None else None
    manifest["task_id"] = task_id
    return short(manifest), stamp


def has_ended_as(home: Home, task_id: str, status: str) -> bool:
    """Whether the journal ends with this status."""
    from holdfast.store import ends  # the index knows most ends already

    try:
        return bool(
            ends.ends_as(home.journal_of(task_id), home.seals_of(task_id), home.admission_of(task_id), status)
        )
    except OSError:
        return False


def _derived(packet: Packet) -> dict[str, Any]:
    from holdfast.model import manifest  # rarely needed
    from holdfast.store import journal, seals

    try:
        sealed = seals.last_two(packet.seals)
    except OSError:
        sealed = None
    folded = journal.fold_sealed(packet.journal, sealed)
    seals.check_found(packet, sealed, folded.lines)
    return manifest.render(folded.task, packet.path, manifest.Observed())


def _unreadable(packet: Packet, error: Exception) -> dict[str, Any] | None:
    try:
        made = os.stat(packet.path).st_mtime
    except OSError:
        return None
    is_missing = isinstance(error, FileNotFoundError)
    return short(
        {
            "task_id": packet.task_id,
            "task_name": packet.task_id,
            "goal": "",
            "status": UNREADABLE,
            "status_reason": f"{packet.journal} is missing" if is_missing else str(error),
            "agent": "-",
            "attempt": 0,
            "retry_count": 0,
            "total_retries": 0,
            "pid": None,
            "active_s": 0.0,
            "usage": {"input_tokens": None, "output_tokens": None, "cost_usd": None},
            "project_dir": "",
            "started_at": clock.iso(made),
        }
    )
