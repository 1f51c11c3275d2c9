"""The loop of the conductor: look at the tasks of the items, decide, do one step, wait.

Every step is safe to repeat: a conductor that was killed is started again and finds what it did.
"""

from __future__ import annotations

import os
import traceback

from holdfast import clock
from holdfast.errors import HoldfastError, NotPossible, UsageError, print_error
from holdfast.failpoints import failpoint
from holdfast.fanout import children, decide, merge, split
from holdfast.model import fan_out
from holdfast.model.fan_out import LEFT_OUT, MERGED, OPEN, FanOut, Merging, Row
from holdfast.model.spec import TaskSpec
from holdfast.model.status import ENDS, Status
from holdfast.packet import environment, inbox, load, sealed
from holdfast.packet import fan_out as records
from holdfast.redact import Redactor
from holdfast.store.layout import Packet
from holdfast.units import plural
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import FanOutSpec, PlanItem

#: Pauses while tasks work.
_SHORTEST_S, _LONGEST_S = 0.1, 2.0
#: Of the budgets, if an agent writes the plan.
_PLANNERS_PART = 0.25
_BUG = 70
_MESSAGE_CHARS = 8000


def main() -> int:
    """Conduct the fan-out of the task around this process.

    Exit status: 0 if every item is merged, 1 if some are left out, 2 and 3 if it cannot go on.
    """
    path, believed = os.environ.get("HOLDFAST_PACKET"), os.environ.get("HOLDFAST_JOURNAL")
    try:
        if not path or not believed:
            raise UsageError("this is the command of a fan-out: 'holdfast fan-out PLAN' starts it")
        packet = Packet(os.path.realpath(path))
        sealed.pin(packet, believed)
        return _Conductor(packet).conduct()
    except HoldfastError as error:
        print_error(error)
        return error.exit_status
    except Exception:  # a bug; the attempt's stderr has the traceback
        traceback.print_exc()
        return _BUG


