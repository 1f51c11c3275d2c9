"""After attempts ended: clean up behind them, and do what follows.

The attempts of one wave are settled together. Where some succeeded and some did not, the gates of the good ones come first
(`completing`), and what the others need comes behind.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.agents import registry
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.status import Status
from holdfast.runner.attempt.sweep import Sweep, as_list
from holdfast.runner.ledger import Ledger
from holdfast.runner.people import marks
from holdfast.runner.plan import policy
from holdfast.runner.plan.policy import Decision, Then
from holdfast.runner.stage import finish
from holdfast.store import lock as locks
from holdfast.store import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # in C: it is loaded before an agent starts

_AT_ONCE = 0.0
#: Intents under which nothing more is done for the task, whatever else succeeded.
_FULL_STOP = frozenset({"stop", "deadline"})


class Settling:
    """Deals with the ends of attempts."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._sweeps: dict[int, Sweep] = {}

    def step(self) -> float:
        """All attempts of the wave have ended: decide what follows, once everything they left running is dealt with."""
        wave = self.ledger.task.current
        decided = [(attempt, self.decide(attempt)) for attempt in wave]
        for attempt, decision in decided:
            again = self._clean_up(attempt, decision)
            if again is not None:
                return again
            if self.ledger.task.spec.pipeline is not None:
                from holdfast.runner.stage import outputs  # only pipelines pay for the import

                outputs.write(self.ledger, attempt)
            finish.write_attempt(self.ledger, attempt)
        good = [attempt for attempt, decision in decided if decision.then is Then.COMPLETE]
        is_over = any(attempt.intent_name in _FULL_STOP for attempt in wave)
        if good and not is_over:
            failpoint("settling.succeeded")
            ended = good[-1].ended
            reason = ended.outcome if ended is not None and len(good) == len(wave) else _some(good, wave)
            self.ledger.move(Status.COMPLETING, reason)
            for attempt in good:
                self.dismiss_recorder(attempt)
            return _AT_ONCE
        failpoint("settling.swept")
        for attempt in wave:
            # Its session's lock must be free for the next attempt, whoever else lives on below it.
            self.dismiss_recorder(attempt)
        self.follow_failures([pair for pair in decided if pair[0] not in good or is_over])
        return _AT_ONCE

    # ── decisions ──

    def decide(self, attempt: Attempt) -> Decision:
        """What follows from the end of one attempt."""
        ended = attempt.ended
        assert ended is not None
        intent = attempt.intent
        decision = policy.after_attempt(
            ended.outcome,
            ended.detail,
            intent=attempt.intent_name,
            intent_reason=intent.reason if intent else "",
        )
        decision = policy.at_limit(decision, attempt.intent_name, self.ledger.task.spec.limits)
        decision = self._with_advice(decision, attempt)
        mark = (
            marks.find(self.ledger.packet, self.ledger.redact, self.ledger.task.spec.interrupt_off)
            if decision.then in (Then.COMPLETE, Then.RETRY)
            else None
        )
        if mark is not None:
            # It asked for a person and left: what it did is kept, and nothing goes on without an answer.
            return Decision(then=Then.INTERRUPT, status=Status.INTERRUPTED, reason=mark)
        if self.ledger.task.spec.pipeline is not None:
            from holdfast.runner import failures  # only pipelines pay for the import

            decision = failures.judge_attempt(self.ledger, attempt, decision)
        why = policy.condition(attempt.intent_name, ended.outcome)
        return policy.unasked(decision, why, self.ledger.task.spec.interrupt_off)

    def _with_advice(self, decision: Decision, attempt: Attempt) -> Decision:
        """What only the task's history or the adapter knows."""
        assert attempt.ended is not None
        task = self.ledger.task
        if attempt.ended.outcome == "context_too_long" and task.stage_state(attempt.stage).overflows > 1:
            reason = f"{decision.reason}; a fresh session ran out of room too: split the task"
            return Decision(then=Then.INTERRUPT, status=Status.INTERRUPTED, reason=reason)
        if attempt.ended.outcome in ("auth", "no_auth"):
            login = registry.adapter(attempt.agent).capabilities.login
            reason = f"{decision.reason}; log in with '{login}', then 'holdfast resume {task.spec.task_id}'"
            return decision.evolve(reason=reason) if login else decision
        return decision

    def follow_failures(self, decided: list[tuple[Attempt, Decision]]) -> None:
        """Do what the gravest of them asks for."""
        attempt, decision = max(decided, key=lambda pair: policy.gravity(pair[1]))
        others = [other for other in decided if other[0] is not attempt]
        if decision.then is not Then.RETRY:
            self._note_fresh(others)
        self._follow(decision, attempt, others)

    def _note_fresh(self, others: list[tuple[Attempt, Decision]]) -> None:
        """Whatever the gravest asks for, a session that cannot go on is not resumed later."""
        task = self.ledger.task
        for other, its in others:
            if its.fresh_session:
                self.ledger.record(
                    ev.RetryPlanned(
                        stage=other.stage,
                        consecutive=task.consecutive,
                        total=task.total_retries,
                        delay_s=0.0,
                        burned=False,
                        fresh_session=True,
                    )
                )

    def _follow(self, decision: Decision, attempt: Attempt, others: list[tuple[Attempt, Decision]]) -> None:
        assert attempt.ended is not None
        if self._hand_over(decision, attempt):
            return
        match decision.then:
            case Then.RETRY if attempt.swept is not None and not attempt.swept.proof.startswith("none"):
                proof = f"the last attempt left processes that cannot be killed: {attempt.swept.proof}"
                self.ledger.move(Status.INTERRUPTED, decision.reason, interrupt=proof)
            case Then.RETRY:
                self.plan(decision, attempt.ended.outcome, attempt.stage, others)
            case Then.WAIT:
                self._wait(decision, attempt)
            case Then.INTERRUPT:
                self.ledger.move(Status.INTERRUPTED, decision.reason, interrupt=decision.reason)
            case Then.END | Then.COMPLETE:
                self.ledger.move(decision.status, decision.reason)

    def _wait(self, decision: Decision, attempt: Attempt) -> None:
        assert attempt.ended is not None
        resets_at = attempt.ended.resets_at
        announced_s = clock.parse_iso(resets_at) - clock.now() if resets_at else None
        pause_s = policy.wait_s(self.ledger.task.waits, announced_s, jitter=os.urandom(1)[0] / 255)
        # Another agent may be back sooner.
        times = [clock.now() + pause_s]
        task = self.ledger.task
        own = next((stage.agent for stage in task.spec.stages if stage.name == attempt.stage), attempt.agent)
        for agent in (own, *task.spec.failover):
            until = task.stage_state(attempt.stage).unavailable.get(agent) if agent != attempt.agent else None
            times += [clock.parse_iso(until)] if until is not None else []
        wake_at = clock.iso(min(times))
        self.ledger.record(self.ledger.moved(Status.WAITING, decision.reason, wake_at=wake_at))

    def _hand_over(self, decision: Decision, attempt: Attempt) -> bool:
        """Let another agent take over, where this one is out and the task names one that is not."""
        task, ended = self.ledger.task, attempt.ended
        stage_state = task.stage_state(attempt.stage)
        if attempt.intent is not None and attempt.intent_name not in ("hang", "limit"):
            return False  # somebody wants it stopped, and no other agent either
        if ended is None or not task.spec.failover or attempt.agent not in stage_state.unavailable:
            return False
        stage = next(stage for stage in task.spec.stages if stage.name == attempt.stage)
        new = policy.available((stage.agent, *task.spec.failover), stage_state.unavailable, clock.now())
        if new is None or new == attempt.agent:
            return False
        reason = f"{attempt.agent}: {decision.reason}"
        switched = ev.AgentSwitched(stage=attempt.stage, old=attempt.agent, new=new, reason=reason)
        passing = self.ledger.moved(Status.WAITING, reason, wake_at=clock.iso_now())
        onward = self.ledger.moved(Status.SPAWNING, f"{new} takes over", old=Status.WAITING)
        self.ledger.record(switched, passing, onward)
        return True

    # ── retries ──

    def plan(
        self,
        decision: Decision,
        outcome: str,
        stage: str,
        others: list[tuple[Attempt, Decision]] | None = None,
    ) -> None:
        """Count the failure and plan the next attempt, in one record: crashed → spawning, waiting, or an end."""
        task = self.ledger.task
        # From `completing` the way to the next attempt is straight.
        passes = task.status is not Status.COMPLETING
        passing = [self.ledger.moved(decision.status, decision.reason)] if passes else []
        old = decision.status if passes else task.status
        limits = task.spec.limits
        if decision.burns and not policy.has_retry_left(task.total_retries, limits):
            end = Status.FAILED if outcome == "spawn_failed" else Status.ABANDONED
            reason = f"{_used_up(limits.max_retries)}; the last failure: {decision.reason}"
            self.ledger.record(*passing, self.ledger.moved(end, reason, old=old))
            return
        left_s = None if task.deadline_s is None else task.deadline_s - task.active_s
        if left_s is not None and left_s <= 0:
            reason = f"its deadline is over; the last failure: {decision.reason}"
            self.ledger.record(*passing, self.ledger.moved(Status.ABANDONED, reason, old=old))
            return
        burned = 1 if decision.burns else 0
        consecutive = task.consecutive + burned
        delay_s = policy.backoff_s(consecutive, limits, left_s, at_once=outcome != "spawn_failed")
        delay_s = max(delay_s, min(decision.pause_s, limits.base_interval_s))
        planned = ev.RetryPlanned(
            stage=stage,
            consecutive=consecutive,
            total=task.total_retries + burned,
            delay_s=delay_s,
            burned=decision.burns,
            fresh_session=decision.fresh_session,
        )
        fresh = [
            planned.evolve(stage=other.stage, burned=False, fresh_session=True)
            for other, its in others or ()
            if its.fresh_session
        ]
        self.ledger.record(*passing, *fresh, planned, self._onward(old, delay_s, decision.reason))

    def _onward(self, old: Status, delay_s: float, reason: str) -> ev.TaskMoved:
        if delay_s <= 0 or old is Status.TIMEOUT:
            return self.ledger.moved(Status.SPAWNING, f"resume after {reason}", old=old)
        wake_at = clock.iso(clock.now() + delay_s)
        return self.ledger.moved(Status.WAITING, f"backoff after {reason}", old=old, wake_at=wake_at)

    def plan_again(self) -> float:
        """The record of `plan` was torn: do the rest of it."""
        task, attempt = self.ledger.task, self.ledger.task.attempt
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

    # ── processes that are left ──

    def _clean_up(self, attempt: Attempt, decision: Decision) -> float | None:
        """Deal with what an attempt left running. Returns when to look again, None when it is done."""
        if decision.then is Then.COMPLETE:
            return None if attempt.leftovers is not None else self._deal_with_leftovers(attempt)
        return None if attempt.swept is not None else self.sweep_up(attempt)

    def _new_sweep(self, attempt: Attempt) -> Sweep:
        directory = self.ledger.packet.attempt(attempt.dirname)
        held = locks.is_held(directory.lock)
        owner = locks.owner(directory.lock)
        known = attempt.ended is not None and attempt.ended.by != "nobody"
        recorder = owner.pid if held and owner else None
        return Sweep(directory.path, recorder, attempt_id=attempt.attempt_id, tree_known=known)

    def sweep_up(self, attempt: Attempt) -> float | None:
        """Kill what is left. Returns when to look again, None when it is done."""
        if attempt.number not in self._sweeps:
            self._sweeps[attempt.number] = self._new_sweep(attempt)
        sweep = self._sweeps[attempt.number]
        again = sweep.step()
        if again is not None:
            return again
        del self._sweeps[attempt.number]
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
            return None if attempt.swept is not None else self.sweep_up(attempt)
        if policy_name == "report":
            found = {found.pid: process.command_line(found.pid) for found in self._new_sweep(attempt).find()}
            if found:
                listed = as_list(found, self.ledger.redact)
                self.ledger.record(
                    ev.LeftoversFound(attempt=attempt.number, processes=listed, policy=policy_name)
                )
        return None

    def dismiss_recorder(self, attempt: Attempt) -> None:
        """It may leave now: whoever lives on after a success does so without it."""
        directory = self.ledger.packet.attempt(attempt.dirname)
        if locks.is_held(directory.lock):
            owner = locks.owner(directory.lock)
            if owner is not None:
                process.send(owner, signal.SIGTERM)


def _some(good: list[Attempt], wave: list[Attempt]) -> str:
    return f"{len(good)} of {len(wave)} stages side by side succeeded"


def _used_up(retries: int) -> str:
    if retries == 0:
        return "no retries are allowed"
    return "its one retry is used up" if retries == 1 else f"all {retries} retries are used up"
