"""The last files of a task: event → manifest.json → summary → notices → `_task.done`.

Every function here may run again after a kill and then does what is missing.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.runner.ledger import Ledger
from holdfast.runner.user_files import notices, reports, work_item
from holdfast.store import atomic
from holdfast.workspace import room_places

_TAIL_LINES = 100


def write(ledger: Ledger) -> None:
    """The task has ended: write what its readers wait for, `_task.done` last."""
    task, packet = ledger.task, ledger.packet
    if task.runner is not None:
        # Before the marker, after which nothing changes: no runner starts again to complete a manifest.
        ledger.record(ev.RunnerLeft(pid=os.getpid(), reason=str(task.status)))
        failpoint("last_files.left")
    if room_places.rooms_of(packet):
        from holdfast.workspace import clean_room

        clean_room.sweep(packet)  # of a gate that was killed
    if task.spec.fan_out is not None:
        from holdfast.runner.user_files import children

        children.stop(ledger)
    work_item.close(ledger)
    ledger.observed.output_tail = ledger.tail(_TAIL_LINES)
    ledger.show()
    ledger.catch_up()
    failpoint("last_files.manifest")
    reports.write(ledger)
    notices.post(ledger, str(task.status))
    # The captured environment may hold keys, and nothing needs it any more.
    atomic.remove(packet.env)
    failpoint("last_files.before_task_done")
    record = {"schema": "holdfast.done/1", "status": task.status, "run": task.run, "at": clock.iso_now()}
    atomic.write_json(packet.task_done, record, durable=True)
