"""An observer watches one open execution: its start, its output, its death, its stop.

It only observes and acts when told; the planner decides. A runner that adopts an agent makes the same
observer as the one that started it.
"""

from __future__ import annotations

import os
import signal

from holdfast import clock, files, recorder
from holdfast.failpoints import failpoint
from holdfast.model.attempt import Attempt
from holdfast.model.attempt_table import Reading
from holdfast.model.execution import Execution
from holdfast.model.process import ProcessIdentity
from holdfast.model.spec import Limits, TaskSpec
from holdfast.redact import MARGIN, end_of
from holdfast.runner.attempt import kinship, reading
from holdfast.runner.attempt.evidence import EvidenceTracker
from holdfast.runner.attempt.open import Opened
from holdfast.runner.attempt.reading import Found
from holdfast.runner.attempt.stop import Stop
from holdfast.runner.ledger import Ledger
from holdfast.runner.loop.waiter import Waiter
from holdfast.runner.output.ingest import Ingest
from holdfast.runner.output.position import IngestPosition
from holdfast.runner.output.read_schedule import ReadSchedule
from holdfast.runner.plan.facts import ExecutionFacts, Judgement
from holdfast.store import lock as locks
from holdfast.store import process
from holdfast.watch.death import POLL_S, watch_death
from holdfast.watch.verdict import Evidence, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter
    from holdfast.watch.death import DeathWatch
    from holdfast.watch.prompting import Showing

#: A recorder that owes a record for longer than this is woken with SIGCONT.
_OVERDUE_S = 2.0
_TAIL_BYTES = 4096
#: Poll interval if the kernel reports the death.
_NEVER_S = 3600.0


