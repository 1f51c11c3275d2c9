"""The open attempt, watched: its death, its growth, its progress, its stop.

Everything here can be made again from the packet; a runner that adopts an agent makes the same object as the one
that started it.
"""

from __future__ import annotations

import os
import signal

from holdfast import clock, recorder
from holdfast.failpoints import failpoint
from holdfast.model.attempt import Attempt
from holdfast.model.attempt_table import Reading
from holdfast.model.process import ProcessIdentity
from holdfast.model.spec import Limits, TaskSpec
from holdfast.redact import MARGIN, end_of
from holdfast.runner.attempt import reading as adopt
from holdfast.runner.attempt.open import Opened
from holdfast.runner.attempt.reading import Found
from holdfast.runner.attempt.stop import Stop
from holdfast.runner.ledger import Ledger
from holdfast.runner.loop.waiter import Waiter
from holdfast.runner.output.ingest import Ingest
from holdfast.runner.output.position import Position
from holdfast.runner.output.read_schedule import Gulps
from holdfast.runner.stage.prompts import workspace_of
from holdfast.store import lock as locks
from holdfast.store import process
from holdfast.watch import progress
from holdfast.watch.death import POLL_S, watch_death
from holdfast.watch.verdict import Evidence, Kind, Verdict, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter
    from holdfast.watch.death import DeathWatch
    from holdfast.watch.prompting import Showing

#: A recorder that owes us a record for longer is woken with SIGCONT.
OVERDUE_S = 2.0
#: What is read of a log's end.
_TAIL_BYTES = 4096


def _limits(spec: TaskSpec, attempt: Attempt, adapter: Adapter) -> Limits:
    """The task's own limits; only silence means another thing for another agent, and nothing for a chore."""
    if attempt.kind != "agent":
        return spec.limits.evolve(stale_s=None)
    if attempt.agent != spec.agent:
        return spec.limits.evolve(stale_s=adapter.capabilities.stale_s)
    return spec.limits


