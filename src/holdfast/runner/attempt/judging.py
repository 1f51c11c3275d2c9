"""Judge a living execution: when, by which evidence, and what became of the last judgement."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.record import Record
from holdfast.runner.attempt.evidence import EvidenceTracker
from holdfast.runner.attempt.subject import TAIL_BYTES, Subject
from holdfast.runner.output.read_schedule import ReadSchedule
from holdfast.runner.plan.facts import Judgement
from holdfast.store import tail
from holdfast.watch.verdict import Evidence, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.watch.prompting import Showing

_LINE_CHARS = 200
#: If this process is later than this, it was delayed by more than load: the machine was paused, or a signal
#: stopped this process. Its agent may have been stopped, too.
_LATE_S = 1.0


class Basis(Record):
    """What a judgement is based on."""

    #: The length of the journal: every event counts.
    journal_length: int = -1
    #: When the last progress was made.
    progress_mono: float = 0.0


def is_outdated(old: Basis, new: Basis, verdict: Kind, *, room_bytes: int | None) -> bool:
    """Whether a judgement has to be made again before its time: something happened, the agent recovered from
    the last verdict, or it has printed all that it may. Output without events can only postpone it."""
    has_recovered = verdict is not Kind.WORKING and new.progress_mono != old.progress_mono
    return new.journal_length != old.journal_length or has_recovered or room_bytes == 0


def stopped_s(seen_mono: float, due_mono: float, now_mono: float) -> float:
    """How long this process was stopped. After `seen_mono` it slept, until `due_mono` at the latest. A short
    delay is load."""
    late_s = now_mono - max(seen_mono, due_mono)
    return late_s if late_s > _LATE_S else 0.0


def last_line(text: str) -> str:
    """The last line that is not blank, shortened."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[-_LINE_CHARS:]


class Pending(Record):
    """A judgement that the planner has not followed yet."""

    judgement: Judgement
    evidence: Evidence


class Judging:
    """The judgements about one living process."""

    def __init__(self, subject: Subject, schedule: ReadSchedule, *, pid: int) -> None:
        self._subject = subject
        self._schedule = schedule
        self.tracker = EvidenceTracker(
            subject.ledger,
            subject.execution,
            subject.directory,
            pid=pid,
            limits=subject.limits,
            ingest=subject.ingest,
        )
        self.pending: Pending | None = None
        self._due_mono = 0.0
        #: When this process was last seen at work.
        self._seen_mono = clock.mono()
        self._basis = Basis()
        #: The last verdict that was recorded: its kind and its reason.
        self._last_verdict = (Kind.WORKING, "")
        #: What its last lines looked like while it was silent.
        self._showings: list[Showing] = []

    def due_in_s(self) -> float:
        """Time until it has to be judged again."""
        kind, room_bytes = self._last_verdict[0], self.tracker.room_bytes()
        if is_outdated(self._basis, self._new_basis(), kind, room_bytes=room_bytes):
            return 0.0
        return self._due_mono - self._now_mono()

    def _now_mono(self) -> float:
        """The time now. Time in which this process was stopped is forgiven."""
        now_mono = clock.mono()
        self.tracker.forgive(stopped_s(self._seen_mono, self._due_mono, now_mono))
        self._seen_mono = now_mono
        return now_mono

    def _new_basis(self) -> Basis:
        return Basis(
            journal_length=self._subject.ledger.journal_bytes, progress_mono=self.tracker.progress_mono
        )

    def judge(self) -> None:
        """Make a judgement for the planner, unless it has one."""
        if self.pending is not None:
            return
        verdict, evidence = self.tracker.verdict(self._look_at_logs, self._now_mono())
        judgement = Judgement(
            lived_s=self.tracker.lived_s(),
            silent_s=self.tracker.silent_s(),
            output_bytes=self.tracker.output_bytes,
            verdict=verdict,
            # Another excuse is news too: the journal says how long each of them held.
            is_news=(verdict.kind, verdict.because) != self._last_verdict,
        )
        self.pending = Pending(judgement=judgement, evidence=evidence)

    def _look_at_logs(self) -> None:
        self._subject.ingest.measure()
        self.tracker.note_growth(self._schedule.unseen_s(clock.mono()))

    def accept(self) -> None:
        """The verdict of the pending judgement is recorded, so it is no longer new."""
        assert self.pending is not None
        verdict = self.pending.judgement.verdict
        self._last_verdict = (verdict.kind, verdict.because)
        judgement = self.pending.judgement.evolve(
            is_news=False,
            waits_for_input=self._waits_for_input(),
            last_line=self._last_line() if verdict.kind is Kind.HUNG else "",
        )
        self.pending = self.pending.evolve(judgement=judgement)

    def follow(self, again_s: float) -> None:
        """The planner found no reason to stop it: judge it again after `again_s`."""
        self.pending = None
        self._due_mono = self._now_mono() + again_s
        self._basis = self._new_basis()

    def again(self) -> None:
        """Judge it at the next plan, whatever was seen before."""
        self._due_mono = 0.0

    def note_screen(self) -> str:
        """What its last lines look like; noted, to tell an agent that waits for input from one that hangs."""
        from holdfast.watch import prompting  # few agents are ever silent for so long

        directory = self._subject.directory
        text = tail.end_text(directory.stderr, TAIL_BYTES)
        if not self._subject.adapter.capabilities.has_events:
            text = tail.end_text(directory.stdout, TAIL_BYTES) or text
        self._showings.append(prompting.showing(text))
        return str(self._showings[-1])

    def _waits_for_input(self) -> bool:
        if not self._showings:
            return False
        from holdfast.watch import prompting

        return prompting.is_waiting(self._showings)

    def _last_line(self) -> str:
        directory = self._subject.directory
        text = tail.end_text(directory.stderr, TAIL_BYTES) or tail.end_text(directory.stdout, TAIL_BYTES)
        # Redacted first: half a secret is not recognised.
        return last_line(self._subject.ledger.redact(text))
