"""A story: a task built from events."""

from __future__ import annotations

from typing import Any

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.fold import apply
from holdfast.model.spec import Limits, PipelineSpec, StageSpec, TaskSpec
from holdfast.model.task import Task

BEGIN = 1_800_000_000.0
BOOT = {"boot_id": "b", "start_time": 9}


class Story:
    """Applies events, one second apart by default."""

    def __init__(
        self,
        stages: tuple[str | StageSpec, ...] = ("a_run",),
        status: str = "spawning",
        *,
        limits: Limits | None = None,
        pipeline: PipelineSpec | None = None,
        **more: Any,
    ) -> None:
        self.task = Task()
        self.now = BEGIN
        spec = TaskSpec(
            task_id="t",
            task_name="t",
            goal="g",
            agent="a",
            project_dir="/",
            stages=tuple(
                StageSpec(name=stage, agent="a") if isinstance(stage, str) else stage for stage in stages
            ),
            limits=limits or Limits(deadline_s=100.0),
            pipeline=pipeline,
            **more,
        )
        self.tell(ev.TaskCreated(task_id="t", status=status, spec=spec.to_json()))

    def tell(self, *events: ev.Event, after_s: float = 1.0) -> Story:
        for event in events:
            self.now += after_s
            apply(self.task, event, clock.iso(self.now))
        return self

    def move(self, new: str, **more: Any) -> Story:
        return self.tell(ev.TaskMoved(old=self.task.status, new=new, **more))

    def open(self, number: int, *, stage: str = "a_run", **more: Any) -> Story:
        asked = {"agent": "a", "mode": "fresh", "session_id": "S", **more}
        return self.tell(ev.AttemptOpened(attempt=number, attempt_id=f"ses_{number}", stage=stage, **asked))

    def start(self, number: int) -> Story:
        return self.tell(
            ev.AttemptStarted(
                attempt=number, pid=40 + number, mono_s=1.0, started_at=clock.iso(self.now), **BOOT
            )
        )

    def attempt(
        self, number: int, *, stage: str = "a_run", mode: str = "fresh", session: str | None = "S"
    ) -> Story:
        return self.open(number, stage=stage, mode=mode, session_id=session).start(number).move("running")

    def end(self, number: int, outcome: str, **more: Any) -> Story:
        return self.tell(ev.AttemptEnded(attempt=number, outcome=outcome, **{"lived_s": 10.0, **more}))
