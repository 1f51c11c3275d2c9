"""The summary of a task, which its runner writes: result, stages, failure, what to do next. At most 4 KB."""

from __future__ import annotations

from holdfast import files
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "holdfast.summary/1"
_MOST_BYTES = 3500


def gather(packet: Packet, manifest: dict[str, Any]) -> dict[str, Any]:
    """The summary, as `show --summary --json` prints it; `text` is empty before there is one."""
    try:
        data = files.read(packet.summary)
    except OSError:
        data = b""
    return {
        "schema": SCHEMA,
        "task_id": packet.task_id,
        "status": manifest["status"],
        "text": data[:_MOST_BYTES].decode("utf-8", "ignore"),
        "left_out_bytes": max(0, len(data) - _MOST_BYTES),
        "path": packet.summary,
    }
