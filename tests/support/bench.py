"""A task with real files and a real journal, for tests of what a runner reads and writes around a stage."""

from __future__ import annotations

import os
from typing import Any

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Chore, dirname
from holdfast.model.spec import Limits, PipelineSpec, StageSpec, TaskSpec
from holdfast.model.stage_state import StageState
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.packet import load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.store.journal import fold_sealed
from holdfast.store.layout import AttemptDir, Home, Packet
from tests.support.journals import opened

#: The value of a variable with a secret name, in every task.
SECRET = "hunter2-hunter2"
PIPELINE = PipelineSpec(intent="implement", group="impl", profile="standard")


class Bench:
    """The packet of one task, and its ledger."""

    def __init__(
        self, home: str, *stages: StageSpec, prompt: str | None = None, task_id: str = "it", **spec: Any
    ) -> None:
        ensure_home(home)
        stages = stages or (StageSpec(name="command_run", agent="command"),)
        fields: dict[str, Any] = {
            "task_name": task_id, "goal": "the goal", "agent": stages[0].agent, "project_dir": home,
            "limits": Limits(), **spec,
        }  # fmt: skip
        packet = create(
            Home(home),
            TaskSpec(task_id=task_id, stages=stages, **fields),
            prompt=None if prompt is None else prompt.encode(),
            env={"env": {"API_KEY": SECRET}},
            status=Status.SPAWNING,
        )
        self._directories: dict[int, AttemptDir] = {}
        folded = fold_sealed(packet.journal, None)
        journal = opened(packet)
        self.ledger = Ledger(packet, folded.task, journal, Redactor({"API_KEY": SECRET}))

    @property
    def packet(self) -> Packet:
        return self.ledger.packet

    @property
    def task(self) -> Task:
        return self.ledger.task

    @property
    def stage(self) -> StageSpec:
        """The first stage."""
        return self.task.spec.stages[0]

    @property
    def state(self) -> StageState:
        """The state of the first stage."""
        return self.task.stage_state(self.stage.name)

    def tell(self, *events: ev.Event) -> Bench:
        """Record events, as a runner does."""
        self.ledger.record(*events, shown=False)
        return self

    def move(self, new: Status, **more: Any) -> Bench:
        return self.tell(ev.TaskMoved(old=self.task.status, new=new, **more))

    def open(self, number: int = 1, *, stage: str | None = None, **more: Any) -> Bench:
        """Open an attempt of a stage, or a chore (`kind`); its directory exists afterwards."""
        return self.tell(self._opened(number, stage, **more))

    def start(self, number: int = 1, *, at: float | None = None) -> Bench:
        return self.tell(self._started(number, clock.now() if at is None else at))

    def end(self, number: int = 1, outcome: str = "success", **more: Any) -> Bench:
        return self.tell(self._ended(number, outcome, **more))

    def ran(self, number: int = 1, outcome: str = "success", **more: Any) -> Bench:
        """Open, start and end an attempt; the task then moves on, as it does after each attempt."""
        ended = {name: more.pop(name) for name in ("detail", "exec_errno", "resumable") if name in more}
        then = Status.COMPLETING if outcome == "success" else Status.CRASHED
        return self.tell(  # in one sync
            self._opened(number, **more),
            self._started(number, clock.now()),
            ev.TaskMoved(old=self.task.status, new=Status.RUNNING),
            self._ended(number, outcome, **ended),
            ev.TaskMoved(old=Status.RUNNING, new=then),
        )

    def _opened(self, number: int, stage: str | None = None, **more: Any) -> ev.AttemptOpened:
        name = stage or self.stage.name
        fields = {"agent": self.task.stage_state(name).agent, "mode": "fresh", **more}
        opened = ev.AttemptOpened(attempt=number, attempt_id=f"ses_{number}", stage=name, **fields)
        directory = self.packet.attempt(dirname(number, name, opened.kind))
        self._directories[number] = directory
        os.makedirs(directory.path)
        return opened

    def _started(self, number: int, at: float) -> ev.AttemptStarted:
        return ev.AttemptStarted(
            attempt=number, pid=4321, boot_id="b", start_time=9, mono_s=1.0, started_at=clock.iso(at)
        )

    def _ended(self, number: int, outcome: str, **more: Any) -> ev.AttemptEnded:
        fields = {"lived_s": 10.0, "noticed_at": clock.iso_now(), **more}
        return ev.AttemptEnded(attempt=number, outcome=outcome, **fields)

    def finish(self, stage: str, number: int = 1, **more: Any) -> Bench:
        """Run a stage to its end."""
        return self.ran(number, stage=stage, **more).tell(ev.StageDone(stage=stage, attempt=number))

    def attempt(self, number: int = 1) -> Attempt:
        attempt = self.task.find_attempt(number)
        assert attempt is not None
        return attempt

    @property
    def chore(self) -> Chore:
        assert self.task.chore is not None
        return self.task.chore

    def directory(self, number: int = 1) -> AttemptDir:
        """The directory of an attempt or a chore."""
        return self._directories[number]

    def recorded(self) -> Task:
        """The task as another process reads it from the journal."""
        return load.fold(self.packet)


def put(path: str, text: str | bytes) -> str:
    """Write a file and the directories above it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def text_of(path: str) -> str | None:
    """The content of a file; None if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None
