"""The runner: take the lock, then serve and step until there is nothing more to do."""

from __future__ import annotations

import errno
import os
import stat
import sys

from holdfast import __version__, clock, idle_recorder, recorder
from holdfast.errors import DiskFull, HoldfastError, NotFound
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.fold import CRASH_LIMIT
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.packet import inbox, load
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.loop.keeper_watch import Neighbour, hand_over
from holdfast.runner.loop.packet_gone import CONFIRM_S, Vanished, end_agents, moved_to
from holdfast.runner.loop.waiter import Waiter
from holdfast.runner.people import requests
from holdfast.runner.stage import finish
from holdfast.runner.steps import Steps
from holdfast.spawn import start_runner
from holdfast.store import atomic, process
from holdfast.store import lock as locks
from holdfast.store.journal import Journal
from holdfast.store.layout import PACKET_DIRECTORIES, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DISK_PAUSE_S = 1.0
#: Parked already.
_PARKED = frozenset({Status.INTERRUPTED, Status.QUEUED})


def run(path: str) -> None:
    """Drive the task at `path` until it ends, parks, or we are told to leave. Raises LockHeld when another runner does."""
    packet = Packet(os.path.abspath(path))
    if not os.path.isdir(packet.path):
        raise NotFound(f"there is no task at {packet.path}")
    _prepare_recorder(packet)
    while True:
        lock = locks.acquire(packet.runner_lock, role="runner")
        detached = _hold_in_place(packet, lock)
        failpoint("runner.before_release")
        moved = moved_to(packet, lock)
        lock.release()
        failpoint("runner.released")
        if moved is not None and not detached:
            # By another process: this one has descriptors and paths of the old place.
            start_runner(Packet(moved), may_fork=False)
            return
        # A request that was dropped after our last look found nobody to wake: it is ours.
        if detached or not inbox.names(packet):
            hand_over(packet.home)
            return


def _prepare_recorder(packet: Packet) -> None:
    """For a new task, before we touch anything, and before the lock, of which nobody else may have a copy."""
    try:
        if os.listdir(packet.attempts):
            idle_recorder.dismiss()
        else:
            idle_recorder.prepare()
    except OSError:
        return  # no process to be had, or no such directory: the attempt will say so


def _hold_in_place(packet: Packet, lock: locks.Lock) -> bool:
    """`_hold`, of a packet that may be given another name before there is anything to step through."""
    try:
        return _hold(packet, lock)
    except (OSError, HoldfastError):
        if moved_to(packet, lock) is None:
            raise
        return False


def _hold(packet: Packet, lock: locks.Lock) -> bool:
    """With the lock held. Returns whether a signal told us to leave."""
    if os.path.exists(packet.task_done) and not inbox.names(packet):
        return False
    recorder.become_subreaper()
    recorder.set_name("holdfast-run")
    # Read before it is repaired: a journal that cannot be read is left as it is.
    task = load.fold(packet)
    _mend(packet)
    journal = Journal(packet.journal)
    repaired = journal.repair()
    env = _environment(packet)
    ledger = Ledger(packet, task, journal, _redactor(task, env))
    waiter = Waiter(packet)
    steps = Steps(ledger, waiter, env)
    try:
        while waiter.detached_by is None:
            try:
                _begin(ledger, repaired)
                break
            except DiskFull:
                waiter.wait(_DISK_PAUSE_S)
        vanished = Vanished(packet, lock)
        neighbour = Neighbour(packet.home, waiter, task.spec.limits.base_interval_s)
        try:
            reason = _loop(ledger, waiter, steps, vanished=vanished, neighbour=neighbour)
        finally:
            neighbour.close()
        if vanished.is_suspected():
            print(f"{packet.path} was removed: its agents were ended", file=sys.stderr)
        elif ledger.task.runner is not None:  # at a task's end, it was told before the marker
            _say_goodbye(ledger, reason)
        failpoint("runner.left")
        return waiter.detached_by is not None
    finally:
        steps.leave()
        waiter.close()
        ledger.close()
        if task.has_ended:
            # A pipe among plain files hangs whoever reads them all; who wakes the task again makes it anew.
            atomic.forget(packet.bell)


def _begin(ledger: Ledger, repaired: ev.JournalRepaired | None) -> None:
    """Say that we are here, and finish what our predecessor left half done."""
    hello = _hello()
    if ledger.task.runner != hello:  # once, though the disk was full behind it
        # What an earlier runner saw is in the manifest: it is taken over before anything is seen anew.
        ledger.record(*([repaired] if repaired else []), hello, shown=ledger.task.attempts > 0)
    failpoint("runner.started")
    if not ledger.task.has_ended and os.path.exists(ledger.packet.task_done):
        finish.reopen(ledger)
    finish.adopt_markers(ledger)
    _park_crash_loop(ledger)


