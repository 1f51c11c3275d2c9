"""Rows of index.db: the fields of a manifest that `ls` needs, read from a packet."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.soundness import UNREADABLE, is_sound
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
    "denied_readers",
)  # fmt: skip
#: Of each stage, these.
_STAGE_FIELDS = ("name", "state", "agent", "decision")
#: A file or directory that changed this recently may change again without a newer timestamp.
RACY_S = 0.1


def short(manifest: dict[str, Any]) -> dict[str, Any]:
    """The fields of a manifest that `ls` needs."""
    return {
        **{field: manifest.get(field) for field in FIELDS},
        "schema": "holdfast.short-manifest/1",
        "stages": _short_stages(manifest.get("stages")),
    }


def _short_stages(stages: Any) -> list[dict[str, Any]]:
    if not isinstance(stages, list):
        return []
    return [
        {name: stage[name] for name in _STAGE_FIELDS if name in stage}
        for stage in stages  # pyright: ignore[reportUnknownVariableType]
        if isinstance(stage, dict)
    ]


def stamp_of(path: str, now: float) -> str:
    """Changes whenever the file does. Empty if there is none, or if it has just changed (see RACY_S)."""
    try:
        found = os.lstat(path)
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
    packet = home.packet(task_id)
    # Before it is read: what comes later changes it.
    stamp = stamp_of(packet.manifest, clock.now())
    try:
        manifest = atomic.read_json(packet.manifest)
    except HoldfastError:
        manifest = None
    if manifest is None or not is_sound(manifest):
        stamp = ""
        try:
            manifest = _derived(packet)
        except (HoldfastError, OSError) as error:
            unreadable = _unreadable(packet, error)
            return (unreadable, stamp) if unreadable is not None else None
    manifest["task_id"] = task_id
    return short(manifest), stamp


def _derived(packet: Packet) -> dict[str, Any]:
    from holdfast.model import manifest  # rarely needed
    from holdfast.store import journal

    return manifest.render(journal.fold(packet.journal), packet.path, manifest.Observed())


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
            "pid": 0,
            "active_s": 0.0,
            "usage": {"input_tokens": None, "output_tokens": None, "cost_usd": None},
            "project_dir": "",
            "started_at": clock.iso(made),
        }
    )
