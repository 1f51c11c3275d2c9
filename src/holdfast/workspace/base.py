"""What a task began with: `state/workspace/base.json`, written when its first stage is prepared and never changed."""

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
    """Where it is kept."""
    return packet.workspace_base


def read(packet: Packet) -> Base | None:
    """What the task began with; None before its first stage."""
    data = atomic.read_json(path_of(packet))
    return None if data is None else Base.from_json(data)


def require(packet: Packet) -> Base:
    """As `read`. Raises NotPossible before the first stage."""
    found = read(packet)
    if found is None:
        raise NotPossible(
            f"{packet.task_id} has no recorded workspace",
            hint="only tasks with a scope or a worktree have one, once their first stage has begun",
        )
    return found
