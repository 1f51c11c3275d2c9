"""End the agents of a removed packet: nothing about them can be recorded."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.model.events import AttemptStarted
from holdfast.model.process import ProcessIdentity
from holdfast.model.task import Task
from holdfast.runner.attempt.sweep import Sweep
from holdfast.store import process
from holdfast.store.layout import Packet


def end_agents(task: Task, packet: Packet) -> None:
    """End the agents of a removed packet and all their child processes. Their recorders then exit."""
    sweeps = [
        Sweep(
            packet.attempt(attempt.dirname).path,
            _recorder(attempt.started),
            attempt_id=attempt.attempt_id,
            tree_known=True,
        )
        for attempt in task.open_executions
    ]
    while sweeps:
        due = [(sweep, sweep.sweep()) for sweep in sweeps]
        sweeps = [sweep for sweep, due_mono in due if due_mono is not None]
        last_mono = max((due_mono for _, due_mono in due if due_mono is not None), default=0.0)
        clock.sleep(max(0.0, last_mono - clock.mono()))


def _recorder(started: AttemptStarted | None) -> int | None:
    """The pid of the recorder: the parent of a live agent, unless that is us. (Its lock file is gone.)"""
    identity = ProcessIdentity.from_json(started.to_json()) if started is not None else None
    if identity is None or not process.is_alive(identity):
        return None
    fields = process.stat_fields(identity.pid) if process.HAS_PROC else None
    parent = int(fields[1]) if fields else 1
    return parent if parent not in (1, os.getpid()) else None
