"""What a workspace was before the first sandboxed agent of the task wrote in it: `sandbox/start.json`.

Later attempts believe this record and not the workspace, in which an agent can plant a `.git`. No sandbox
shows the record.
"""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet

_SCHEMA = "holdfast.sandbox/1"


class Start(Record):
    """One workspace at the start."""

    nested = {"repository": git.Repository}

    repository: git.Repository | None = None


def start_of(packet: Packet, directory: str) -> Start:
    """The record of a workspace, made if this is its first attempt."""
    known = (atomic.read_json(packet.sandbox_start) or {}).get("workspaces", {})
    if directory in known:
        return Start.from_json(known[directory])
    start = _look(directory)
    data = {"schema": _SCHEMA, "workspaces": {**known, directory: start.to_json()}}
    atomic.write_json(packet.sandbox_start, data, durable=True)
    return start


def _look(directory: str) -> Start:
    try:
        repository = git.find(directory)
    except (OSError, HoldfastError):
        repository = None
    return Start(repository=repository)
