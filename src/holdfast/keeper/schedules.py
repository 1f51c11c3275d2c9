"""Adds the runs of schedules to the queue when they are due."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import DuplicateTask, HoldfastError
from holdfast.failpoints import failpoint
from holdfast.keeper.faults import Faults
from holdfast.keeper.log import log
from holdfast.model.spec import TaskSpec
from holdfast.model.status import ENDS, Status
from holdfast.packet import create
from holdfast.queue import schedule, sync
from holdfast.store import audit
from holdfast.store.layout import Home

#: How often the schedules are read if none is due.
_LOOK_S = 15.0


class Schedules:
    """The schedules of a home."""

    def __init__(self, home: Home, faults: Faults) -> None:
        self.home = home
        self._faults = faults
        #: Whether there are any: a keeper with schedules does not leave.
        self.has_any = False
        #: Whether the last step added a task.
        self.has_added = False

    def step(self) -> float:
        """Add what is due. Returns the seconds until the next step."""
        self.has_added = False
        if not os.path.isdir(self.home.schedules):
            self.has_any = False
            return _LOOK_S
        known, now, wait_s = schedule.read_all(self.home), clock.now(), _LOOK_S
        self.has_any = bool(known)
        for each in known:
            left_s = self._faults.guard(
                f"the schedule {each.name}", lambda each=each: self._step(each, now), _LOOK_S
            )
            wait_s = min(wait_s, left_s)
        return max(0.01, wait_s)

    def _step(self, each: schedule.Schedule, now: float) -> float:
        """Add a run if it is due. Returns the seconds until the next one."""
        due = schedule.missed_at(each, now)
        if due is None:
            return schedule.next_at(each) - now
        if not schedule.is_admitted(self.home, each):
            log(f"the schedule {each.name} was not made by a command in this home, so it does not run")
        elif not self._is_at_work(each):
            self._run(each, due)
        return _LOOK_S

    def _is_at_work(self, each: schedule.Schedule) -> bool:
        """Whether the run before has not ended: then the next one waits for it."""
        if each.last_at is None:
            return False
        before = schedule.run_id(each, clock.parse_iso(each.last_at))
        status = sync.status_of(self.home, before)
        return status is not None and status not in ENDS

    def _run(self, each: schedule.Schedule, due: float) -> None:
        task_id = schedule.run_id(each, due)
        try:
            if not sync.is_known(self.home, task_id):
                self._create(each, task_id)
            failpoint("schedule.created")
            schedule.write(self.home, each.evolve(last_at=clock.iso(due)))
        except (OSError, HoldfastError, TypeError, ValueError, KeyError) as error:
            log(f"the schedule {each.name} cannot run: {error}")

    def _create(self, each: schedule.Schedule, task_id: str) -> None:
        spec = TaskSpec.from_json(each.spec).evolve(task_id=task_id)
        prompt = None if each.prompt is None else os.fsencode(each.prompt)
        try:
            create.create(self.home, spec, prompt=prompt, env=each.env, status=Status.QUEUED, by="keeper")
        except DuplicateTask:
            return
        self.has_added = True
        log(f"schedule {each.name}: {task_id} is queued")
        audit.append(
            self.home,
            {"operation": "schedule.queued", "by": "keeper", "task_id": task_id, "reason": each.every},
        )
