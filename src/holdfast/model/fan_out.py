"""What the conductor of a fan-out decided about each item: the content of `state/fan-out.json`. Pure."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import PlanItem

#: States of an item: its task is not merged yet, it is on the branch, or it was given up.
OPEN, MERGED, LEFT_OUT = "open", "merged", "left_out"
#: The label of a fan-out and of its tasks; its value is the id of the parent.
LABEL = "fan-out"
#: The id of the task that writes the plan, if an agent does. No item has it.
PLANNER = "plan"


class Row(Record):
    """One item."""

    id: str
    #: Its task; it may not exist yet.
    task: str
    state: str = OPEN
    #: Its task was created: if it does not exist, it was removed.
    made: bool = False
    #: Why it was left out, or last sent back.
    reason: str = ""
    #: The commit that merged it, and how many files that changed.
    commit: str = ""
    files: int = 0
    #: How often it was sent back, and what its agent is told the next time.
    returned: int = 0
    message: str = ""
    #: The last run of its task whose work was refused.
    judged_run: int = 0

    @property
    def is_reopened(self) -> bool:
        """A `retry` of the parent has opened it again, and its task was not tried since."""
        return not self.made and self.judged_run > 0


class Merging(Record):
    """A merge that was accepted: the branch moves from `old` to `new`."""

    item: str
    old: str
    new: str
    files: int


class FanOut(Record):
    """The whole record."""

    nested = {"rows": Row, "merging": Merging, "planning": Row}

    schema: str = "holdfast.fan-out/1"
    #: The run of the parent that wrote it.
    run: int = 1
    #: The tip of the parent's branch, as the conductor left it.
    tip: str = ""
    merging: Merging | None = None
    #: The task that writes the plan; null if it was given.
    planning: Row | None = None
    rows: tuple[Row, ...] = ()

    def row(self, item: str) -> Row:
        """The row of an item."""
        return next(row for row in self.rows if row.id == item)

    def with_row(self, item: str, **changes: object) -> FanOut:
        """The record with one row changed."""
        rows = tuple(row.evolve(**changes) if row.id == item else row for row in self.rows)
        return self.evolve(rows=rows)


def child_id(parent: str, item: str) -> str:
    """The task of an item. It is derived, so that a killed conductor finds the tasks that it created."""
    return f"{parent}.{item}"


def begun(old: FanOut | None, parent: str, run: int, *, asks: bool) -> FanOut:
    """The record at the start of a conductor. A `retry` of the parent gives up nothing any more."""
    old = old or FanOut(run=run)
    planning, rows = old.planning, old.rows
    if asks:
        # The id is derived, whatever the file says.
        planning = (planning or Row(id="", task="")).evolve(id=PLANNER, task=child_id(parent, PLANNER))
    if run > old.run:
        rows = tuple(
            row.evolve(state=OPEN, returned=0, made=False) if row.state == LEFT_OUT else row for row in rows
        )
        planning = planning.evolve(returned=0, made=False) if planning is not None else None
    return old.evolve(run=run, planning=planning, rows=rows)


def planned(record: FanOut, parent: str, items: tuple[PlanItem, ...]) -> FanOut:
    """The record with a row for each item of the plan."""
    known = {row.id: row for row in record.rows}
    rows = (known.get(item.id) or Row(id=item.id, task="") for item in items)
    return record.evolve(rows=tuple(row.evolve(task=child_id(parent, row.id)) for row in rows))
