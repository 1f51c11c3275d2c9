"""How long a task has worked in its current run. Pure."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.status import ENDS, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_WAITS = frozenset({Status.WAITING, Status.QUEUED})


def elapsed_s(manifest: dict[str, Any], now: float) -> float:
    """Seconds from the start of its run to the end, or to now, without the time in which it waited: in the
    queue, for people, for a limit, or before a retry. For a manifest or a row of the index."""
    get = manifest.get
    ended, waited_s = get("finished_at"), get("waited_s")
    began = get("run_started_at") if waited_s is not None else began_at(manifest)
    if began is None:
        return 0.0
    waited_s = (waited_s or 0.0) + (get("asked_s") or 0.0)
    if interrupt := get("interrupt"):
        waited_s += max(0.0, now - clock.parse_iso(interrupt["timestamp"]))
    elif manifest["status"] in _WAITS:
        waited_s += max(0.0, now - clock.parse_iso(manifest["status_updated_at"]))
    until = clock.parse_iso(ended) if ended else now
    return max(0.0, until - clock.parse_iso(began) - waited_s)


def began_at(manifest: dict[str, Any]) -> str | None:
    """When its run began to work; None if it has not, or had not when it ended."""
    if manifest.get("waited_s") is not None:
        return manifest.get("run_started_at")
    # An older version wrote it, which knew only the first run.
    begun: str | None = manifest.get("begun_at")
    has_never_run = manifest.get("attempt") == 0 and manifest["status"] in ENDS
    if begun is None and (has_never_run or manifest["status"] == Status.QUEUED):
        return None
    return begun or manifest["started_at"]
