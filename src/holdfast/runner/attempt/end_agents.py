"""End agents about which nothing can be recorded: those of a removed packet, or of a forged journal."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.model.events import AttemptStarted, TakeoverStarted
from holdfast.model.execution import dirname
from holdfast.model.process import ProcessIdentity
from holdfast.model.task import Task
from holdfast.packet import load
from holdfast.runner.attempt.kinship import Kinship
from holdfast.runner.attempt.sweep import Sweep
from holdfast.store import lock as locks
from holdfast.store import lock_holders, process
from holdfast.store.layout import AttemptDir, Packet


def end_agents(task: Task, packet: Packet) -> None:
    """End the agents of a removed packet and all their child processes. Their recorders then exit."""
    sweeps = [
        Sweep(
            Kinship(packet.attempt(attempt.dirname), attempt_id=attempt.attempt_id),
            _recorder(packet.attempt(attempt.dirname), attempt.started),
            tree_known=True,
        )
        for attempt in task.open_executions
    ]
    _finish(sweeps)


def end_strays(task: Task, packet: Packet) -> None:
    """End agents that are alive and that the task does not know: the journal was forged, or has lost them."""
    known = {execution.dirname for execution in task.open_executions}
    strays = [packet.attempt(name) for name in load.attempt_names(packet) if name not in known]
    _finish(
        [
            Sweep(Kinship(directory, attempt_id=""), lock_holders.holder(directory.lock), tree_known=True)
            for directory in strays
            if locks.is_held(directory.lock)
        ]
    )


def end_orphans(packet: Packet) -> None:
    """End the agents of a removed packet whose runner and recorder are dead. Only their marker leads to
    them."""
    attempts = {
        (marker, process.variable(pid, "SESSION_ID") or "")
        for pid in process.all_pids()
        if (marker := process.variable(pid, "HOLDFAST_ATTEMPT") or "").startswith(f"{packet.attempts}/")
    }
    _finish(
        [
            Sweep(Kinship(AttemptDir(path), attempt_id=attempt_id), None, tree_known=False)
            for path, attempt_id in attempts
        ]
    )


def end_takeover(packet: Packet, taken: TakeoverStarted) -> dict[int, str]:
    """End what a lost takeover left running. Returns the command lines by pid."""
    directory = packet.attempt(dirname(taken.attempt, taken.stage, "takeover"))
    sweep = Sweep(Kinship(directory, attempt_id=taken.attempt_id), None, tree_known=False)
    _finish([sweep])
    return sweep.killed


def finish(sweep: Sweep) -> None:
    """Run a sweep to its end."""
    _finish([sweep])


def _finish(sweeps: list[Sweep]) -> None:
    while sweeps:
        due = [(sweep, sweep.sweep()) for sweep in sweeps]
        sweeps = [sweep for sweep, due_mono in due if due_mono is not None]
        last_mono = max((due_mono for _, due_mono in due if due_mono is not None), default=0.0)
        clock.sleep(max(0.0, last_mono - clock.mono()))


def _recorder(directory: AttemptDir, started: AttemptStarted | None) -> ProcessIdentity | None:
    """The recorder: the parent of a live agent, if it has the attempt's removed directory open."""
    identity = ProcessIdentity.from_json(started.to_json()) if started is not None else None
    if identity is None or not process.is_alive(identity):
        return None
    parent = process.parent(identity.pid)
    # An orphan's parent is init, a service manager or us: everything below it would be taken for the agent's.
    # (`rm` renames a packet before it removes it.)
    removed = f"/attempts/{os.path.basename(directory.path)} (deleted)"
    is_recorder = any(path.endswith(removed) for path in process.open_files(parent))
    return process.identify(parent) if is_recorder and parent != os.getpid() else None
