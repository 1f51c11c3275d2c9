"""What every step works with: ledger, environment, observers, locks, and what the runner remembers."""

from __future__ import annotations

import os

from holdfast.errors import CorruptFile, InvalidPattern
from holdfast.model.execution import Execution
from holdfast.packet import environment
from holdfast.redact import Redactor, WithholdingRedactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.plan.facts import Remembered
from holdfast.runner.stage.workspace_lock import WorkspaceLock
from holdfast.runner.wake.waiter import Waiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.runner.attempt.observers import Observers
    from holdfast.runner.attempt.sweep import Sweep


class Context:
    """One runner's hold on one task."""

    def __init__(self, ledger: Ledger, waiter: Waiter) -> None:
        self.ledger = ledger
        self.waiter = waiter
        #: env.json: what agents of this task are started with. And why nothing may be started.
        self.env: dict[str, Any] = {}
        self._env_problem: str | None = None
        self.load_environment()
        self.remembered = Remembered(jitter=os.urandom(1)[0] / 255)
        self.workspace_lock = WorkspaceLock(ledger)
        #: Running sweeps, by the number of the execution.
        self.sweeps: dict[int, Sweep] = {}
        #: Open executions whose processes are being stopped, before the agent is killed.
        self.freezes: dict[int, Sweep] = {}
        #: Recorders that we forked: our children.
        self.recorders: list[int] = []
        self._observers: Observers | None = None

    @property
    def observers(self) -> Observers:
        """The observers.

        Loaded with the first execution: without a seed its agent is being started meanwhile.
        """
        if self._observers is None:
            from holdfast.runner.attempt.observers import Observers

            self._observers = Observers(self.ledger, self.waiter)
        return self._observers

    def execution(self, number: int) -> Execution:
        """The current attempt or chore with that number."""
        execution = self.ledger.task.find(number)
        assert execution is not None
        return execution

    def load_environment(self) -> None:
        """Read env.json; again after a retry, which brings another one, and with it other secrets.

        Only the one whose digest is in the journal counts: an agent can replace the file, and its variables
        reach chores and the next attempt. At the task's end it is deleted; nothing is started any more.
        """
        self.env, self._env_problem = {}, None
        task = self.ledger.task
        try:
            if not task.has_ended:
                self.env = environment.read_captured(self.ledger.packet, task.env_sha256)
        except CorruptFile as error:
            hint = "stop the task, then 'holdfast retry' captures the environment again"
            self._env_problem = f"{error}; {hint}"
        self.ledger.redact = _redactor(self.ledger, self.env)

    @property
    def problem(self) -> str | None:
        """Why a person has to decide before anything is started; None if nothing is wrong."""
        return self.ledger.redact.problem or self._env_problem

    def reap_recorders(self) -> None:
        """A recorder leaves once nothing of its execution is left."""
        for pid in list(self.recorders):
            try:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    self.recorders.remove(pid)
            except ChildProcessError:
                self.recorders.remove(pid)

    def forget(self) -> None:
        """Forget what was observed of open executions, to observe it again from the files."""
        if self._observers is not None:
            self._observers.close()

    def close(self) -> None:
        """Leave the task: the next runner must find every lock free."""
        self.forget()
        self.workspace_lock.close()


def _redactor(ledger: Ledger, env: dict[str, Any]) -> Redactor:
    """Removes the secrets of this environment.

    A task of an earlier version may have a pattern that this version refuses. Then all texts are withheld,
    and the planner interrupts the task.
    """
    spec = ledger.task.spec
    patterns = spec.pipeline.redaction_patterns if spec.pipeline else ()
    try:
        return Redactor(env.get("env", {}), spec.env, patterns)
    except InvalidPattern as error:
        return WithholdingRedactor(
            f"security.redaction_patterns cannot be applied, so nothing is shown: {error} ({error.hint}). "
            "Create the task again with a valid pattern."
        )
