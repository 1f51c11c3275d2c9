"""A runner without files and processes: it takes the planner's steps, and every agent succeeds.

It has what a successor of a killed runner has: the journal, an empty memory, and processes that live on.
"""

from __future__ import annotations

from typing import Any

from holdfast import clock
from holdfast.model import contest, roles
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.attempt_table import Reading
from holdfast.model.execution import Execution
from holdfast.model.fold import apply
from holdfast.model.status import Status
from holdfast.pipeline.triage import triage
from holdfast.runner.plan import step as steps
from holdfast.runner.plan.facts import ChoreResult, ExecutionFacts, Facts, Now, Remembered, WorkspaceFacts
from holdfast.runner.plan.failures import triaged_event
from holdfast.runner.plan.planner import plan
from tests.crash.reachable import MONO, Situation

#: The observations of a process, in order: it starts, is watched, prints, and ends.
_LIFE = (
    ExecutionFacts(reading=Reading.RUNNING),
    ExecutionFacts(is_watched=True),
    ExecutionFacts(is_watched=True, has_ended=True, has_unread_output=True),
    ExecutionFacts(is_watched=True, has_ended=True),
)


class SimulatedRunner:
    """Gathers facts, plans and performs; only the journal is real."""

    def __init__(self, situation: Situation) -> None:
        self.task = situation.fold()
        self.remembered = Remembered()
        self._wall, self._mono = situation.now.wall, MONO
        self._interrupt_file: str | None = None
        self._is_closed = False
        #: How far each process has come.
        self._age: dict[int, int] = {}

    def take_step(self) -> steps.Step:
        """Plan one step and perform it."""
        step = plan(self.task, self._gather(), Now(wall=self._wall, mono=self._mono))
        self._perform(step)
        return step

    def _gather(self) -> Facts:
        task = self.task
        return Facts(
            remembered=self.remembered,
            executions={each.number: self._seen(each) for each in task.open_executions},
            interrupt_file=self._interrupt_file,
            heartbeat_in_s=self.remembered.heartbeat_mono + 30.0 - self._mono,
            wait_left_s=self._wait_left_s(),
            wait_s=10.0,
            is_closed=self._is_closed,
            chore_result=ChoreResult(is_usable=True) if task.chore is not None else None,
        )

    def _wait_left_s(self) -> float:
        wake_at = self.task.waiting.wake_at if self.task.waiting is not None else None
        return clock.parse_iso(wake_at) - self._wall if wake_at else 0.0

    def _seen(self, execution: Execution) -> ExecutionFacts:
        seen = _LIFE[self._age.setdefault(execution.number, 0)]
        is_stopped = execution.intent is not None and seen.is_watched and not seen.has_ended
        return seen.evolve(signal_in_s=0.0) if is_stopped else seen

    def _record(self, *events: ev.Event) -> None:
        for event in events:
            apply(self.task, event, clock.iso(self._wall))

    def _perform(self, step: steps.Step) -> None:
        memory, task = self.remembered, self.task
        match step:
            case steps.Watch():
                # The whole wait at once; the planner would check it every few seconds.
                slept_s = max(step.wait_s, self._wait_left_s()) + 0.01
                self._wall, self._mono = self._wall + slept_s, self._mono + slept_s
            case steps.Heartbeat():
                memory.heartbeat_mono = self._mono
            case steps.Journal():
                self._record(*step.events)
            case steps.Interrupt():
                self._record(*step.events)
                memory.interrupting, memory.is_reported = None, True
            case steps.SaveContext():
                memory.interrupting = step.interrupt.evolve(is_saved=True)
            case steps.PostNotice():
                if step.attempt:
                    memory.refusals_announced.add(step.attempt)
                elif memory.interrupting is not None:
                    memory.interrupting = memory.interrupting.evolve(is_announced=True)
            case steps.WriteInterruptFile():
                assert memory.interrupting is not None
                memory.interrupting = memory.interrupting.evolve(has_file=True)
                self._interrupt_file = step.question
            case steps.Report():
                memory.is_reported = True
            case steps.EndTask():
                self._is_closed = True
            case steps.Preflight():
                memory.preflight_run = task.run
            case steps.TakeWorkspace():
                memory.workspace = WorkspaceFacts(is_held=True)
            case steps.ReleaseWorkspace():
                memory.workspace = WorkspaceFacts()
            case steps.OpenAttempts():
                for stage in step.stages:
                    self._open(stage, "agent", task.stage_state(stage).agent)
            case steps.OpenChore():
                self._open(step.stage, step.kind, "command")
            case steps.RecordStart():
                self._record_start(step.number)
            case steps.Signal():
                self._age[step.number] += 1
            case steps.ReadOutput():
                for number in step.numbers:
                    self._age[number] += 1
            case steps.IntendStop():
                self._record(
                    *(
                        ev.StopIntended(attempt=number, intent=step.intent, reason=step.reason)
                        for number in step.numbers
                    )
                )
            case steps.RecordEnd():
                self._record_end(step.number)
            case steps.Sweep():
                self._record(ev.AttemptSwept(attempt=step.number, killed=[], spared=[], proof="none left"))
            case steps.EndTakeover():
                self._record(ev.TakeoverEnded(attempt=step.number, how="lost"))
            case steps.CheckLeftovers():
                memory.leftovers_checked.add(step.number)
            case steps.WriteFiles():
                memory.files_written.add(step.number)
            case steps.DismissRecorders():
                memory.recorders_dismissed.update(step.numbers)
            case steps.TriageFailure():
                self._record(triaged_event(step.failure, triage(step.failure), attempt=step.number))
            case steps.TakeChoreResult():
                self._take_result(step.number)
            case steps.PassPlainGate() | steps.MarkStage():
                attempt = self._find(step.number)
                self._record(ev.StageDone(stage=attempt.stage, attempt=attempt.number))
            case steps.Leave():
                pass
            case _:
                raise AssertionError(f"nobody asked for {step}")

    def _find(self, number: int) -> Execution:
        execution = self.task.find(number)
        assert execution is not None
        return execution

    def _open(self, stage: str, kind: str, agent: str) -> None:
        number = self.task.last_number + 1
        opened = ev.AttemptOpened(
            attempt=number, attempt_id=f"ses_{number}", stage=stage, agent=agent, mode="fresh", kind=kind
        )
        self._record(opened)

    def _record_start(self, number: int) -> None:
        execution = self._find(number)
        if execution.started is None:
            at: dict[str, Any] = {"mono_s": self._mono, "started_at": clock.iso(self._wall)}
            self._record(ev.AttemptStarted(attempt=number, pid=number, boot_id="boot", start_time=1, **at))
        if self.task.status is Status.SPAWNING and isinstance(execution, Attempt):
            self._record(ev.TaskMoved(old="spawning", new="running"))
        self._age[number] += 1

    def _record_end(self, number: int) -> None:
        outcome = "success" if self._find(number).intent is None else "stopped"
        self._record(ev.AttemptEnded(attempt=number, outcome=outcome, lived_s=1.0))

    def _take_result(self, number: int) -> None:
        chore = self._find(number)
        match chore.kind:
            case "prepare":
                where: dict[str, Any] = {"path": "/case", "kind": "in_place", "tree": "t", "base_tree": "t"}
                self._record(ev.WorkspacePrepared(stage=chore.stage, **where))
            case "pre_work":
                self._record(ev.PreWorkChecked(stage=chore.stage, passed=True))
            case "adopt":
                chosen = contest.choice(self.task)
                assert chosen is not None
                by = "gate" if len(contest.survivors(self.task)) == 1 else "judge"
                which = {"chosen": chosen.name, "candidate": chosen.candidate, "by": by, "tree": "t"}
                self._record(ev.CandidateChosen.from_json({"stage": chore.stage, **which}))
            case "ci":
                where = {"pull_request": "pr", "commit": "c"}
                judged = self.task.current[-1].number
                self._record(ev.CiLooked(stage=chore.stage, attempt=judged, state="passed", **where))
            case _:
                judged = self.task.stage_state(chore.stage).attempt
                assert judged is not None
                spec = self.task.stage_spec(chore.stage)
                compares = spec is not None and roles.get(spec.role).compares
                number = str(contest.survivors(self.task)[0].candidate) if compares else ""
                self._record(
                    ev.GateJudged(stage=chore.stage, attempt=judged.number, passed=True, decision=number)
                )
