"""What the conductor does next. Pure."""

from __future__ import annotations

from holdfast.model.fan_out import LEFT_OUT, MERGED, OPEN
from holdfast.model.record import Record
from holdfast.model.status import ENDS, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.model.fan_out import FanOut
    from holdfast.model.spec import PlanItem

_REASON_CHARS = 500


class Child(Record):
    """The task of an item, as far as it matters here."""

    status: str
    #: Nothing more happens to it without a request, and none is pending.
    is_settled: bool = False
    run: int = 1
    reason: str = ""
    #: It was removed.
    is_gone: bool = False


class Create(Record):
    """Make a task of an item."""

    item: str


class Merge(Record):
    """Judge the work of an item together with what is merged, and merge it."""

    item: str


class SendBack(Record):
    """Let the agent of an item continue, with the reason."""

    item: str
    #: Why, if that is not in its row yet.
    reason: str = ""


class LeaveOut(Record):
    """Give an item up."""

    item: str
    reason: str


class Wait(Record):
    """Tasks of items are at work."""


class Finish(Record):
    """Every item is merged or left out."""


Step = Create | Merge | SendBack | LeaveOut | Wait | Finish


def next_step(items: tuple[PlanItem, ...], record: FanOut, children: Mapping[str, Child]) -> Step:
    """The next step. Items are merged as they complete; of several, in the order of the plan."""
    state = {row.id: row.state for row in record.rows}
    merging = None
    for item in items:
        if state[item.id] != OPEN:
            continue
        child = children.get(item.id)
        if child is None:
            step = _without_task(item, state)
        else:
            step = _with_task(item, record, child)
        if isinstance(step, Merge):
            merging = merging or step  # tasks that can start come first: a merge takes long
        elif step is not None:
            return step
    if merging is not None:
        return merging
    return Wait() if OPEN in state.values() else Finish()


def _without_task(item: PlanItem, state: Mapping[str, str]) -> Step | None:
    """An item without a task: it starts once everything that it depends on is merged."""
    lost = next((name for name in item.depends_on if state[name] == LEFT_OUT), None)
    if lost is not None:
        return LeaveOut(item=item.id, reason=f"it depends on {lost}, which was left out")
    return Create(item=item.id) if all(state[name] == MERGED for name in item.depends_on) else None


def _with_task(item: PlanItem, record: FanOut, child: Child) -> Step | None:
    if not child.is_settled or child.status not in ENDS:
        return None
    if child.is_gone:
        return LeaveOut(item=item.id, reason="its task was removed")
    row = record.row(item.id)
    if child.run <= row.judged_run:
        return SendBack(item=item.id)
    if child.status == Status.COMPLETED:
        return Merge(item=item.id)
    reason = f"its task {child.status}: {child.reason}"[:_REASON_CHARS]
    # This run may have been a person's, before the retry of the fan-out.
    return (SendBack if row.is_reopened else LeaveOut)(item=item.id, reason=reason)
