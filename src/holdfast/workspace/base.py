"""The workspace at the start of a task:

`state/workspace/base.json`, written with the first stage, then fixed.
"""

from __future__ import annotations

from holdfast.errors import NotPossible
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.workspace.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet


class Base(Record):
    """The workspace of a task at its start."""

    nested = {"place": Place}

    schema: str = "holdfast.workspace/1"
    #: `in_place` or `worktree`.
    kind: str
    place: Place
    base_tree: str
    #: The commit that was checked out, and the branch of a worktree; null outside git.
    commit: str | None = None
    branch: str | None = None


def path_of(packet: Packet) -> str:
    """The path of base.json."""
    return packet.workspace_base


def read(packet: Packet) -> Base | None:
    """The base of a task; None before its first stage."""
    data = atomic.read_json(path_of(packet))
    return None if data is None else Base.from_json(data)


def require(packet: Packet) -> Base:
    """As `read`, but raises NotPossible before the first stage."""
    base = read(packet)
    if base is None:
        raise NotPossible(
            f"{packet.task_id} has no recorded workspace",
            hint="only tasks with a scope or a worktree have one, once their first stage has started",
        )
    return base