def _mend(packet: Packet) -> None:
    """Directories and the bell, where somebody removed them; and what killed writers left."""
    for name in PACKET_DIRECTORIES:
        atomic.make_directory(os.path.join(packet.path, name))
    try:
        is_there = stat.S_ISFIFO(os.lstat(packet.bell).st_mode)
        if not is_there:
            atomic.put_aside(packet.bell)
    except FileNotFoundError:
        is_there = False
    if not is_there:
        try:
            os.mkfifo(packet.bell, 0o600)
        except FileExistsError:
            pass  # whoever woke us makes it too
    atomic.forget_temporaries(packet.path, packet.state, packet.outputs, packet.done)
    atomic.forget_temporaries(packet.inbox, only_of_the_dead=True)


def _loop(ledger: Ledger, waiter: Waiter, steps: Steps, *, vanished: Vanished, neighbour: Neighbour) -> str:
    """Returns why it ended."""
    ready: set[str] = set()
    interval_s = ledger.task.spec.limits.base_interval_s
    served_mono = float("-inf")
    while waiter.detached_by is None:
        if vanished.is_suspected():
            if vanished.is_certain():
                end_agents(ledger.task, ledger.packet)
                break
            clock.sleep(CONFIRM_S)
            continue
        if moved_to(ledger.packet, vanished.lock) is not None:
            return "its packet was moved"
        try:
            # Who drops a request rings; a look now and then is for those who were killed before they could.
            if "bell" in ready or clock.mono() - served_mono >= interval_s or not ready:
                served_mono = clock.mono()
                if requests.serve(ledger):
                    # A retry brings an environment, and with it other secrets.
                    env = _environment(ledger.packet)
                    steps.use(env)
                    ledger.redact = _redactor(ledger.task, env)
            wait_s = steps.step(ready)
        except (OSError, HoldfastError) as error:
            was_moved = moved_to(ledger.packet, vanished.lock) is not None
            if not _is_full(error) and not was_moved and not vanished.is_suspected():
                raise
            # Wait for room, and take the step again from the files alone. The agent works on meanwhile.
            steps.close()
            wait_s = _DISK_PAUSE_S
        if wait_s is None or wait_s > 0:
            ledger.catch_up()
        if wait_s is None:
            return str(ledger.task.status)
        # Asked also when there is no time to sleep: a death or a request must not wait for the end of a flood.
        ready = waiter.wait(min(wait_s, neighbour.look(ready)) if wait_s > 0 else 0.0)
    return waiter.detached_by or "its packet was removed"


def _is_full(error: Exception) -> bool:
    return isinstance(error, DiskFull) or getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT)


def _hello() -> ev.RunnerStarted:
    me = process.identify(os.getpid())
    assert me is not None
    return ev.RunnerStarted(pid=me.pid, boot_id=me.boot_id, start_time=me.start_time, version=__version__)


def _say_goodbye(ledger: Ledger, reason: str) -> None:
    try:
        ledger.record(ev.RunnerLeft(pid=os.getpid(), reason=reason))
    except DiskFull:
        return  # then it looks like a crash, and one crash is forgiven


def _redactor(task: Task, env: dict[str, Any]) -> Redactor:
    pipeline = task.spec.pipeline
    return Redactor(env.get("env", {}), task.spec.env, pipeline.redaction_patterns if pipeline else ())


def _environment(packet: Packet) -> dict[str, Any]:
    """env.json; gone after the task's end, and then nothing is started any more."""
    return atomic.read_json(packet.env) or {}


def _park_crash_loop(ledger: Ledger) -> None:
    """Runners die on this task again and again: leave it to a person."""
    task = ledger.task
    if task.runner_crashes < CRASH_LIMIT or task.has_ended or task.status in _PARKED:
        return
    if task.status is Status.COMPLETING and task.spec.pipeline is None and task.spec.quality is None:
        return  # past its work: only files are left to write
    reason = f"{task.runner_crashes} runners in a row died on this task without progress"
    if task.present:
        # Through the stop and the sweep, so that a resume finds nothing of the old attempts alive.
        for attempt in task.present:
            if attempt.intent_name != "stop":
                ledger.record(ev.StopIntended(attempt=attempt.number, intent="interrupt", reason=reason))
    else:
        ledger.move(Status.INTERRUPTED, reason, interrupt=reason)


def main(argv: list[str]) -> int:
    """`python -m holdfast.runner PACKET`: exits 75 when another runner holds the task."""
    if len(argv) != 1:
        print("usage: python -m holdfast.runner PACKET", file=sys.stderr)
        return 2
    try:
        run(argv[0])
    except HoldfastError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return error.exit_status
    return 0