class _Conductor:
    """One life of the conductor of a task."""

    def __init__(self, packet: Packet) -> None:
        task = load.fold(packet)
        if task.spec.fan_out is None:
            raise UsageError(f"{packet.task_id} is not a fan-out")
        self._packet = packet
        self._spec: TaskSpec = task.spec
        self._plan: FanOutSpec = task.spec.fan_out
        self._shared = TaskSpec.from_json({**self._plan.child, "task_id": packet.task_id})
        self._items: tuple[PlanItem, ...] = self._plan.items
        env = environment.read_captured(packet, task.env_sha256)
        self._redact = Redactor(env.get("env", {}), task.spec.env)
        self._record = fan_out.begun(
            records.read(packet), packet.task_id, task.run, asks=bool(self._plan.ask)
        )
        prepared = task.stage_state(task.spec.stages[0].name).workspace
        if not self._record.tip and prepared is not None and prepared.commit is not None:
            self._record = self._record.evolve(tip=prepared.commit)
        self._seen: dict[str, str] = {}

    def conduct(self) -> int:
        """Do everything that is to be done, and return the exit status."""
        self._write(self._record)
        failpoint("fanout.begun")
        if self._plan.ask:
            self._items = self._ask()
        self._write(fan_out.planned(self._record, self._packet.task_id, self._items))
        with git.SharedDirectories():
            self._finish_merge()
        pause_s = _SHORTEST_S
        while True:
            found = {row.id: child for row in self._record.rows if (child := self._observe(row)) is not None}
            step = decide.next_step(self._items, self._record, found)
            if isinstance(step, decide.Finish):
                return self._conclude()
            if isinstance(step, decide.Wait):
                clock.sleep(pause_s)
                pause_s = min(pause_s * 1.5, _LONGEST_S)
                continue
            pause_s = _SHORTEST_S
            self._do(step, found)

    def _observe(self, row: Row) -> decide.Child | None:
        if row.state != OPEN:
            return None
        child = children.read_child(self._packet, row)
        status = child.status if child is not None else ""
        if status and self._seen.get(row.id) != status:
            self._seen[row.id] = status
            _say(f"{row.id}: {status}")
            packet = children.packet_of(self._packet, row)
            if inbox.names(packet):
                children.wake(packet)  # of a conductor that was killed before it could
        return child

    def _do(self, step: decide.Step, found: dict[str, decide.Child]) -> None:
        match step:
            case decide.Create(item=name):
                try:
                    children.create_task(self._packet, self._record.row(name).task, self._item_task(name))
                    self._write(self._record.with_row(name, made=True, judged_run=0))
                except NotPossible as error:
                    self._leave_out(name, str(error), judged_run=self._record.row(name).judged_run)
            case decide.Merge(item=name):
                # Not longer: agents of items can write in these directories.
                with git.SharedDirectories():
                    self._merge(name, found[name])
            case decide.SendBack(item=name, reason=reason):
                row = self._note_send_back(name, found[name], reason)
                if refused := self._send_back(row):
                    self._leave_out(name, f"its agent cannot continue: {refused}", judged_run=row.judged_run)
            case decide.LeaveOut(item=name, reason=reason):
                self._leave_out(name, reason, judged_run=found[name].run if name in found else 0)
            case _:
                raise AssertionError(step)

    def _item(self, name: str) -> PlanItem:
        return next(item for item in self._items if item.id == name)

    def _item_task(self, name: str) -> children.ItemTask:
        item = self._item(name)
        part = (1 - _PLANNERS_PART if self._plan.ask else 1) / len(self._items)
        prompt = item.prompt
        if item.scope:
            prompt = f"{prompt.rstrip()}\n\nChange only: {', '.join(item.scope)}\n"
        return children.ItemTask(shared=self._shared, title=item.title, prompt=prompt, part=part)

    # ── the plan ──

    def _ask(self) -> tuple[PlanItem, ...]:
        """The items of the plan that an agent writes. Raises NotPossible if there is none."""
        pause_s = _SHORTEST_S
        while True:
            row = self._record.planning
            assert row is not None
            child = self._observe(row)
            if child is None:
                ask = children.ItemTask(
                    shared=children.reader_of(self._shared),
                    title=f"plan: {self._spec.goal}",
                    prompt=split.prompt(self._plan.ask),
                    part=_PLANNERS_PART,
                )
                children.create_task(self._packet, row.task, ask)
                self._write(self._record.evolve(planning=row.evolve(made=True, judged_run=0)))
            elif not child.is_settled or child.status not in ENDS:
                clock.sleep(pause_s)
                pause_s = min(pause_s * 1.5, _LONGEST_S)
                continue
            elif child.run <= row.judged_run and not child.is_gone:
                self._write(self._record.evolve(planning=row.evolve(made=True)))
                if refused := self._send_back(row):
                    raise NotPossible(f"there is no plan: {row.task} cannot continue: {refused}")
            elif (items := self._planned(row, child)) is not None:
                return items
            pause_s = _SHORTEST_S

    def _planned(self, row: Row, child: decide.Child) -> tuple[PlanItem, ...] | None:
        """The items of the plan; None if it goes back to its agent. Raises NotPossible if there is none."""
        if child.is_gone:
            raise NotPossible(f"there is no plan: {row.task} was removed")
        plan = split.answer(children.packet_of(self._packet, row))
        if child.status == Status.COMPLETED and not plan.problems:
            return plan.items
        is_last = child.status != Status.COMPLETED or row.returned >= self._plan.times
        is_last = is_last or children.is_spent(children.packet_of(self._packet, row))
        is_last = is_last and not row.is_reopened
        reason = self._redact("; ".join(plan.problems) if child.status == Status.COMPLETED else child.reason)
        told = row.evolve(
            reason=reason, judged_run=child.run, returned=row.returned + 1, message=split.message(plan)
        )
        self._write(self._record.evolve(planning=told))
        failpoint("fanout.plan_refused")
        if is_last:
            raise NotPossible(
                f"there is no plan: {row.task} {child.status}: {reason}",
                hint=f"'holdfast retry {self._packet.task_id}' asks again",
            )
        _say(f"{row.id}: sent back: {reason}")
        return None

    # ── merging ──

    def _merge(self, name: str, child: decide.Child) -> None:
        row, tip = self._record.row(name), self._tip()
        work = merge.MergeInput(
            parent=self._packet,
            spec=self._spec,
            item=self._item(name),
            child=children.packet_of(self._packet, row),
            redact=self._redact,
        )
        verdict = merge.judge(work, tip)
        failpoint("fanout.judged")
        if verdict.commit:
            merging = Merging(item=name, old=tip, new=verdict.commit, files=verdict.files)
            self._write(self._record.evolve(tip=tip, merging=merging))
            failpoint("fanout.merge_noted")
            self._finish_merge()
            return
        reason = self._redact(verdict.reason)
        is_spent = children.is_spent(work.child)
        if row.returned >= self._plan.times or is_spent:
            spent = "; its part of the budget is used up" if is_spent else ""
            self._leave_out(name, f"{reason}{spent}", judged_run=child.run)
            return
        message = self._message(reason, verdict.evidence)
        self._write(
            self._record.with_row(
                name, reason=reason, returned=row.returned + 1, judged_run=child.run, message=message
            )
        )
        failpoint("fanout.return_noted")
        _say(f"{name}: sent back ({row.returned + 1} of {self._plan.times}): {reason}")

    def _message(self, reason: str, evidence: str) -> str:
        # The commit, because a sandbox does not show the branches of other tasks.
        text = (
            f"Your work could not be merged: {reason}\n\n{self._redact(evidence)}\n\n"
            f"The work of others is on the branch {merge.branch_of(self._packet)}. Merge it into yours "
            f"(git merge {self._record.tip}), resolve conflicts, and make your work fit. "
            "Change nothing else.\n"
        )
        return text[:_MESSAGE_CHARS]

    def _tip(self) -> str:
        """The tip of the branch. Raises NotPossible if anything but the conductor moved it."""
        tip = merge.tip_of(self._packet)
        if tip != self._record.tip:
            raise NotPossible(
                f"the branch of {self._packet.task_id} was moved from outside, to {tip[:12]}",
                hint=f"it was at {self._record.tip[:12]}; move it back, then 'holdfast retry' the task",
            )
        return tip

    def _finish_merge(self) -> None:
        """Carry out the merge that is noted, if there is one."""
        merging = self._record.merging
        if merging is None:
            return
        if merge.tip_of(self._packet) not in (merging.old, merging.new):
            self._tip()  # it says what is wrong
        merge.move(self._packet, merging.old, merging.new)
        row = self._record.row(merging.item)
        done = self._record.evolve(tip=merging.new, merging=None)
        self._write(
            done.with_row(
                row.id, state=MERGED, commit=merging.new, files=merging.files, reason="", message=""
            )
        )
        failpoint("fanout.merged")
        _say(f"{row.id}: merged, {plural(merging.files, 'file')} changed")

    # ── what does not fit ──

    def _note_send_back(self, name: str, child: decide.Child, reason: str) -> Row:
        """Write, before its agent continues, that this run was looked at, and why it goes back."""
        changes: dict[str, object] = {"made": True}
        if reason:
            text = self._redact(reason)
            changes |= {"reason": text, "message": self._message(text, ""), "judged_run": child.run}
        self._write(self._record.with_row(name, **changes))
        return self._record.row(name)

    def _send_back(self, row: Row) -> str:
        """Let the agent of an item continue. Why its task refused that; empty if it did not."""
        packet = children.packet_of(self._packet, row)
        request_id = children.send_back(self._packet, row)
        # Until the runner has taken it, the request is pending, so that it is not sent twice.
        _say(f"{row.id}: its agent continues")
        until_mono = clock.mono() + _LONGEST_S
        while inbox.names(packet) and clock.mono() < until_mono:
            clock.sleep(_SHORTEST_S)
        children.relist(packet)
        return children.refusal(packet, request_id)

    def _leave_out(self, name: str, reason: str, *, judged_run: int = 0) -> None:
        text = self._redact(reason)
        self._write(
            self._record.with_row(
                name, state=LEFT_OUT, reason=text, judged_run=judged_run, message=self._message(text, "")
            )
        )
        failpoint("fanout.left_out")
        _say(f"{name}: left out: {text}")

    def _conclude(self) -> int:
        merged = [row.id for row in self._record.rows if row.state == MERGED]
        left = [row.id for row in self._record.rows if row.state == LEFT_OUT]
        _say(f"{len(merged)} of {len(self._record.rows)} merged into {merge.branch_of(self._packet)}")
        if left:
            them = "it" if len(left) == 1 else "them"
            _say(f"left out: {', '.join(left)}; 'holdfast retry {self._packet.task_id}' tries {them} again")
        return 1 if left else 0

    def _write(self, new: FanOut) -> None:
        records.write(self._packet, new)
        self._record = new


def _say(text: str) -> None:
    print(text, flush=True)
