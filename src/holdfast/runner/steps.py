"""One step of a task: from the facts alone, whoever was here before.

`Steps.step` is called again and again. Each call looks at the journal's task and at the attempt's directory, does one
thing, and says how long the runner may sleep. Nothing that decides is kept in memory, so a killed runner's successor
takes the same next step.
"""

from __future__ import annotations

import errno
import os
import signal

from holdfast import clock
from holdfast.agents import registry
from holdfast.agents.base import End
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.attempt import VOID_LIMIT, Reading
from holdfast.model.outcome import Outcome
from holdfast.model.status import Status
from holdfast.model.task import Attempt
from holdfast.runner import finish, marks, policy
from holdfast.runner.adopt import Found
from holdfast.runner.attempt import open_attempt
from holdfast.runner.ledger import Ledger
from holdfast.runner.live import Live
from holdfast.runner.policy import Decision, Then
from holdfast.runner.sweep import Sweep, as_list
from holdfast.runner.waiter import Waiter
from holdfast.store import lock as locks
from holdfast.store import process
from holdfast.watch.verdict import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter

_AT_ONCE = 0.0
#: Before another try where the machine had no process to give.
_NO_FORK_S = 1.0
#: Intents under which the outcome is ours, whatever the dying process says.
_OUTCOME_OF_INTENT = {"hang": "hung", "session": "unknown_session", "linger": None}


