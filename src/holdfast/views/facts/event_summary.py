"""The summary of a task's events: counts, attempts, tools, usage."""

from __future__ import annotations

from holdfast.packet import load
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.analysis import Analysis


def summarize(packet: Packet, analysis: Analysis) -> dict[str, Any]:
    """The summary as `events --summary --json` prints it."""
    manifest = load.read_manifest(packet)
    return {
        "schema": "holdfast.event-summary/1",
        "task_id": manifest["task_id"],
        "status": manifest["status"],
        "agent": manifest.get("agent"),
        "usage": manifest.get("usage"),
        **analysis.to_json(),
    }
