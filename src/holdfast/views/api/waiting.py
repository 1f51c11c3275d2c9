"""Wait until tasks have ended or need a person, for a program."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import Unanswered
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.api import values
from holdfast.views.settle import SettleCheck, settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.views.api.values import TaskInfo


def wait(
    ids: Sequence[str],
    *,
    timeout_s: float | None,
    first: bool = False,
    is_cancelled: Callable[[], bool] | None = None,
) -> list[TaskInfo]:
    """Wait for all, or for the `first`. Gives up when `is_cancelled`, which is asked twice a second.

    Raises Unanswered after the timeout, NotFound.
    """
    home = Home(paths.home())
    packets = [load.find(home, name, archived=True) for name in dict.fromkeys(ids)]
    found: dict[str, TaskInfo] = {}
    is_settled = SettleCheck(home, _ignore)
    for settled in settle(
        home, packets, is_settled, timeout_s=timeout_s, is_cancelled=is_cancelled, say=_ignore
    ):
        path = load.wherever(settled.packet).path
        found[settled.packet.task_id] = values.info_of(settled.manifest, path)
        if first:
            break
    left = len(packets) - len(found)
    if left and not (first and found):
        raise Unanswered(f"{left} of {len(packets)} tasks have not ended", hint="they go on; wait again")
    return [found[packet.task_id] for packet in packets if packet.task_id in found]


def _ignore(text: str) -> None:
    """What `wait` would print: the state of the task has it."""
