"""The sweep: kill the processes that an attempt left running, and no others.

It finds all descendants of the recorder (orphans re-parent to it), processes re-parented to us because the
recorder was dead, and every process with the attempt's marker. It spares other processes of holdfast and
their descendants (kinship.py).

All of them are stopped before the first one is ended. A stopped process cannot fork, so a full pass that
finds nothing new has found everything; and a shell whose command was killed cannot go on with the next one
(docs/decisions/0055-the-sweep.md).
"""

from __future__ import annotations

import os

from holdfast import clock, idle_recorder
from holdfast.failpoints import failpoint
from holdfast.model.process import ProcessIdentity
from holdfast.redact import Redactor
from holdfast.runner.attempt.kinship import Kinship
from holdfast.store import lock_owner, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator
    from typing import Any
else:
    import _signal as signal  # the C module: import time delays the start of the agent

#: Time between SIGTERM and SIGKILL.
TERM_S = 2.0
#: Processes still alive after this time count as unkillable.
GIVE_UP_S = 30.0
#: How long one call may go on stopping processes, and after how long they are ended even if some still run.
_CALL_S, _FREEZE_S = 0.05, 1.0
#: How long a recorder whose processes all seem dead may take to confirm it.
_CONFIRM_S = 5.0
#: Passes that must find nothing if no recorder can confirm that nothing is left. One in which a process was
#: gone before it could be looked at does not count; on a busy machine, not for ever.
_EMPTY_PASSES, _BLIND_S = 3, 2.0
#: If the process tree is lost: how many passes, and how long each of them looks at every new process of the
#: machine. One that forks and exits all the time is found only when it is born.
_LOST_TREE_PASSES, _BIRTHS_S = 8, 0.03
_PASS_S = 0.01
#: States of a process that cannot run: stopped, stopped by its tracer.
_STOPPED = ("T", "t")


class Pass:
    """What one pass saw besides the processes that it found."""

    def __init__(self) -> None:
        #: Some still ran.
        self.is_moving = False
        #: Some may become processes of holdfast.
        self.is_pending = False
        #: Some were gone before they could be looked at.
        self.is_blind = False