class Steps:
    """Takes a task forward."""

    def __init__(self, ledger: Ledger, waiter: Waiter, env: dict[str, Any]) -> None:
        self.ledger = ledger
        self.waiter = waiter
        self.env = env
        self._live: Live | None = None
        self._sweep: Sweep | None = None
        self._checked_mono = 0.0
        #: When the present wait is over on the clock that nobody sets, and which wait that is.
        self._wake_mono = 0.0
        self._wake_of: tuple[str, str | None] | None = None
        self._recorders: list[int] = []

    def step(self, ready: set[str]) -> float | None:
        """Do what is next. Returns the seconds until the next step, or None when a runner has nothing more to do."""
        task = self.ledger.task
        attempt = task.attempt
        if attempt is not None and attempt.is_open:
            return self._watch(attempt, ready)
        if attempt is not None and task.is_unsettled:
            return self._settle(attempt)
        match task.status:
            case Status.SPAWNING | Status.RUNNING:
                return self._start()
            case Status.WAITING:
                return self._sleep()
            case Status.CRASHED | Status.HUNG:
                return self._plan_again(attempt)
            case Status.COMPLETING:
                return self._complete(attempt)
            case Status.TIMEOUT:
                self.ledger.move(Status.ABANDONED, task.reason)
                return _AT_ONCE
            case Status.QUEUED | Status.INTERRUPTED:
                return None
            case Status.COMPLETED | Status.FAILED | Status.ABANDONED | Status.KILLED:
                finish.end_task(self.ledger)
                return None

    def close(self) -> None:
        """Let go of the agent; it lives on."""
        if self._live is not None:
            self._live.close()
            self._live = None

    # ── before an attempt ──

    def _start(self) -> float:
        task = self.ledger.task
        stage = task.stage
        if stage is None:
            reason = "no stage is due: name the one to run with 'holdfast retry --from'"
            self.ledger.move(Status.INTERRUPTED, reason, interrupt=reason)
            return _AT_ONCE
        self._reap_recorders()
        if task.voids_in_a_row >= VOID_LIMIT:
            reason = f"could not be started: {task.voids_in_a_row} attempts came to nothing"
            self._plan(policy.after_attempt("spawn_failed", reason, None), "spawn_failed")
            return _AT_ONCE
        adapter = self._adapter(stage)
        try:
            opened = open_attempt(self.ledger, adapter, self.env, stage)
        except OSError as error:
            attempt = task.attempt
            if error.errno in (errno.ENOSPC, errno.EDQUOT) or attempt is None or not attempt.is_open:
                raise
            # No process or descriptor to be had: the machine's fault, not the task's, and it may pass.
            reason = f"the recorder could not be forked: {error.strerror}"
            self.ledger.record(ev.AttemptVoid(attempt=attempt.number, reason=reason))
            return _NO_FORK_S
        assert task.attempt is not None
        self._recorders.append(opened.recorder_pid)
        self._live = Live(self.ledger, adapter, task.attempt, self.waiter, opened=opened)
        return _AT_ONCE

    def _reap_recorders(self) -> None:
        """A recorder that we forked is our child, and leaves when nothing of its attempt is left."""
        for pid in list(self._recorders):
            try:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    self._recorders.remove(pid)
            except ChildProcessError:
                self._recorders.remove(pid)

    def _adapter(self, stage: str) -> Adapter:
        spec = next(item for item in self.ledger.task.spec.stages if item.name == stage)
        return registry.adapter(spec.agent)

    def _sleep(self) -> float:
        task = self.ledger.task
        wake = clock.parse_iso(task.wake_at) if task.wake_at else 0.0
        left_s, now_mono = wake - clock.now(), clock.mono()
        if self._wake_of != (task.moved_at, task.wake_at):
            # A clock that was set back since must not make the wait longer than it was meant to be.
            self._wake_of = (task.moved_at, task.wake_at)
            self._wake_mono = now_mono + min(left_s, wake - clock.parse_iso(task.moved_at))
        left_s = min(left_s, self._wake_mono - now_mono)
        if left_s > 0:
            # Wall time can jump: never sleep on one look at it for longer than a minute.
            return min(left_s, 60.0)
        self.ledger.move(Status.SPAWNING, "the wait is over")
        return _AT_ONCE

    # ── while an attempt is open ──

    def _watch(self, attempt: Attempt, ready: set[str]) -> float:
        if self._live is None:
            self._live = Live(self.ledger, self._adapter(attempt.stage), attempt, self.waiter, opened=None)
        live = self._live
        if live.identity is None:
            if "started" in ready:
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
        if attempt.intent is None:
            waits.append(self._consider(live, attempt))
            if attempt.intent is not None:
                return _AT_ONCE
        waits.append(self._heartbeat())
        return min(waits)

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
        if task.status is Status.SPAWNING:
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
        failpoint("steps.started")

    def _void(self, attempt: Attempt) -> float:
        self.close()
        intent = attempt.intent
        void = ev.AttemptVoid(attempt=attempt.number, reason="its recorder was gone before the agent existed")
        if intent is None:
            self.ledger.record(void)
        else:
            decision = policy.after_attempt("void", "", intent.intent, intent.reason)
            self.ledger.record(void, self.ledger.moved(decision.status, decision.reason))
        return _AT_ONCE

    def _consider(self, live: Live, attempt: Attempt) -> float:
        """Is there a reason to stop it? Journals the intent; the signals come with the next step."""
        task = self.ledger.task
        if task.deadline_s is not None:
            left_s = task.deadline_s - task.active_s - live.lived_s()
            if left_s <= 0:
                self._intend(attempt, "deadline", f"its deadline of {clock.words(task.deadline_s)} is over")
                return _AT_ONCE
        else:
            left_s = 3600.0
        limit = task.spec.limits.output_bytes
        if limit and live.ingest.raw_bytes() > limit:
            self._intend(attempt, "output", f"it printed more than {limit} bytes")
            return _AT_ONCE
        spent = policy.budget_reached(task.total_usage, task.turns, task.spec.limits)
        if spent is not None and attempt.result is None:
            self._intend(attempt, "budget", spent)
            return _AT_ONCE
        if attempt.mode == "resume" and attempt.session_id != attempt.asked_session_id:
            asked = f"session {attempt.asked_session_id} was asked for, {attempt.session_id} came back"
            self._intend(attempt, "session", asked)
            return _AT_ONCE
        verdict, evidence, is_news = live.verdict()
        if is_news:
            self.ledger.seen["verdict"] = verdict.kind
        if verdict.kind is Kind.HUNG or (is_news and verdict.kind in (Kind.QUIET, Kind.EXCUSED)):
            facts = verdict.to_evidence(evidence, clock.mono())
            self.ledger.record(
                ev.WatchVerdict(
                    attempt=attempt.number, verdict=verdict.kind, because=verdict.because, evidence=facts
                )
            )
        if verdict.kind is Kind.HUNG:
            self._intend(attempt, "hang", verdict.because)
        elif verdict.kind is Kind.LINGERING:
            self._intend(attempt, "linger", verdict.because)
        return min(left_s, max(0.0, verdict.look_again_mono - clock.mono()))

    def _intend(self, attempt: Attempt, intent: str, reason: str) -> None:
        self.ledger.record(ev.StopIntended(attempt=attempt.number, intent=intent, reason=reason))
        failpoint("steps.intended")

    def _heartbeat(self) -> float:
        """Once per base interval the manifest says that somebody looked."""
        interval_s = self.ledger.task.spec.limits.base_interval_s
        now_mono = clock.mono()
        if now_mono - self._checked_mono >= interval_s:
            self._checked_mono = now_mono
            self.ledger.seen["last_checked_at"] = clock.iso_now()
            self.ledger.show()
            self._heed_mark()
            self._reap_recorders()
        return self._checked_mono + interval_s - now_mono

    def _heed_mark(self) -> None:
        """A file asks for a person: stop the agent cleanly, unless it is being stopped."""
        attempt = self.ledger.task.attempt
        mark = marks.find(self.ledger.packet)
        if mark is not None and attempt is not None and attempt.is_open and attempt.intent is None:
            self._intend(attempt, "interrupt", self.ledger.redact(mark))

    # ── after an attempt ──

    def _end(self, live: Live, attempt: Attempt, found: Found) -> float:
        live.ingest.take(final=True)
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
            was_healthy=policy.was_healthy(
                lived_s, self.ledger.task.spec.limits, made_progress=made_progress
            ),
        )
        failpoint("steps.before_ended")
        self.ledger.record(ended)
        failpoint("steps.ended")
        self.close()
        return _AT_ONCE

    def _outcome(self, live: Live, attempt: Attempt, found: Found) -> Outcome:
        exit_record, intent = found.exit, attempt.intent
        if exit_record is not None and exit_record.exec_errno is not None:
            detail = f"{os.strerror(exit_record.exec_errno)} (errno {exit_record.exec_errno})"
            return Outcome(kind="spawn_failed", detail=detail)
        if intent is not None and intent.intent == "hang" and _was_limited(attempt):
            return Outcome(kind="rate_limit", detail="it went silent at a limit of the service")
        if intent is not None and _OUTCOME_OF_INTENT.get(intent.intent, "stopped") is not None:
            return Outcome(
                kind=_OUTCOME_OF_INTENT.get(intent.intent, "stopped") or "stopped", detail=intent.reason
            )
        if exit_record is None:
            return Outcome(kind="lost", detail="recorder and runner were gone when it ended")
        # Redacted first: an adapter cuts a few words out of it, and half a secret looks like none.
        stderr_tail = self.ledger.redact(live.stderr_tail())
        end = End(exit=exit_record, stderr_tail=stderr_tail, is_torn=live.ingest.is_torn)
        return live.adapter.classify(end, attempt)

    def _settle(self, attempt: Attempt) -> float:
        """The attempt ended: decide what follows, once everything it left running is dealt with."""
        ended, intent = attempt.ended, attempt.intent
        assert ended is not None
        decision = policy.after_attempt(
            ended.outcome, ended.detail, intent.intent if intent else None, intent.reason if intent else ""
        )
        decision = self._with_advice(decision, attempt)
        mark = marks.find(self.ledger.packet) if decision.then in (Then.COMPLETE, Then.RETRY) else None
        if mark is not None:
            # It asked for a person and left: what it did is kept, and nothing goes on without an answer.
            decision = Decision(then=Then.INTERRUPT, status=Status.INTERRUPTED, reason=mark)
        if decision.then is Then.COMPLETE:
            if attempt.leftovers is None:
                again = self._deal_with_leftovers(attempt)
                if again is not None:
                    return again
            finish.write_attempt(self.ledger, attempt)
            failpoint("steps.succeeded")
            self.ledger.move(Status.COMPLETING, decision.reason)
            self._dismiss_recorder(attempt)
            return _AT_ONCE
        if attempt.swept is None:
            again = self._sweep_up(attempt)
            if again is not None:
                return again
        finish.write_attempt(self.ledger, attempt)
        failpoint("steps.swept")
        self._follow(decision, attempt)
        return _AT_ONCE

    def _with_advice(self, decision: Decision, attempt: Attempt) -> Decision:
        """What only the task's history or the adapter knows."""
        assert attempt.ended is not None
        task = self.ledger.task
        if attempt.ended.outcome == "context_too_long" and task.overflows > 1:
            reason = f"{decision.reason}; a fresh session ran out of room too: split the task"
            return Decision(then=Then.INTERRUPT, status=Status.INTERRUPTED, reason=reason)
        if attempt.ended.outcome in ("auth", "no_auth"):
            login = self._adapter(attempt.stage).capabilities.login
            reason = f"{decision.reason}; log in with '{login}', then 'holdfast resume {task.spec.task_id}'"
            return decision.evolve(reason=reason) if login else decision
        return decision

    def _follow(self, decision: Decision, attempt: Attempt) -> None:
        assert attempt.ended is not None
        match decision.then:
            case Then.RETRY if attempt.swept is not None and not attempt.swept.proof.startswith("none"):
                self.ledger.move(
                    Status.INTERRUPTED,
                    decision.reason,
                    interrupt=f"the last attempt left processes that cannot be killed: {attempt.swept.proof}",
                )
            case Then.RETRY:
                self._plan(decision, attempt.ended.outcome)
            case Then.WAIT:
                resets_at = attempt.ended.resets_at
                announced_s = clock.parse_iso(resets_at) - clock.now() if resets_at else None
                pause_s = policy.wait_s(self.ledger.task.waits, announced_s, jitter=os.urandom(1)[0] / 255)
                wake_at = clock.iso(clock.now() + pause_s)
                self.ledger.record(self.ledger.moved(Status.WAITING, decision.reason, wake_at=wake_at))
            case Then.INTERRUPT:
                self.ledger.move(Status.INTERRUPTED, decision.reason, interrupt=decision.reason)
            case Then.END | Then.COMPLETE:
                self.ledger.move(decision.status, decision.reason)

    def _plan(self, decision: Decision, outcome: str) -> None:
        """Count the failure and plan the next attempt, in one record: crashed → spawning, waiting, or an end."""
        task = self.ledger.task
        passing = self.ledger.moved(decision.status, decision.reason)
        limits = task.spec.limits
        if decision.burns and not policy.has_retry_left(task.total_retries, limits):
            end = Status.FAILED if outcome == "spawn_failed" else Status.ABANDONED
            reason = f"all {limits.max_retries} retries are used up; the last failure: {decision.reason}"
            self.ledger.record(passing, self.ledger.moved(end, reason, old=decision.status))
            return
        left_s = None if task.deadline_s is None else task.deadline_s - task.active_s
        if left_s is not None and left_s <= 0:
            reason = f"its deadline is over; the last failure: {decision.reason}"
            self.ledger.record(passing, self.ledger.moved(Status.ABANDONED, reason, old=decision.status))
            return
        burned = 1 if decision.burns else 0
        consecutive = task.consecutive + burned
        delay_s = policy.backoff_s(consecutive, limits, left_s, at_once=outcome != "spawn_failed")
        planned = ev.RetryPlanned(
            stage=task.stage or "",
            consecutive=consecutive,
            total=task.total_retries + burned,
            delay_s=delay_s,
            burned=decision.burns,
            fresh_session=decision.fresh_session,
        )
        self.ledger.record(passing, planned, self._onward(decision.status, delay_s, decision.reason))

    def _onward(self, old: Status, delay_s: float, reason: str) -> ev.TaskMoved:
        if delay_s <= 0:
            return self.ledger.moved(Status.SPAWNING, f"resume after {reason}", old=old)
        wake_at = clock.iso(clock.now() + delay_s)
        return self.ledger.moved(Status.WAITING, f"backoff after {reason}", old=old, wake_at=wake_at)

    def _plan_again(self, attempt: Attempt | None) -> float:
        """The record of `_plan` was torn: do the rest of it."""
        task = self.ledger.task
        if attempt is not None and task.planned_for == attempt.number:
            self.ledger.record(self._onward(task.status, task.planned_delay_s, task.reason))
            return _AT_ONCE
        delay_s = policy.backoff_s(task.consecutive + 1, task.spec.limits, None, at_once=False)
        planned = ev.RetryPlanned(
            stage=task.stage or "",
            consecutive=task.consecutive + 1,
            total=task.total_retries + 1,
            delay_s=delay_s,
        )
        self.ledger.record(planned, self._onward(task.status, delay_s, task.reason))
        return _AT_ONCE

    def _complete(self, attempt: Attempt | None) -> float:
        task = self.ledger.task
        if attempt is not None:
            self._dismiss_recorder(attempt)  # once more: we may be the successor of one who could not
        if attempt is not None and attempt.stage not in task.stages_done:
            if not finish.pass_gate(self.ledger, attempt):
                self.ledger.move(Status.FAILED, f"the gate of {attempt.stage} did not pass")
                return _AT_ONCE
            failpoint("steps.stage_done")
        if task.stage is not None:
            self.ledger.move(Status.SPAWNING, f"next is {task.stage}")
        else:
            self.ledger.move(Status.COMPLETED, task.reason)
        return _AT_ONCE

    # ── processes that are left ──

    def _new_sweep(self, attempt: Attempt) -> Sweep:
        directory = self.ledger.packet.attempt(attempt.dirname)
        held = locks.is_held(directory.lock)
        owner = locks.owner(directory.lock)
        known = attempt.ended is not None and attempt.ended.by != "nobody"
        return Sweep(directory.path, owner.pid if held and owner else None, tree_known=known)

    def _sweep_up(self, attempt: Attempt) -> float | None:
        """Kill what is left. Returns when to look again, None when it is done."""
        if self._sweep is None:
            self._sweep = self._new_sweep(attempt)
        again = self._sweep.step()
        if again is not None:
            return again
        sweep, self._sweep = self._sweep, None
        self.ledger.record(
            ev.AttemptSwept(
                attempt=attempt.number,
                killed=as_list(sweep.killed, self.ledger.redact),
                spared=as_list(sweep.spared, self.ledger.redact),
                proof=sweep.proof,
            )
        )
        return None

    def _deal_with_leftovers(self, attempt: Attempt) -> float | None:
        """After success: report, kill or keep what lives on."""
        policy_name = self.ledger.task.spec.leftovers
        if policy_name == "kill":
            return None if attempt.swept is not None else self._sweep_up(attempt)
        if policy_name == "report":
            found = {found.pid: process.command_line(found.pid) for found in self._new_sweep(attempt).find()}
            if found:
                listed = as_list(found, self.ledger.redact)
                self.ledger.record(
                    ev.LeftoversFound(attempt=attempt.number, processes=listed, policy=policy_name)
                )
        return None

    def _dismiss_recorder(self, attempt: Attempt) -> None:
        """It may leave now: whoever lives on after a success does so without it."""
        directory = self.ledger.packet.attempt(attempt.dirname)
        if locks.is_held(directory.lock):
            owner = locks.owner(directory.lock)
            if owner is not None:
                process.send(owner, signal.SIGTERM)


def _was_limited(attempt: Attempt) -> bool:
    """Its last word was about a limit: some programs then wait for hours without another."""
    return attempt.rate_limit is not None or (attempt.retry is not None and "429" in attempt.retry.reason)


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
