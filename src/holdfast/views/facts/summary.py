"""The summary of a task, which its runner writes: result, stages, failure, what to do next. At most 4 KB."""

from __future__ import annotations

import os

from holdfast import clock, files
from holdfast.model.status import ENDS
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "holdfast.summary/1"
_MAX_BYTES = 3500
#: A runner needs a few milliseconds for the last files of a task.
_LAST_FILES_S = 2.0


def gather(packet: Packet, manifest: dict[str, Any]) -> dict[str, Any]:
    """The summary, as `show --summary --json` prints it; `text` is empty before there is one.

    The state of a task is visible a moment before its last files are written; they are waited for.
    """
    ends_mono = clock.mono() + _LAST_FILES_S
    while manifest["status"] in ENDS and not os.path.exists(packet.task_done) and clock.mono() < ends_mono:
        clock.sleep(0.01)
    try:
        data = files.read(packet.summary)
    except OSError:
        data = b""
    return {
        "schema": SCHEMA,
        "task_id": packet.task_id,
        "status": manifest["status"],
        "text": data[:_MAX_BYTES].decode("utf-8", "ignore"),
        "left_out_bytes": max(0, len(data) - _MAX_BYTES),
        "path": packet.summary,
    }
