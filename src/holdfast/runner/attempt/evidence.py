"""Evidence that an execution makes progress: output, events, CPU time, changed files. Basis of a verdict.

Everything here can be rebuilt from the packet: a runner that adopts an agent has the same evidence as the one
that started it.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Execution
from holdfast.model.spec import Limits
from holdfast.runner.ledger import Ledger
from holdfast.runner.output.ingest import Ingest
from holdfast.store.layout import AttemptDir
from holdfast.watch import progress
from holdfast.watch.verdict import Evidence, Kind, Verdict, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class EvidenceTracker:
    """The evidence about one living process."""

    def __init__(
        self,
        ledger: Ledger,
        execution: Execution,
        directory: AttemptDir,
        *,
        pid: int,
        limits: Limits,
        ingest: Ingest,
    ) -> None:
        self._ledger = ledger
        self._execution = execution
        self._limits = limits
        self._ingest = ingest
        self._meter = progress.CpuMeter(pid)
        self.output_bytes = ingest.raw_bytes()
        now_mono, now = clock.mono(), clock.now()
        # Silence before an adoption counts, but never so much that no grace period is left.
        silent_s = min(max(0.0, now - _last_write(directory)), limits.stale_s or 0.0)
        self._progress_mono = now_mono - silent_s
        self._files_checked_at = now - silent_s
        self._judged_from_mono = now_mono + limits.dispatch_wait_s - self.lived_s()
        self._result_mono: float | None = None
        self._tools_mono: dict[str, float] = {}
        self._wait_until_mono: float | None = None
        self._excused_mono: float | None = None
        #: Number and time of the last retry that was read, and when they began.
        self._retries_seen, self._retry_mono = 0, 0.0
        self._unanswered_mono: float | None = None
        self.note_events(now_mono)

    @property
    def progress_mono(self) -> float:
        """When the last progress was made."""
        return self._progress_mono

    def lived_s(self) -> float:
        """How long it has lived, on the clock that stops while the machine sleeps."""
        started = self._execution.started
        return max(0.0, clock.mono() - started.mono_s) if started is not None else 0.0

    def silent_s(self) -> float:
        """Time since the last byte or event."""
        return clock.mono() - self._progress_mono

    def room_bytes(self) -> int | None:
        """How much more it may print; None without a limit."""
        limit = self._limits.output_bytes
        return max(0, limit - self.output_bytes) if limit else None

    def note_growth(self, unseen_s: float) -> None:
        """Progress is when output was written, not when it was read. `unseen_s`: time without a reader."""
        size = self._ingest.raw_bytes()
        if size == self.output_bytes:
            return
        self.output_bytes = size
        now_mono, now = clock.mono(), clock.now()
        age_s = progress.age_s(now - self._ingest.written_at, unseen_s)
        self._progress_mono = max(self._progress_mono, now_mono - age_s)
        self._files_checked_at = now - (now_mono - self._progress_mono)
        self._ledger.observed.last_progress_at = clock.iso(self._files_checked_at)

    def forgive(self, seconds: float) -> None:
        """This time does not count: no runner was watching, and the agent may have been stopped."""
        if not seconds:
            return
        self._progress_mono += seconds
        self._judged_from_mono += seconds
        self._retry_mono += seconds
        self._tools_mono = {tool: at + seconds for tool, at in self._tools_mono.items()}
        if self._result_mono is not None:
            self._result_mono += seconds
        if self._unanswered_mono is not None:
            self._unanswered_mono += seconds

    def note_events(self, now_mono: float) -> None:
        """Take over what the agent reported: open tools, an announced wait, its result."""
        attempt = self._execution
        if not isinstance(attempt, Attempt):
            return
        self._tools_mono = {tool: self._tools_mono.get(tool, now_mono) for tool in attempt.open_tools}
        self._wait_until_mono = None
        if attempt.retry_at is not None:
            left_s = min(clock.parse_iso(attempt.retry_at) - clock.now(), self._limits.wait_ceiling_s)
            self._wait_until_mono = now_mono + max(0.0, left_s)
        self._note_retries(attempt, now_mono)
        if attempt.result is not None and self._result_mono is None:
            self._result_mono = now_mono

    def _note_retries(self, attempt: Attempt, now_mono: float) -> None:
        if attempt.unanswered_since is None:
            self._unanswered_mono = None
        elif attempt.retries_seen != self._retries_seen:
            self._retry_mono = max(now_mono, self._progress_mono)
            if self._unanswered_mono is None:
                # Of an adopted agent, at most its life: the wall clock may have been set.
                ago_s = clock.now() - clock.parse_iso(attempt.unanswered_since)
                self._unanswered_mono = now_mono - min(max(0.0, ago_s), self.lived_s())
        self._retries_seen = attempt.retries_seen

    def _retries_only(self) -> float | None:
        """Since when it has printed nothing but retries. Any other byte may be from the model."""
        return self._unanswered_mono if self._progress_mono <= self._retry_mono else None

    def verdict(self, look_at_logs: Callable[[], None], now_mono: float) -> tuple[Verdict, Evidence]:
        """What the evidence says at `now_mono`.

        Before it calls a hang, it looks at logs that were not read for a while.
        """
        if self._is_stale(now_mono):
            look_at_logs()
        is_stale = self._is_stale(now_mono)
        oldest = min(self._tools_mono.items(), key=lambda item: item[1], default=None)
        attempt = self._execution
        evidence = Evidence(
            progress_mono=self._progress_mono,
            judged_from_mono=self._judged_from_mono,
            result_mono=self._result_mono,
            tool_mono=oldest[1] if oldest else None,
            tool_name=attempt.open_tools[oldest[0]].name if oldest and isinstance(attempt, Attempt) else "",
            wait_until_mono=self._wait_until_mono,
            unanswered_mono=self._retries_only(),
            unanswered_since=_clock_time(attempt.unanswered_since) if isinstance(attempt, Attempt) else "",
            is_limited=isinstance(attempt, Attempt) and attempt.is_limited,
            is_busy=is_stale and self._meter.is_busy(),
            files_changed=is_stale and self._files_changed(),
            excused_mono=self._excused_mono,
        )
        verdict = judge(evidence, self._limits, now_mono)
        if verdict.kind is Kind.EXCUSED:
            self._excused_mono = now_mono
        return verdict, evidence

    def _is_stale(self, now_mono: float) -> bool:
        stale_s = self._limits.stale_s
        return stale_s is not None and now_mono - self._progress_mono >= stale_s

    def _files_changed(self) -> bool:
        since, self._files_checked_at = self._files_checked_at, clock.now()
        workspace = self._ledger.task.workspace_of(self._execution.stage)
        return progress.changed_since(workspace, since, skip=self._ledger.packet.home.path)


def _clock_time(at: str | None) -> str:
    """`04:12:31 UTC` of a time in the journal."""
    return f"{at[11:19]} UTC" if at else ""


def _last_write(directory: AttemptDir) -> float:
    times = [os.stat(path).st_mtime for path in (directory.stdout, directory.stderr) if os.path.exists(path)]
    return max(times, default=clock.now())
