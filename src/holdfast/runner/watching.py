"""While attempts are open: await their start, watch them, stop them, and take down how they ended.

Several may be open at once, where a group of stages runs side by side. Each is looked at with every step, and none waits for
another.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.agents import endings, registry
from holdfast.agents.base import End
from holdfast.errors import LockHeld
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.attempt_table import Reading
from holdfast.model.outcome import Outcome
from holdfast.model.status import Status
from holdfast.runner.attempt import session_lock as session_locks
from holdfast.runner.attempt.live import Live
from holdfast.runner.attempt.open import Opened
from holdfast.runner.attempt.reading import Found
from holdfast.runner.ledger import Ledger
from holdfast.runner.loop.waiter import Waiter
from holdfast.runner.output.position import Position
from holdfast.runner.people import marks, work_item
from holdfast.runner.plan import limits, policy
from holdfast.store.lock import Lock
from holdfast.watch.verdict import Kind

_AT_ONCE = 0.0
#: An agent that sits out a limit is stopped where the limit holds for longer than this, once it has been silent a moment.
_LIMIT_AHEAD_S, _LIMIT_SILENCE_S = 120.0, 10.0
#: Intents under which the outcome is ours, whatever the dying process says.
_OUTCOME_OF_INTENT = {"hang": "hung", "session": "unknown_session", "timeout": "timeout", "linger": None}


class Watching:
    """The open attempts of a task, as one runner sees them."""

    def __init__(self, ledger: Ledger, waiter: Waiter) -> None:
        self.ledger = ledger
        self.waiter = waiter
        self._lives: dict[int, Live] = {}
        self._position: Position | None = None
        self._checked_mono = 0.0
        #: Of sessions that were named by the agent itself, after its recorder was forked without their lock.
        self._session_locks: dict[int, Lock | None] = {}

    def begin(self, attempt: Attempt, opened: Opened | None) -> Live:
        """Watch an attempt: one that was just forked, or one that another runner left."""
        if self._position is None:
            self._position = Position(self.ledger.packet)
        adapter = registry.adapter(attempt.agent)
        live = Live(self.ledger, adapter, attempt, self.waiter, position=self._position, opened=opened)
        self._lives[attempt.number] = live
        return live

    def step(self, ready: set[str]) -> float:
        """Look at each of them. Returns the seconds until the next look."""
        return min(self._watch(attempt, ready) for attempt in self.ledger.task.open_attempts)

    def close(self) -> None:
        """Let go of the agents; they live on."""
        for number in list(self._lives):
            self._let_go(number)
        if self._position is not None:
            self._position.close()
            self._position = None

    def _let_go(self, number: int) -> None:
        live = self._lives.pop(number, None)
        if live is not None:
            live.close()
        lock = self._session_locks.pop(number, None)
        if lock is not None:
            lock.release()

    def _watch(self, attempt: Attempt, ready: set[str]) -> float:
        live = self._lives.get(attempt.number) or self.begin(attempt, None)
        if live.end is not None:
            return self._end(live, attempt, live.end)
        if live.identity is None:
            if live.has_news_of_start(ready):
                live.forget_start()
            return self._await_start(live, attempt)
        if live.has_died(ready):
            found = live.look()
            if found.exit is not None or found.reading in (Reading.ORPHANED, Reading.NEVER_STARTED):
                return self._end(live, attempt, found)
            return live.await_record()
        # A stop goes before everything that could fail.
        waits = [live.stop()] if attempt.intent is not None else []
        waits += [live.take(ready), live.ask_again_s]
        self._lock_session(attempt)
        if attempt.intent is None:
            left_s = live.left_to_think_s(ready)
            waits.append(left_s or live.think_again_in(self._consider(live, attempt)))
            if attempt.intent is not None:
                return _AT_ONCE
        waits.append(self._heartbeat())
        return min(waits)

    def _lock_session(self, attempt: Attempt) -> None:
        """Where the program chose the session's id, its recorder could not be given the lock: hold it here."""
        if attempt.asked_session_id is not None or attempt.session_id is None:
            return
        if attempt.number not in self._session_locks:
            self._session_locks[attempt.number] = None
            try:
                self._session_locks[attempt.number] = session_locks.take(
                    self.ledger, attempt.agent, attempt.session_id, within_s=0.0
                )
            except LockHeld:
                return  # an agent made it just now: nobody but its own earlier runner can have it, and that is leaving

    # ── its start ──

    def _await_start(self, live: Live, attempt: Attempt) -> float:
        found = live.look()
        match found.reading:
            case Reading.STARTING:
                return live.await_record()
            case Reading.NEVER_STARTED:
                return self._void(attempt)
            case Reading.SPAWN_FAILED if found.exit is not None and found.exit.exec_errno is None:
                # Killed before it became the agent: nothing ran, and nothing failed.
                return self._void(attempt)
            case Reading.SPAWN_FAILED:
                return self._end(live, attempt, found)
            case Reading.RUNNING | Reading.ORPHANED | Reading.EXITED:
                self._record_start(attempt, found)
        if found.exit is not None:
            return self._end(live, attempt, found)
        assert found.identity is not None
        live.begin(found.identity)
        return _AT_ONCE

    def _record_start(self, attempt: Attempt, found: Found) -> None:
        task, born = self.ledger.task, found.born
        events: list[ev.Event] = []
        if attempt.started is None and born is not None:
            events.append(
                ev.AttemptStarted(
                    attempt=attempt.number,
                    pid=born["pid"],
                    boot_id=born["boot_id"],
                    start_time=born["start_time"],
                    mono_s=born["mono_s"],
                    started_at=born["started_at"],
                )
            )
        if task.status is Status.SPAWNING and attempt.kind == "agent":
            events.append(self.ledger.moved(Status.RUNNING, f"attempt {attempt.number}"))
        if task.deadline_s is not None:
            already_s = clock.mono() - born["mono_s"] if born is not None else 0.0
            left_s = task.deadline_s - task.active_s - max(0.0, already_s)
            self.ledger.seen["deadline_at"] = clock.iso(clock.now() + left_s)
        if found.reading is not Reading.ORPHANED:
            # Of one that is gone, the last time that somebody saw it alive still stands.
            self.ledger.seen["last_checked_at"] = clock.iso_now()
        if events:
            self.ledger.record(*events)
        failpoint("watching.started")
        if attempt.kind == "agent":
            work_item.assign(self.ledger, attempt)

    def _void(self, attempt: Attempt) -> float:
        self._let_go(attempt.number)
        intent = attempt.intent
        void = ev.AttemptVoid(attempt=attempt.number, reason="its recorder was gone before the agent existed")
        if intent is None:
            self.ledger.record(void)
            return _AT_ONCE
        others = [
            other for other in self.ledger.task.current if other is not attempt and not other.is_settled
        ]
        if others:
            # What was meant for it is left to those who are still there, or whose end was not dealt with.
            told = [intent.evolve(attempt=other.number) for other in others if other.intent is None]
            self.ledger.record(void, *told)
            return _AT_ONCE
        decision = policy.after_attempt("void", intent=intent.intent, intent_reason=intent.reason)
        interrupt = decision.reason if decision.status is Status.INTERRUPTED else None
        self.ledger.record(void, self.ledger.moved(decision.status, decision.reason, interrupt=interrupt))
        return _AT_ONCE

    # ── its life ──

    def _consider(self, live: Live, attempt: Attempt) -> float:
        """Is there a reason to stop it? Journals the intent; the signals come with the next step."""
        task = self.ledger.task
        over = limits.reached(task, attempt, lived_s=live.lived_s(), raw_bytes=live.ingest.raw_bytes())
        if over is not None:
            self._intend(attempt, over.intent, over.reason)
            return _AT_ONCE
        if attempt.mode == "resume" and attempt.session_id != attempt.asked_session_id:
            asked = f"session {attempt.asked_session_id} was asked for, {attempt.session_id} came back"
            self._intend(attempt, "session", asked)
            return _AT_ONCE
        if self._waits_at_limit(attempt) and live.silent_s() >= _LIMIT_SILENCE_S:
            self._intend(attempt, "limit", "it waits at a limit of the service")
            return _AT_ONCE
        verdict, evidence, is_news = live.verdict()
        if is_news:
            self.ledger.seen["verdict"] = verdict.kind
        if verdict.kind is Kind.HUNG or (is_news and verdict.kind in (Kind.QUIET, Kind.EXCUSED)):
            facts = verdict.to_evidence(evidence, clock.mono())
            if verdict.kind is not Kind.EXCUSED:
                facts["pane_state"] = live.showing()
            self.ledger.record(
                ev.WatchVerdict(
                    attempt=attempt.number, verdict=verdict.kind, because=verdict.because, evidence=facts
                )
            )
        if verdict.kind is Kind.HUNG and live.waits_for_input:
            self._intend(attempt, "input", f"it waits for input: {live.last_line()}")
        elif verdict.kind is Kind.HUNG:
            self._intend(attempt, "hang", verdict.because)
        elif verdict.kind is Kind.LINGERING:
            self._intend(attempt, "linger", verdict.because)
        left_s = limits.left_s(task, attempt, live.lived_s())
        return min(left_s, max(0.0, verdict.look_again_mono - clock.mono()))

    def _waits_at_limit(self, attempt: Attempt) -> bool:
        """It said when the limit is lifted, and that is far away: the task can wait without it, and without its slot."""
        limit = attempt.rate_limit
        if not attempt.is_limited or limit is None or limit.resets_at is None or attempt.result is not None:
            return False
        return clock.parse_iso(limit.resets_at) - clock.now() > _LIMIT_AHEAD_S

    def _intend(self, attempt: Attempt, intent: str, reason: str) -> None:
        self.ledger.record(ev.StopIntended(attempt=attempt.number, intent=intent, reason=reason))
        failpoint("watching.intended")

    def _heartbeat(self) -> float:
        """Once per base interval the manifest says that somebody looked."""
        interval_s = self.ledger.task.spec.limits.base_interval_s
        now_mono = clock.mono()
        if now_mono - self._checked_mono >= interval_s:
            self._checked_mono = now_mono
            self.ledger.seen["last_checked_at"] = clock.iso_now()
            work_item.look(self.ledger)
            self.ledger.beat()
            self._heed_mark()
        return self._checked_mono + interval_s - now_mono

    def _heed_mark(self) -> None:
        """A file asks for a person: stop the agents cleanly, unless they are being stopped."""
        mark = marks.find(self.ledger.packet, self.ledger.redact, self.ledger.task.spec.interrupt_off)
        if mark is None:
            return
        for attempt in self.ledger.task.open_attempts:
            if attempt.intent is None:
                self._intend(attempt, "interrupt", mark)

    # ── its end ──

    def _end(self, live: Live, attempt: Attempt, found: Found) -> float:
        live.end = found
        # A log can be gigabytes, and whoever has a request does not wait for its last line.
        if live.ingest.take(final=True):
            return _AT_ONCE
        outcome = self._outcome(live, attempt, found)
        lived_s = _lived_s(attempt, found, live.directory.stdout, self.ledger.seen.get("last_checked_at"))
        made_progress = live.ingest.raw_bytes() > 0
        exit_record = found.exit
        ended = ev.AttemptEnded(
            attempt=attempt.number,
            outcome=outcome.kind,
            detail=self.ledger.redact(outcome.detail) if outcome.detail else "",
            exit_code=exit_record.exit_code if exit_record else None,
            exit_signal=exit_record.exit_signal if exit_record else None,
            exec_errno=exit_record.exec_errno if exit_record else None,
            by=exit_record.by if exit_record else "nobody",
            lived_s=round(lived_s, 3),
            noticed_at=clock.iso(live.noticed_at or clock.now()),
            resets_at=outcome.resets_at,
            resumable=outcome.resumable,
            was_healthy=policy.was_healthy(
                lived_s, self.ledger.task.spec.limits, made_progress=made_progress
            ),
        )
        failpoint("watching.before_ended")
        self.ledger.record(ended)
        failpoint("watching.ended")
        self._let_go(attempt.number)
        if self._position is not None:
            self._position.end(attempt.number)
        return _AT_ONCE

    def _outcome(self, live: Live, attempt: Attempt, found: Found) -> Outcome:
        exit_record, intent = found.exit, attempt.intent_name
        if exit_record is not None and exit_record.exec_errno is not None:
            detail = f"{os.strerror(exit_record.exec_errno)} (errno {exit_record.exec_errno})"
            return Outcome(kind="spawn_failed", detail=detail)
        said = self._classified(live, attempt, found)
        if intent == "limit" or (intent == "hang" and attempt.is_limited):
            resets_at = attempt.rate_limit.resets_at if attempt.rate_limit is not None else None
            detail = "it waited at a limit of the service"
            return said.evolve(kind="rate_limit", detail=detail, resets_at=resets_at)
        if (
            attempt.intent is not None
            and not _ended_before(attempt.intended_at, found)
            and _OUTCOME_OF_INTENT.get(attempt.intent.intent, "stopped") is not None
        ):
            kind = _OUTCOME_OF_INTENT.get(attempt.intent.intent, "stopped") or "stopped"
            return Outcome(kind=kind, detail=attempt.intent.reason, resumable=said.resumable)
        return said

    def _classified(self, live: Live, attempt: Attempt, found: Found) -> Outcome:
        """What the adapter makes of its end, whoever stopped it."""
        if found.exit is None:
            return Outcome(kind="lost", detail="recorder and runner were gone when it ended")
        stderr_tail = live.stderr_tail()
        end = End(exit=found.exit, stderr_tail=stderr_tail, is_torn=live.ingest.is_torn)
        said = live.adapter.classify(end, attempt)
        # Of a plain command, that it failed quickly says nothing by itself.
        is_telling = bool(live.adapter.capabilities.program or stderr_tail.strip())
        return endings.early(said, live.lived_s(), stderr_tail) if is_telling else said


def _ended_before(intended_at: str, found: Found) -> bool:
    """Whether the agent was gone before anybody wanted to stop it; in the same millisecond it was not."""
    return found.exit is not None and found.exit.at < intended_at


def _lived_s(attempt: Attempt, found: Found, stdout: str, checked_at: str | None) -> float:
    started, exit_record = attempt.started, found.exit
    if started is None:
        return 0.0
    if exit_record is not None and exit_record.boot_id == started.boot_id:
        return max(0.0, exit_record.mono_s - started.mono_s)
    # Lost, or over a reboot: it lived at least until its last word, or until somebody last saw it.
    last = clock.parse_iso(checked_at) if checked_at else 0.0
    try:
        last = max(last, os.stat(stdout).st_mtime)
    except FileNotFoundError:
        pass
    return max(0.0, last - clock.parse_iso(started.started_at))