class Sweep:
    """One sweep, in passes that do not block: stop all, SIGTERM, wait, stop all, SIGKILL, prove."""

    def __init__(
        self,
        kin: Kinship,
        recorder: ProcessIdentity | None,
        *,
        tree_known: bool,
        is_open: bool = False,
        kills: bool = False,
    ) -> None:
        self._kin = kin
        #: Its end is not recorded: the observer reaps its agent.
        self._is_open = is_open
        self._recorder = recorder
        self._tree_known = tree_known
        self.killed: dict[int, str] = {}
        self.spared: dict[int, str] = {}
        self.proof = ""
        self.unkillable: tuple[int, ...] = ()
        #: Processes found by the last pass, by pid; those that were stopped, with their start time.
        self._victims: dict[int, ProcessIdentity] = {}
        self._stopped: dict[int, int] = {}
        #: Stopped processes that sleep in the kernel (vfork, a disk) or belong to another user.
        self._unstoppable: set[int] = set()
        self._pass = Pass()
        #: Processes without our marker in an earlier pass; reading all environments again is slow.
        self._unmarked: set[int] = {os.getpid()}
        self._empty_passes = 0
        self._empty_mono = 0.0
        self._began_mono = clock.mono()
        #: When they got a SIGTERM. With `kills` they get none, as if its time were over.
        self._term_sent_mono: float | None = self._began_mono - TERM_S if kills else None

    def sweep(self) -> float | None:
        """Run one pass. Returns when the next one is due (monotonic), or None if the sweep is complete."""
        if self._kin.is_copy:
            self.proof = "none of this home: it is a copy"
            return None
        now_mono = clock.mono()
        if self._term_sent_mono is not None and now_mono - self._term_sent_mono < TERM_S:
            self._scan(stop=False)
        elif not self.freeze():
            return clock.mono()
        elif self._victims and self._term_sent_mono is None:
            self._end(signal.SIGTERM, signal.SIGCONT)
            self._term_sent_mono = clock.mono()
        elif self._victims:
            self._end(signal.SIGKILL)
        if not self._victims and not self._pass.is_pending:
            return self._prove()
        if now_mono - self._began_mono > GIVE_UP_S:
            self._give_up(list(self._victims))
            return None
        is_early = clock.mono() - (self._term_sent_mono or self._began_mono) < 0.1
        return clock.mono() + (_PASS_S if is_early else 5 * _PASS_S)

    def find(self) -> list[ProcessIdentity]:
        """Live processes of the attempt, without the spared ones."""
        if not self._kin.is_copy:
            self._scan(stop=False)
        return list(self._victims.values())

    # ── stop and end ──

    def freeze(self) -> bool:
        """Stop everything of the attempt. Returns whether nothing runs any more, or it takes too long."""
        if self._kin.is_copy:
            return True
        began_mono = clock.mono()
        while True:
            self._scan(stop=True)
            if not self._pass.is_moving:
                return True
            now_mono = clock.mono()
            if now_mono - began_mono > _CALL_S:
                since_mono = (
                    self._began_mono if self._term_sent_mono is None else self._term_sent_mono + TERM_S
                )
                return now_mono - since_mono > _FREEZE_S

    def _end(self, *numbers: signal.Signals) -> None:
        """Signal the stopped processes, all of them with one signal before the next."""
        failpoint("sweep.frozen")
        for number in numbers:
            for victim in self._victims.values():
                process.send(victim, number)

    # ── find ──

    def _scan(self, *, stop: bool) -> None:
        """Look for the attempt's processes, parents first, and stop each of them when it is found."""
        self._victims = {}
        self._pass = Pass()
        seen, spared = {os.getpid()}, set[int]()
        todo = self._roots()
        while todo:
            pid = todo.pop()
            if pid in seen:
                continue
            seen.add(pid)
            if self._visit(pid, stop=stop):
                todo += process.children(pid)
            else:
                spared.add(pid)
        for pid in self._marked(seen):
            if not _is_below(pid, spared):
                self._visit(pid, stop=stop)

    def _roots(self) -> list[int]:
        """Children of the recorder, and processes re-parented to us; the recorder itself is not one."""
        recorder = self._living_recorder()
        ours = (recorder, idle_recorder.pid())
        below = [pid for pid in process.children(os.getpid()) if pid not in ours and not self._reap(pid)]
        return below + (process.children(recorder) if recorder else [])

    def _reap(self, pid: int) -> bool:
        """Reap a dead orphan, or they pile up. The agent of another attempt is left to its observer."""
        if self._is_open or self._kin.is_agent_of_sibling(pid) or process.glance(pid) is not None:
            return False
        try:
            return os.waitpid(pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True

    def _living_recorder(self) -> int:
        """The pid of the recorder; 0 if it is gone."""
        return self._recorder.pid if self._recorder is not None and process.is_alive(self._recorder) else 0

    def _marked(self, seen: set[int]) -> Iterator[int]:
        for pid in self._candidates():
            if pid in seen or pid in self._unmarked:
                continue
            if self._kin.is_marked(pid):
                yield pid
            elif process.glance(pid) is None:
                self._pass.is_blind = True
            else:
                self._unmarked.add(pid)

    def _candidates(self) -> Iterator[int]:
        """All processes, the newest first; if the tree is lost, also those that are born meanwhile."""
        if not self._tree_known and process.HAS_PROC:
            newest, ends_mono = process.newest(), clock.mono() + _BIRTHS_S
            while clock.mono() < ends_mono:
                before, newest = newest, process.newest()
                yield from range(before + 1, newest + 1)  # none when the numbers begin again
        yield from reversed(process.all_pids())

    def _visit(self, pid: int, *, stop: bool) -> bool:
        """Add a process to the victims unless it is exempt. Returns whether to visit its children."""
        seen = process.glance(pid)
        if seen is None:
            self._pass.is_blind = True
            return True
        state, start_time = seen
        victim = ProcessIdentity(boot_id=process.boot_id(), pid=pid, start_time=start_time)
        if self._stopped.get(pid) != start_time or state not in _STOPPED:
            if self._is_spared(pid, start_time):
                return False
            if stop:
                self._stop(victim, state)
        self._victims[pid] = victim
        self._empty_passes, self._empty_mono = 0, 0.0
        return True

    def _is_spared(self, pid: int, start_time: int) -> bool:
        kin = self._kin
        if kin.is_older(start_time):
            return True
        if kin.may_become_holdfast(pid, start_time) and not kin.is_of_holdfast(pid):
            # Neither ended nor forgotten, until it has its lock or is too old.
            self._pass.is_pending = True
            self._empty_passes, self._empty_mono = 0, 0.0
            return True
        if kin.is_of_holdfast(pid) or kin.is_of_sibling(pid):
            self.spared.setdefault(pid, process.command_line(pid))
            return True
        return False

    def _stop(self, victim: ProcessIdentity, state: str) -> None:
        pid = victim.pid
        is_first = self._stopped.get(pid) != victim.start_time
        if not is_first and pid in self._unstoppable:
            return
        is_told = process.send(victim, signal.SIGSTOP)
        if is_first and (is_told or process.is_alive(victim)):
            self.killed[pid] = process.command_line(pid)
            self._stopped[pid] = victim.start_time
            self._unstoppable.discard(pid)
        if not is_first and (state == "D" or not is_told):
            self._unstoppable.add(pid)  # it was told twice: it stops when it can, or we may not stop it
            return
        self._pass.is_moving = True

    # ── prove ──

    def _prove(self) -> float | None:
        """A pass found nothing. Returns when the next one is due, or None once it is certain."""
        now_mono = clock.mono()
        self._empty_mono = self._empty_mono or now_mono
        if self._tree_known and lock_owner.says_none_left(self._kin.directory.lock):
            self.proof = "none left"  # wait(2) told the recorder that it has no children, so none can hide
            return None
        recorder = self._living_recorder()
        if recorder and not any(_is_below(pid, {recorder}) for pid in self.spared):
            empty_s = now_mono - self._empty_mono
            if empty_s > _CONFIRM_S:
                self._give_up(process.children(recorder))
                return None
            if self._recorder is not None:
                process.send(self._recorder, signal.SIGCONT)  # it may be stopped
            return now_mono + min(max(empty_s, 0.001), _PASS_S)
        if self._pass.is_blind and now_mono - self._empty_mono < _BLIND_S:
            return now_mono
        self._empty_passes += 1
        enough = _EMPTY_PASSES if self._tree_known else _LOST_TREE_PASSES
        if self._empty_passes < enough:
            if self._empty_passes == enough - 1:
                self._unmarked = {os.getpid()}  # a pid may be that of another process by now
            return now_mono
        self.proof = "none left" if self._tree_known else "none marked"
        return None

    def _give_up(self, pids: list[int]) -> None:
        self.unkillable = tuple(sorted(pids))
        self.proof = f"{len(pids)} cannot be killed: {list(self.unkillable)}"


def _is_below(pid: int, roots: set[int]) -> bool:
    """Whether a process is one of `roots`, or a descendant of one."""
    while roots and pid > 1:
        if pid in roots:
            return True
        pid = process.parent(pid)
    return False


def as_list(commands: dict[int, str], redact: Redactor) -> list[dict[str, Any]]:
    """Processes for the journal; command lines are redacted."""
    return [{"pid": pid, "command": redact(command)[:200]} for pid, command in commands.items()]