class Live:
    """What a runner holds in memory of the open attempt."""

    def __init__(
        self,
        ledger: Ledger,
        adapter: Adapter,
        attempt: Attempt,
        waiter: Waiter,
        *,
        position: Position,
        opened: Opened | None,
    ) -> None:
        self.ledger = ledger
        self.adapter = adapter
        self.attempt = attempt
        self.waiter = waiter
        self.directory = ledger.packet.attempt(attempt.dirname)
        self.limits = _limits(ledger.task.spec, attempt, adapter)
        self._waiting_since_mono = clock.mono()
        self._woke_mono = 0.0
        self._death: DeathWatch | None = None
        self._gulps: Gulps | None = None
        # The pipe is watched once nothing can fail any more: who would unwatch it?
        self._started = -1
        self.ingest = Ingest(ledger, adapter, attempt, self.directory, position=position)
        if opened is not None:
            self._started = opened.started
            waiter.watch(self._started, self._name("started"))
        self._size_bytes = self._taken_bytes = 0
        #: Whether this step was made to read a log, by a timer.
        self._is_gulp = False
        self._stop: Stop | None = None
        self._showings: list[Showing] = []
        self.waits_for_input = False
        #: When somebody has to think about it again; what somebody knew who did: the journal's length, and the last progress.
        self._think_mono, self._thought_of = 0.0, (-1, 0.0)
        self.identity: ProcessIdentity | None = None
        #: What was found when it was over; then only its logs are still read.
        self.end: Found | None = None
        self.noticed_at = 0.0

    def _name(self, what: str) -> str:
        """What the waiter calls this attempt's news: there may be several attempts."""
        return f"{what}.{self.attempt.number}"

    def has_news_of_start(self, ready: set[str]) -> bool:
        """Whether the agent was just executed, or failed to be."""
        return self._name("started") in ready

    # ── what is there ──

    def look(self) -> Found:
        """The attempt table, with a zombie of ours reaped and recorded where the recorder cannot."""
        found = adopt.look(self.directory, self.attempt.started)
        if found.reading is Reading.ORPHANED:
            assert found.identity is not None
            if self._reap(found.identity):
                return adopt.look(self.directory, self.attempt.started)
        return found

    def _reap(self, identity: ProcessIdentity) -> bool:
        """The recorder is dead and the agent was re-parented to us: take its exit status and write the record."""
        try:
            pid, status, usage = os.wait4(identity.pid, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return False
        recorder.write_exit(self.directory.path, by="runner", status=status, usage=usage, exec_errno=None)
        return True

    def forget_start(self) -> None:
        """The agent was executed, or not: the pipe has said all that it can."""
        if self._started >= 0:
            self.waiter.unwatch(self._started)
            os.close(self._started)
            self._started = -1

    def begin(self, identity: ProcessIdentity) -> None:
        """The agent exists: watch it."""
        self.forget_start()
        self.identity = identity
        self._death = watch_death(identity)
        if self._death.descriptor >= 0:
            self.waiter.watch(self._death.descriptor, self._name("death"))
        logs = [self.directory.stdout, self.directory.stderr]
        self._gulps = Gulps(self.waiter, self._name("growth"), logs, is_plain=self.ingest.is_plain)
        self.ingest.look()
        self._size_bytes = self._taken_bytes = self.ingest.raw_bytes()
        self._meter = progress.CpuMeter(identity.pid)
        now_mono, now = clock.mono(), clock.now()
        # Silence from before an adoption counts, but never so much that no grace period is left.
        silent_s = min(max(0.0, now - self._last_write()), self.limits.stale_s or 0.0)
        self._judged_from_mono = now_mono + max(0.0, self.limits.dispatch_wait_s - self.lived_s())
        self._progress_mono, self._progress_at = now_mono - silent_s, now - silent_s
        self._looked_at = self._progress_at
        self._result_mono = now_mono if self.attempt.result is not None else None
        self._tools_mono = dict.fromkeys(self.attempt.open_tools, now_mono)
        self._wait_until_mono = self._announced_wait(now_mono, now)
        self._excused_mono: float | None = None
        self._said = (Kind.WORKING, "")

    def _last_write(self) -> float:
        times = [
            os.stat(path).st_mtime
            for path in (self.directory.stdout, self.directory.stderr)
            if os.path.exists(path)
        ]
        return max(times, default=clock.now())

    def _announced_wait(self, now_mono: float, now: float) -> float | None:
        if self.attempt.retry_at is None:
            return None
        return now_mono + max(
            0.0, min(clock.parse_iso(self.attempt.retry_at) - now, self.limits.wait_ceiling_s)
        )

    def await_record(self) -> float:
        """Somebody owes us a file (identity or exit record): look again soon, and wake a stopped recorder."""
        now_mono = clock.mono()
        waited_s = now_mono - self._waiting_since_mono
        if waited_s > OVERDUE_S and now_mono - self._woke_mono > OVERDUE_S:
            self._woke_mono = now_mono
            # By the lock, not by its text: who was stopped may not have signed yet, or be the agent-to-be.
            for pid in locks.holders(self.directory.lock):
                holder = process.identify(pid)
                if holder is not None:
                    process.send(holder, signal.SIGCONT)
            self.ledger.seen["verdict"] = f"the recorder has been silent for {waited_s:.0f}s"
            self.ledger.show()
        return min(max(waited_s / 4, 0.0005), 0.25)

    # ── alive ──

    def has_died(self, ready: set[str]) -> bool:
        """The kernel's word on the agent; it is asked only where it does not speak by itself."""
        if self.noticed_at:
            return True
        assert self._death is not None
        if self._death.descriptor >= 0 and self._name("death") not in ready:
            return False
        if not self._death.has_died():
            return False
        self.noticed_at = clock.now()
        failpoint("live.noticed")
        self._waiting_since_mono = clock.mono()
        if self._death.descriptor >= 0:
            # It stays readable for ever, and the record may take a while.
            self.waiter.unwatch(self._death.descriptor)
        return True

    @property
    def ask_again_s(self) -> float:
        """When to ask for the agent's death, where the kernel does not tell."""
        return POLL_S if self._death is not None and self._death.descriptor < 0 else 3600.0

    def take(self, ready: set[str]) -> float:
        """Read new output. Returns the seconds after which it must be asked again."""
        assert self._gulps is not None
        now_mono = clock.mono()
        left_s = self._gulps.left_s(ready, now_mono)
        self._is_gulp = left_s <= 0 and not ready
        if left_s > 0:
            return left_s
        unseen_s = self._gulps.unseen_s(now_mono)
        self._gulps.begin(now_mono)
        has_more = self.ingest.take()
        self._note_growth(unseen_s)
        self._note_events(now_mono)
        grown = self._size_bytes - self._taken_bytes
        self._taken_bytes = self._size_bytes
        return self._gulps.end(grown, has_more=has_more, room_bytes=self._room_bytes())

    def _room_bytes(self) -> int | None:
        limit = self.limits.output_bytes
        return max(0, limit - self._size_bytes) if limit else None

    def _note_growth(self, unseen_s: float) -> None:
        """Progress is when it was written, not when we read it."""
        size = self.ingest.raw_bytes()
        if size == self._size_bytes:
            return
        self._size_bytes = size
        now_mono, now = clock.mono(), clock.now()
        age_s = progress.age_s(now - self.ingest.written_at, unseen_s)
        self._progress_mono = max(self._progress_mono, now_mono - age_s)
        self._progress_at = self._looked_at = now - (now_mono - self._progress_mono)
        self.ledger.seen["last_progress_at"] = clock.iso(self._progress_at)

    def _note_events(self, now_mono: float) -> None:
        attempt = self.attempt
        self._tools_mono = {tool: self._tools_mono.get(tool, now_mono) for tool in attempt.open_tools}
        self._wait_until_mono = self._announced_wait(now_mono, clock.now())
        if attempt.result is not None and self._result_mono is None:
            self._result_mono = now_mono

    def left_to_think_s(self, ready: set[str]) -> float:
        """Time until somebody has to think about it. Output without a fact in it can only move that further away, so a line
        costs no thought, and neither does who follows; everything else does, and at the old time it is seen how far it was
        moved. (A request that was granted is in the journal.)"""
        is_only_output = (self._is_gulp or bool(ready)) and all(
            name == "bell" or name.startswith("growth.") for name in ready
        )
        length, progress_mono = self._thought_of
        if (
            not is_only_output
            or self.ledger.length != length
            or (self._said[0] is not Kind.WORKING and self._progress_mono != progress_mono)
            or self._room_bytes() == 0
        ):
            return 0.0
        return max(0.0, self._think_mono - clock.mono())

    def think_again_in(self, wait_s: float) -> float:
        """Somebody has thought about it, and shall again then."""
        self._think_mono = clock.mono() + wait_s
        self._thought_of = (self.ledger.length, self._progress_mono)
        return wait_s

    def verdict(self) -> tuple[Verdict, Evidence, bool]:
        """What the evidence says now, and whether that is news."""
        now_mono = clock.mono()
        stale_s = self.limits.stale_s
        is_stale = stale_s is not None and now_mono - self._progress_mono >= stale_s
        if is_stale and self._gulps is not None:
            # Before a verdict the logs are looked at: they may be left alone just now.
            self.ingest.look()
            self._note_growth(self._gulps.unseen_s(now_mono))
            is_stale = stale_s is not None and now_mono - self._progress_mono >= stale_s
        oldest = min(self._tools_mono.items(), key=lambda item: item[1], default=None)
        evidence = Evidence(
            progress_mono=self._progress_mono,
            judged_from_mono=self._judged_from_mono,
            result_mono=self._result_mono,
            tool_mono=oldest[1] if oldest else None,
            tool_name=self.attempt.open_tools[oldest[0]].name if oldest else "",
            wait_until_mono=self._wait_until_mono,
            is_busy=is_stale and self._meter.is_busy(),
            files_changed=is_stale and self._files_changed(),
            excused_mono=self._excused_mono,
        )
        verdict = judge(evidence, self.limits, now_mono)
        if verdict.kind is Kind.EXCUSED:
            self._excused_mono = now_mono
        # Another excuse is news too: the journal shall say for how long each of them held.
        said = (verdict.kind, verdict.because)
        is_news, self._said = said != self._said, said
        return verdict, evidence, is_news

    def _files_changed(self) -> bool:
        since, self._looked_at = self._looked_at, clock.now()
        return progress.changed_since(
            workspace_of(self.ledger.task, self.attempt.stage), since, skip=self.ledger.packet.home.path
        )

    def silent_s(self) -> float:
        """Time since the last byte or event."""
        return clock.mono() - self._progress_mono

    def showing(self) -> str:
        """What its last lines look like, noted for `waits_for_input`. Only asked of one that is silent without excuse."""
        from holdfast.watch import prompting  # dear to load, and few agents are ever silent for so long

        tail = self._tail(self.directory.stderr)
        if not self.adapter.capabilities.has_events:
            tail = self._tail(self.directory.stdout) or tail
        self._showings.append(prompting.showing(tail))
        self.waits_for_input = prompting.is_waiting(self._showings)
        return str(self._showings[-1])

    def last_line(self) -> str:
        """Its last words, for people."""
        # Redacted first: half a secret looks like none.
        text = self.ledger.redact(self._tail(self.directory.stderr) or self._tail(self.directory.stdout))
        return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[-200:]

    def lived_s(self) -> float:
        """How long the agent has lived, on the clock that stands still in a suspend."""
        started = self.attempt.started
        return max(0.0, clock.mono() - started.mono_s) if started is not None else 0.0

    def stop(self) -> float:
        """Go on stopping the agent. Returns the seconds until the next signal is due."""
        assert self.identity is not None
        if self._stop is None:
            self._stop = Stop(self.identity, self.adapter.capabilities.stop, self.limits.stop_pause_s)
        return self._stop.step()

    def stderr_tail(self) -> str:
        """The last 4 KB of stderr, without secrets, for the adapter's judgement. It cuts a few words out of it."""
        data = self._end_bytes(self.directory.stderr, _TAIL_BYTES + MARGIN)
        return end_of(data, self.ledger.redact, _TAIL_BYTES)

    def _tail(self, path: str) -> str:
        return self._end_bytes(path, _TAIL_BYTES).decode("utf-8", "replace")

    def _end_bytes(self, path: str, count: int) -> bytes:
        try:
            with open(path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - count))
                return file.read(count)
        except FileNotFoundError:
            return b""

    def close(self) -> None:
        """Stop watching. The agent does not notice."""
        if self._death is not None and self._death.descriptor >= 0:
            self.waiter.unwatch(self._death.descriptor)
            self._death.close()
        if self._gulps is not None:
            self._gulps.close()
        self.forget_start()
        self.ingest.close()
