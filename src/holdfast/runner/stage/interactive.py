"""The agent's own program for a person, in the session of a stage: what is started, and what is locked."""

from __future__ import annotations

import os

from holdfast.agents import program, registry
from holdfast.errors import NotPossible
from holdfast.model import events as ev
from holdfast.model.spec import StageSpec
from holdfast.model.task import Task
from holdfast.packet import environment, session_lock
from holdfast.redact import Redactor
from holdfast.runner.attempt import open as opening
from holdfast.runner.ledger import Ledger
from holdfast.runner.plan.start import is_plain
from holdfast.runner.stage.launch import choose_session, launch_spec
from holdfast.runner.stage.workspace_lock import WorkspaceLock
from holdfast.store import atomic
from holdfast.store.layout import AttemptDir, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.agents.base import Adapter, Launch, LaunchSpec

#: Variables of the terminal, which differs from the one in which the task was started.
_OF_TERMINAL = ("TERM", "COLORTERM", "COLORFGBG", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LC_TERMINAL")
#: The recorder of the interrupted attempt may still be about to exit.
_WITHIN_S = 10.0


class Reader(Ledger):
    """The packet of a task whose journal belongs to another process: nothing can be recorded."""

    def __init__(self, packet: Packet, task: Task, redact: Redactor) -> None:
        super().__init__(packet, task, None, redact)  # pyright: ignore[reportArgumentType] (never used)


class Interactive:
    """The program of a stage for a person. Session and workspace are locked as long as this exists."""

    def __init__(self, packet: Packet, task: Task, stage: StageSpec, opened: ev.AttemptOpened) -> None:
        """Raises NotPossible, LockHeld, CorruptFile, and UnknownAgent if a plug-in is gone."""
        self.stage = stage
        state = task.stage_state(stage.name)
        adapter = registry.adapter(state.agent)
        opens, session_id = _session(adapter, task, stage)
        self.opened = opened.evolve(
            agent=adapter.name, session_id=session_id, resume_count=state.times_ran, mode="resume"
        )
        self.env = environment.read_captured(packet, task.env_sha256)
        patterns = task.spec.pipeline.redaction_patterns if task.spec.pipeline is not None else ()
        captured: dict[str, str] = self.env.get("env", {})
        self.ledger = Reader(packet, task, Redactor(captured, task.spec.env, patterns))
        self.cwd = task.workspace_of(stage.name)
        _check(adapter, captured, self.cwd)
        self._session = session_lock.acquire(packet, adapter.name, session_id, within_s=_WITHIN_S)
        self._workspace = WorkspaceLock(self.ledger)
        if stage.writes and not is_plain(task) and not self._workspace.take():
            raise NotPossible(
                f"{self._workspace.writer or 'another task'} is writing in {task.spec.project_dir}",
                hint="try again when it is done",
            )
        self._adapter, self._opens = adapter, opens

    def command(self, directory: AttemptDir) -> tuple[list[str], dict[str, str]]:
        """Command line and environment, in the task's sandbox and with its config home."""
        spec = launch_spec(self.ledger, self._adapter, directory, self.opened, stage=self.stage, env=self.env)
        launch = self._opens(spec)
        atomic.write_json(directory.argv, opening.argv_record(self.ledger, launch, self.cwd), durable=False)
        argv, variables = opening.command_of(self.ledger, directory, launch, self.opened, env=self.env)
        terminal = {name: os.environ[name] for name in _OF_TERMINAL if name in os.environ}
        return argv, {**variables, **terminal}

    @property
    def limits(self) -> dict[str, list[int]]:
        """Resource limits, as for the agent."""
        return opening.resource_limits(self.ledger, self.opened, self.env)

    def release(self) -> None:
        """Let the agent go on. Other tasks write in the workspace once this one is at rest."""
        self._workspace.close()
        self._session.release()


def _session(adapter: Adapter, task: Task, stage: StageSpec) -> tuple[Callable[[LaunchSpec], Launch], str]:
    """How the adapter opens its program for a person, and the session that the next attempt would resume."""
    opens: Callable[[LaunchSpec], Launch] | None = getattr(adapter, "takeover", None)
    if not adapter.capabilities.can_resume or opens is None:
        raise NotPossible(
            f"{adapter.name} has no session that a person could take over",
            hint=f"'holdfast resume {task.spec.task_id} -m MESSAGE' runs it again",
        )
    mode, session_id = choose_session(adapter, task, task.stage_state(stage.name))
    if mode != "resume" or not session_id:
        raise NotPossible(
            f"{stage.name} has no session to take over: its next attempt starts a new one",
            hint=f"'holdfast resume {task.spec.task_id}' starts it",
        )
    return opens, session_id


def _check(adapter: Adapter, captured: dict[str, str], cwd: str) -> None:
    able = adapter.capabilities
    if able.program and program.find(able, captured.get("PATH", os.defpath)) is None:
        raise NotPossible(
            f"{able.program} is not installed, or not in the PATH that the task was created with",
            hint=f"'holdfast agent probe {adapter.name}' checks it",
        )
    if not os.path.isdir(cwd):
        raise NotPossible(f"{cwd}, where its agent works, is gone")
