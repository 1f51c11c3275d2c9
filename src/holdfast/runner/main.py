"""The runner: hold the task's lock; gather facts, plan, perform and sleep until nothing is left to do."""

from __future__ import annotations

import errno
import os
import sys

from holdfast import __version__, clock, files, idle_recorder, recorder
from holdfast.errors import (
    DiskFull,
    ForgedJournal,
    HoldfastError,
    LockHeld,
    NotFound,
    StorageError,
    print_error,
)
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.packet import inbox, sealed
from holdfast.redact import Redactor
from holdfast.runner.attempt.end_agents import end_agents, end_orphans, end_strays
from holdfast.runner.gather import Gatherer
from holdfast.runner.ledger import Ledger
from holdfast.runner.perform.context import Context
from holdfast.runner.perform.performer import perform
from holdfast.runner.plan.facts import Now
from holdfast.runner.plan.planner import plan
from holdfast.runner.plan.step import Leave, Watch
from holdfast.runner.stage import markers
from holdfast.runner.wake.interrupt_file_watch import InterruptFileWatch
from holdfast.runner.wake.packet_gone import CONFIRM_S, PacketWatch, moved_to
from holdfast.runner.wake.restart_keeper import KeeperRestarter, hand_over
from holdfast.runner.wake.waiter import Waiter
from holdfast.spawn import execute_runner
from holdfast.store import atomic, process
from holdfast.store import lock as locks
from holdfast.store.directories import restore_modes
from holdfast.store.layout import PACKET_DIRECTORIES, Packet

_DISK_PAUSE_S = 1.0


def run(path: str) -> None:
    """Drive the task at `path` until it ends or parks, or a signal detaches us.

    Raises LockHeld if another runner has the task.
    """
    packet = Packet(os.path.abspath(path))
    process.require_proc()
    if not os.path.isdir(packet.path):
        raise NotFound(f"there is no task at {packet.path}")
    _prepare_recorder(packet)
    forgery = ""
    while True:
        try:
            lock = locks.acquire(packet.runner_lock, role="runner")
        except StorageError:
            if not restore_modes(packet.path):  # its agent may have hidden the packet
                raise
            continue
        failpoint("runner.locked")
        try:
            detached = _drive_unless_moved(packet, lock, forgery)
            forgery = ""
        except ForgedJournal as error:
            # Start over from the part that a seal confirms. Only once: if the journal is forged again, the
            # next runner does the same.
            if forgery:
                raise
            forgery = str(error)
            lock.release()
            continue
        except (OSError, HoldfastError):
            lock.release()
            if not restore_modes(packet.path):  # its agent may have made the packet read-only
                raise
            continue
        failpoint("runner.before_release")
        moved = moved_to(packet, lock)
        lock.release()
        failpoint("runner.released")
        if moved is not None and not detached:
            # In a new process: this one has descriptors and paths of the old location.
            execute_runner(Packet(moved))
            return
        # A request that came after our last check woke no runner: handle it here.
        if detached or not inbox.names(packet):
            hand_over(packet.home)
            return


def _prepare_recorder(packet: Packet) -> None:
    """Fork an idle recorder for a new task. Before the lock is taken, so that it inherits no copy of it."""
    try:
        if os.listdir(packet.attempts):
            idle_recorder.dismiss()
        else:
            idle_recorder.prepare()
    except OSError:
        return  # fork failed, or no such directory: the attempt reports it


def _drive_unless_moved(packet: Packet, lock: locks.Lock, forgery: str) -> bool:
    """`_drive`, but errors caused by a move of the packet are ignored."""
    try:
        return _drive(packet, lock, forgery)
    except (OSError, HoldfastError):
        if moved_to(packet, lock) is None:
            raise
        return False


def _drive(packet: Packet, lock: locks.Lock, forgery: str) -> bool:
    """Drive the task while we hold its lock. Returns whether a signal detached us.

    `forgery`: what was wrong with the journal when this runner started over; empty at first.
    """
    if os.path.exists(packet.task_done) and not inbox.names(packet) and sealed.has_ended(packet):
        return False
    recorder.become_subreaper()
    recorder.set_name("holdfast-run")
    # Read before the repair: an unreadable journal is not touched.
    task, journal, repaired = sealed.open_for_runner(packet, forgery)
    _repair_files(packet)
    ledger = Ledger(packet, task, journal, Redactor({}, task.spec.env, ()))
    waiter = Waiter(packet)
    context = Context(ledger, waiter)
    try:
        while waiter.detached_by is None:
            try:
                _begin(ledger, repaired)
                break
            except DiskFull:
                waiter.wait(_DISK_PAUSE_S)
        watch = PacketWatch(packet, lock, ledger.journal_fd)
        keeper = KeeperRestarter(packet, waiter, task.spec.limits.base_interval_s)
        interrupts = InterruptFileWatch(packet, is_sandboxed=task.spec.sandbox is not None)
        try:
            reason = _loop(context, watch, keeper, interrupts)
        finally:
            keeper.close()
            interrupts.close()
        _leave(ledger, watch, reason)
        failpoint("runner.left")
        return waiter.detached_by is not None
    finally:
        context.close()
        waiter.close()
        ledger.close()
        if task.has_ended:
            # A FIFO blocks programs that read all files (grep -r); the next request creates it again.
            atomic.forget(packet.bell)