class Observer:
    """What a runner holds in memory about one open execution."""

    def __init__(
        self,
        ledger: Ledger,
        adapter: Adapter,
        execution: Execution,
        waiter: Waiter,
        *,
        position: IngestPosition,
        opened: Opened | None,
    ) -> None:
        self._ledger = ledger
        self._waiter = waiter
        self.adapter = adapter
        self.execution = execution
        self.directory = ledger.packet.attempt(execution.dirname)
        self._limits = _limits(ledger.task.spec, execution, adapter)
        self.ingest = Ingest(ledger, adapter, execution, self.directory, position=position)
        self._awaiting_since_mono = clock.mono()
        self._woken_mono = 0.0
        #: Readable once the agent was executed or failed to be. Watched last, when nothing can fail any more.
        self._started_pipe = -1
        if opened is not None:
            self._started_pipe = opened.started
            waiter.watch(self._started_pipe, self._name("started"))
        self._identity: ProcessIdentity | None = None
        #: Its recorder, if known: the lock cannot be tested any more if the directory is removed.
        self._recorder = process.identify(opened.recorder_pid) if opened is not None else None
        self._death: DeathWatch | None = None
        self._schedule: ReadSchedule | None = None
        self._evidence: EvidenceTracker | None = None
        self._stop: Stop | None = None
        #: What its directory says, and how it ended.
        self._found: Found | None = None
        self.end: Found | None = None
        self.has_unread_output = True
        self.noticed_at = 0.0
        #: Whether the program chose the session's id and nobody tried to lock the session yet.
        self.session_is_unlocked = isinstance(execution, Attempt) and execution.asked_session_id is None
        #: The judgement that the planner has not followed yet, and the evidence behind it.
        self.judgement: Judgement | None = None
        self.evidence: Evidence | None = None
        #: Next judgement time, and the inputs of the last one: the journal's length and the last progress.
        self._judge_mono = 0.0
        self._judged_inputs = (-1, 0.0)
        self._has_just_read = False
        self._last_verdict = (Kind.WORKING, "")
        self._showings: list[Showing] = []

    def _name(self, what: str) -> str:
        """The waiter's name for an event of this execution: several may be open."""
        return f"{what}.{self.execution.number}"

    # ── facts ──

    def observe(self, ready: set[str]) -> ExecutionFacts:
        """What can be seen now. `ready` are the waiter's names of this wake-up."""
        if self._name("started") in ready:
            self.forget_start_pipe()
        if self.end is None and self._identity is None:
            return self._observe_start()
        if self.end is None and self._has_died(ready):
            self._observe_death()
        if self.end is not None:
            return ExecutionFacts(is_watched=True, has_ended=True, has_unread_output=self.has_unread_output)
        if self.noticed_at:
            return self._awaiting_record(is_watched=True)
        return self._observe_life(ready)

    def _observe_start(self) -> ExecutionFacts:
        self._found = found = self.look()
        if (
            found.reading is Reading.SPAWN_FAILED
            and found.exit is not None
            and found.exit.exec_errno is not None
        ):
            self.end = found
            return ExecutionFacts(is_watched=True, has_ended=True, has_unread_output=True)
        facts = (
            self._awaiting_record(is_watched=False) if found.reading is Reading.STARTING else ExecutionFacts()
        )
        return facts.evolve(reading=found.reading, exit=found.exit)

    def _observe_death(self) -> None:
        found = self.look()
        if found.exit is None and self._is_recorder_writing():
            return
        if found.exit is not None or found.reading in (Reading.ORPHANED, Reading.NEVER_STARTED):
            self.end = found

    def _is_recorder_writing(self) -> bool:
        """Whether the attempt's directory was removed and its recorder, which makes it again, is alive."""
        if self._recorder is None or os.path.lexists(self.directory.lock):
            return False
        return process.is_alive(self._recorder)

    def _awaiting_record(self, *, is_watched: bool) -> ExecutionFacts:
        """The recorder owes an identity or an exit record."""
        now_mono = clock.mono()
        awaited_s = now_mono - self._awaiting_since_mono
        is_overdue = awaited_s > _OVERDUE_S and now_mono - self._woken_mono > _OVERDUE_S
        return ExecutionFacts(is_watched=is_watched, awaited_s=awaited_s, is_overdue=is_overdue)

    def _observe_life(self, ready: set[str]) -> ExecutionFacts:
        assert self._schedule is not None
        assert self._death is not None
        now_mono = clock.mono()
        read_in_s = self._schedule.left_s(ready, now_mono)
        attempt = self.execution
        # Judged only by what was read; in a flood, between two reads.
        can_judge = attempt.intent is None and (read_in_s > 0 or self._has_just_read)
        judge_in_s = self._judge_in_s() if can_judge else _NEVER_S
        if judge_in_s <= 0 and self.judgement is None:
            self._judge()
        return ExecutionFacts(
            is_watched=True,
            read_in_s=read_in_s,
            poll_in_s=POLL_S if self._death.descriptor < 0 else _NEVER_S,
            signal_in_s=None if attempt.intent is None else self._stopping().due_in_s(now_mono),
            needs_session_lock=self.session_is_unlocked
            and isinstance(attempt, Attempt)
            and attempt.session_id is not None,
            judge_in_s=judge_in_s,
            judgement=self.judgement,
        )

    # ── its start and its end ──

    def look(self) -> Found:
        """Read its directory.

        If the recorder is dead and we can learn how the agent ended, write the exit record first.
        """
        found = reading.look(self.directory, self.execution.started)
        if found.reading is Reading.NEVER_STARTED and reading.restore(self.directory):
            found = reading.look(self.directory, self.execution.started)
        if found.reading is Reading.ORPHANED:
            assert found.identity is not None
            if self._reap(found.identity) or self._ask_kernel():
                return reading.look(self.directory, self.execution.started)
        return found

    def _reap(self, identity: ProcessIdentity) -> bool:
        """If the agent was re-parented to us, reap it."""
        try:
            pid, status, usage = os.wait4(identity.pid, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return False
        recorder.write_exit(self.directory.path, by="runner", status=status, usage=usage, exec_errno=None)
        return True

    def _ask_kernel(self) -> bool:
        """If another process was its parent, the kernel may still tell how it ended."""
        status = self._death.exit_status() if self._death is not None and self.noticed_at else None
        if status is None:
            return False
        assert self._death is not None
        if self._death.descriptor < 0 and os.WIFSIGNALED(status):
            # Already dead when we came: what killed recorder and runner killed it too. That is not its fault.
            return False
        recorder.write_exit(self.directory.path, by="kernel", status=status, usage=None, exec_errno=None)
        return True

    def forget_start_pipe(self) -> None:
        """The agent was executed, or failed to be: the pipe stays readable and says nothing more."""
        if self._started_pipe >= 0:
            self._waiter.unwatch(self._started_pipe)
            os.close(self._started_pipe)
            self._started_pipe = -1

    @property
    def found(self) -> Found:
        """What the last look at its directory found."""
        assert self._found is not None
        return self._found

    def begin(self) -> None:
        """The start is journalled: watch the process, or take note of an end that is already there."""
        found = self.found
        if found.exit is not None:
            self.end = found
            return
        assert found.identity is not None
        self.forget_start_pipe()
        if found.reading is Reading.ORPHANED and self._is_foreign(found):
            self.end = found.evolve(is_foreign=True)
            return
        self._identity = found.identity
        if self._recorder is None and process.HAS_PROC:
            fields = process.stat_fields(found.identity.pid)
            parent = int(fields[1]) if fields else 1
            self._recorder = process.identify(parent) if parent not in (1, os.getpid()) else None
        self._death = watch_death(found.identity)
        if self._death.descriptor >= 0:
            self._waiter.watch(self._death.descriptor, self._name("death"))
        logs = [self.directory.stdout, self.directory.stderr]
        self._schedule = ReadSchedule(self._waiter, self._name("growth"), logs, is_plain=self.ingest.is_plain)
        self.ingest.look()
        self._evidence = EvidenceTracker(
            self._ledger,
            self.execution,
            self.directory,
            pid=found.identity.pid,
            limits=self._limits,
            ingest=self.ingest,
        )

    def _is_foreign(self, found: Found) -> bool:
        """Whether its process lives and was started from another home. While its lock is held, it was not."""
        identity = found.identity
        assert identity is not None
        return process.is_alive(identity) and kinship.is_foreign(identity, self.directory, found.born)

    def _has_died(self, ready: set[str]) -> bool:
        """Whether the kernel reported its death; it is asked only where it does not report by itself."""
        if self.noticed_at:
            return True
        assert self._death is not None
        if self._death.descriptor >= 0 and self._name("death") not in ready:
            return False
        if not self._death.has_died():
            return False
        self.noticed_at = clock.now()
        failpoint("observer.noticed")
        self._awaiting_since_mono = clock.mono()
        if self._death.descriptor >= 0:
            # It stays readable, and the exit record may take a while.
            self._waiter.unwatch(self._death.descriptor)
        return True

    def wake_recorder(self) -> float:
        """SIGCONT to every process that holds its lock; returns how long it has been silent."""
        self._woken_mono = clock.mono()
        # Found by the lock, not by its text: a stopped process may not have signed it yet.
        for pid in locks.holders(self.directory.lock):
            holder = process.identify(pid)
            if holder is not None:
                process.send(holder, signal.SIGCONT)
        return self._woken_mono - self._awaiting_since_mono

    # ── its output ──

    def read(self) -> None:
        """Read new output, and note when to read next."""
        assert self._schedule is not None
        assert self._evidence is not None
        self.judgement, self._has_just_read = None, True
        now_mono = clock.mono()
        unseen_s = self._schedule.unseen_s(now_mono)
        before = self._evidence.output_bytes
        self._schedule.begin(now_mono)
        has_more = self.ingest.take()
        self._evidence.note_growth(unseen_s)
        self._evidence.note_events(now_mono)
        grown = self._evidence.output_bytes - before
        self._schedule.end(grown, has_more=has_more, room_bytes=self._evidence.room_bytes())

    def read_rest(self) -> None:
        """After its end: read the next piece of what is left."""
        self.has_unread_output = self.ingest.take(final=True)

    # ── its life ──

    def _judge_in_s(self) -> float:
        """Time until it has to be judged again. Output without events can only postpone that."""
        assert self._evidence is not None
        length, progress_mono = self._judged_inputs
        has_recovered = (
            self._last_verdict[0] is not Kind.WORKING and self._evidence.progress_mono != progress_mono
        )
        if self._ledger.length != length or has_recovered or self._evidence.room_bytes() == 0:
            return 0.0
        return self._judge_mono - clock.mono()

    def _judge(self) -> None:
        assert self._evidence is not None
        verdict, self.evidence = self._evidence.verdict(self._look_at_logs)
        self.judgement = Judgement(
            lived_s=self._evidence.lived_s(),
            silent_s=self._evidence.silent_s(),
            output_bytes=self._evidence.output_bytes,
            verdict=verdict,
            # Another excuse is news too: the journal says how long each of them held.
            is_news=(verdict.kind, verdict.because) != self._last_verdict,
        )

    def _look_at_logs(self) -> None:
        assert self._schedule is not None
        assert self._evidence is not None
        self.ingest.look()
        self._evidence.note_growth(self._schedule.unseen_s(clock.mono()))

    def accept_verdict(self) -> None:
        """The verdict is recorded: it is no news any more."""
        assert self.judgement is not None
        verdict = self.judgement.verdict
        self._last_verdict = (verdict.kind, verdict.because)
        self.judgement = self.judgement.evolve(
            is_news=False,
            waits_for_input=self._waits_for_input(),
            last_line=self._last_line() if verdict.kind is Kind.HUNG else "",
        )

    def follow_judgement(self, again_s: float) -> None:
        """The planner found no reason to stop it: judge it again after `again_s`."""
        assert self._evidence is not None
        self.judgement = None
        self._judge_mono = clock.mono() + again_s
        self._judged_inputs = (self._ledger.length, self._evidence.progress_mono)

    def judge_again(self) -> None:
        """Judge it at the next plan, whatever was seen before."""
        self._judge_mono = 0.0

    def note_screen(self) -> str:
        """What its last lines look like; noted, to tell an agent that waits for input from one that hangs."""
        from holdfast.watch import prompting  # few agents are ever silent for so long

        tail = self._tail(self.directory.stderr)
        if not self.adapter.capabilities.has_events:
            tail = self._tail(self.directory.stdout) or tail
        self._showings.append(prompting.showing(tail))
        return str(self._showings[-1])

    def _waits_for_input(self) -> bool:
        if not self._showings:
            return False
        from holdfast.watch import prompting

        return prompting.is_waiting(self._showings)

    def _last_line(self) -> str:
        # Redacted first: half a secret is not recognised.
        text = self._ledger.redact(self._tail(self.directory.stderr) or self._tail(self.directory.stdout))
        return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[-200:]

    def stderr_tail(self) -> str:
        """The last 4 KB of stderr, without secrets, for the adapter's classification."""
        data = self._end_bytes(self.directory.stderr, _TAIL_BYTES + MARGIN)
        return end_of(data, self._ledger.redact, _TAIL_BYTES)

    def _tail(self, path: str) -> str:
        return self._end_bytes(path, _TAIL_BYTES).decode("utf-8", "replace")

    def _end_bytes(self, path: str, count: int) -> bytes:
        try:
            with files.stream(path) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - count))
                return file.read(count)
        except OSError:
            return b""

    # ── its stop ──

    def _stopping(self) -> Stop:
        if self._stop is None:
            assert self._identity is not None
            self._stop = Stop(self._identity, self.adapter.capabilities.stop, self._limits.stop_pause_s)
        return self._stop

    @property
    def is_kill_next(self) -> bool:
        """Whether the next stop signal kills it."""
        return self._stopping().is_kill_next

    def signal(self) -> None:
        """Send the next stop signal."""
        self._stopping().send()

    def close(self) -> None:
        """Stop watching. The agent does not notice."""
        if self._death is not None and self._death.descriptor >= 0:
            self._waiter.unwatch(self._death.descriptor)
            self._death.close()
        if self._schedule is not None:
            self._schedule.close()
        self.forget_start_pipe()
        self.ingest.close()


def _limits(spec: TaskSpec, execution: Execution, adapter: Adapter) -> Limits:
    """The task's limits. Silence means something else for another agent, and nothing for a chore."""
    if not isinstance(execution, Attempt):
        return spec.limits.evolve(stale_s=None)
    if execution.agent != spec.agent:
        return spec.limits.evolve(stale_s=adapter.capabilities.stale_s)
    return spec.limits