def _loop(
    context: Context, watch: PacketWatch, keeper: KeeperRestarter, interrupts: InterruptFileWatch
) -> str | None:
    """Gather facts, plan, perform, sleep, until a signal comes or nothing is left to do.

    Returns why it ended; None: the packet was removed, and its agents were ended.
    """
    ledger, waiter = context.ledger, context.waiter
    gatherer = Gatherer(context)
    ready: set[str] = set()
    wait_s = 1.0
    while waiter.detached_by is None:
        if wait_s > 0 and watch.is_lost:  # not asked between two steps of one wake-up
            if watch.is_suspected():
                if watch.is_certain():
                    end_agents(ledger.task, ledger.packet)
                    return None
                clock.sleep(CONFIRM_S)
                continue
            if moved_to(ledger.packet, watch.lock) is not None:
                return "its packet was moved"
            return "its lock was removed"
        try:
            facts = gatherer.gather(ready)
            step = plan(ledger.task, facts, Now(wall=clock.now(), mono=clock.mono()))
            perform(context, step)
        except (OSError, HoldfastError) as error:
            was_moved = moved_to(ledger.packet, watch.lock) is not None
            is_refused = not was_moved and restore_modes(ledger.packet.path)
            if not _is_full(error) and not was_moved and not is_refused and not watch.is_suspected():
                raise
            # The disk is full, the packet was moved, or its agent had made it unwritable: pause, then plan
            # again from the files alone. The agent keeps running.
            context.forget()
            step = Watch(wait_s=_DISK_PAUSE_S)
        if isinstance(step, Leave):
            ledger.catch_up()
            return step.reason
        wait_s = step.wait_s if isinstance(step, Watch) else 0.0
        if wait_s > 0:
            ledger.catch_up()
            read_in_s = interrupts.arm()
            wait_s = wait_s if read_in_s is None else min(wait_s, read_in_s)
            gatherer.has_new_interrupt_file = read_in_s == 0
        # Poll even if there is no time to sleep: deaths and requests must not wait for the end of a flood.
        ready = waiter.wait(min(wait_s, keeper.check(ready)) if wait_s > 0 else 0.0)
        interrupts.disarm()
    return waiter.detached_by


def _begin(ledger: Ledger, repaired: tuple[ev.Event, ...]) -> None:
    """Record our start and complete what the previous runner left unfinished."""
    started = _started()
    if ledger.task.runner != started:  # only once, even if the disk was full afterwards
        # The manifest has observations of the previous runner: keep them until there are new ones.
        ledger.record(*repaired, started, shown=ledger.task.last_number > 0)
    elif repaired:
        ledger.record(*repaired)  # we had it before
    if any(isinstance(event, ev.JournalForged) for event in repaired):
        sealed.settle(ledger.packet)
        end_strays(ledger.task, ledger.packet)
    failpoint("runner.started")
    if not ledger.task.has_ended and os.path.exists(ledger.packet.task_done):
        markers.reopen(ledger)
    markers.adopt_markers(ledger)


def _leave(ledger: Ledger, watch: PacketWatch, reason: str | None) -> None:
    """Record that this runner leaves, unless its packet is gone or another runner may have the task."""
    packet = ledger.packet
    if reason is None:
        files.log(f"{packet.path} was removed; its agents were stopped")
        return
    if watch.is_suspected():
        return  # nothing can be recorded
    if watch.is_lost and moved_to(packet, watch.lock) is None:
        files.log(f"{packet.path}: {reason}; another runner may have the task")
        return
    if ledger.task.runner is not None:  # when a task ends, it is recorded before the marker
        try:
            ledger.record(ev.RunnerLeft(pid=os.getpid(), reason=reason))
        except DiskFull:
            pass  # counts as a crash; one crash is tolerated
    ledger.finish()


def _repair_files(packet: Packet) -> None:
    """Recreate missing directories and the bell; delete temporary files of killed writers."""
    for name in PACKET_DIRECTORIES:
        atomic.make_directory(os.path.join(packet.path, name))
    inbox.make_bell(packet.bell)
    atomic.forget_temporaries(packet.path, packet.state, packet.outputs, packet.done)
    atomic.forget_temporaries(packet.inbox, only_of_the_dead=True)


def _is_full(error: Exception) -> bool:
    return isinstance(error, DiskFull) or getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT)


def _started() -> ev.RunnerStarted:
    me = process.identify(os.getpid())
    assert me is not None
    return ev.RunnerStarted(pid=me.pid, boot_id=me.boot_id, start_time=me.start_time, version=__version__)


def main(argv: list[str]) -> int:
    """`python -m holdfast.runner PACKET [--park REASON]`: exits with 75 if another runner has the task.

    With `--removed`, it ends the agents of a packet that was removed.
    """
    if argv[1:] == ["--removed"]:
        process.require_proc()
        end_orphans(Packet(argv[0]))
        return 0
    if len(argv) not in (1, 3) or argv[1:2] not in ([], ["--park"]):
        print("usage: python -m holdfast.runner PACKET [--park REASON]", file=sys.stderr)
        return 2
    try:
        if len(argv) == 3:
            from holdfast.runner.park import park  # seldom needed

            park(Packet(os.path.abspath(argv[0])), argv[2], _started())
        else:
            run(argv[0])
    except LockHeld as error:
        return error.exit_status  # nothing to report: two commands may start a runner at the same time
    except HoldfastError as error:
        print_error(error)
        return error.exit_status
    return 0
