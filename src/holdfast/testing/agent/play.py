"""The loop over the steps, and how it ends."""

from __future__ import annotations

import os
import signal as signals_of_os
import time

from holdfast.testing.agent import signals, steps
from holdfast.testing.agent.verbs import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from holdfast.testing.agent.dialect import Dialect
    from holdfast.testing.agent.output import Output
    from holdfast.testing.agent.scenario import Scenario, Step
    from holdfast.testing.agent.session import Session


class ScriptFailure(Exception):
    """Raised by a step whose expectation is not met; the agent fails with 1."""


class Play:
    """One process that plays a scenario in a session."""

    def __init__(
        self,
        scenario: Scenario,
        session: Session,
        dialect: Dialect,
        out: Output,
        *,
        is_resume: bool,
    ) -> None:
        self.scenario = scenario
        self.session = session
        self.dialect = dialect
        self.out = out
        self.is_resume = is_resume
        self.exit_code = 0
        #: pid and process group of the running tool's command
        self.tool_pid: int | None = None
        #: Between its fork and the line that records its pid.
        self.is_starting_tool = False

    def run(self) -> NoReturn:
        """Play to the end. A scenario that neither gave a result nor exited succeeds."""
        signals.install(self, self.scenario.on_signal)
        self.dialect.begin()
        try:
            for step in self._steps():
                self._perform(step)
        except ScriptFailure as failure:
            self.fail(str(failure))
        if not self.dialect.has_result:
            self.dialect.result()
        self.leave(self.exit_code)

    def pause(self, seconds: float | str) -> None:
        """Sleep for `seconds`, or "forever"; a signal that is survived does not end it."""
        if seconds == "forever":
            while True:
                signals_of_os.pause()
        time.sleep(float(seconds))

    def fail(self, message: str) -> NoReturn:
        """End as a failed agent, with the reason on stderr, in the result and in the journal."""
        self._note("failed", message=message)
        self.out.line(f"scripted agent: {message}", 2)
        self.dialect.result(subtype="error_during_execution", errors=[message])
        self.leave(1)

    def leave(self, code: int, *, signal: str | None = None) -> NoReturn:
        """Exit immediately: nothing is buffered and no child is waited for."""
        self._note("left", exit=code, signal=signal, lost_bytes=self.out.lost_bytes)
        os._exit(code)

    def kill_tool(self) -> None:
        """Kill the process group of the running tool, as the CLI does on an interrupt."""
        if self.tool_pid is not None:
            try:
                os.killpg(self.tool_pid, signals_of_os.SIGKILL)
            except ProcessLookupError:
                self.tool_pid = None  # it ended by itself

    def _note(self, kind: str, **facts: object) -> None:
        """Record how it ended, if possible: the exit status must be right on a full disk, too."""
        try:
            self.session.record(kind, **facts)
        except OSError:
            pass

    def _steps(self) -> list[Step]:
        """The steps of this process: standing ones of earlier processes, then the remaining ones."""
        name, chosen = "steps", self.scenario.steps
        if self.is_resume and self.scenario.resume_steps is not None:
            name, chosen = "resume_steps", self.scenario.resume_steps
        if not self.is_resume or self.scenario.on_resume == "restart":
            return chosen
        first = self.session.next_index(name)
        standing = [step for step in chosen[:first] if VERBS[step.verb].is_standing]
        return standing + chosen[first:]

    def _perform(self, step: Step) -> None:
        """Perform one step. It is done when it returns; a step that ends the process is never done."""
        limit = step.process_limit
        tries = step.arguments.get("tries")
        is_over = (limit is not None and self.session.process_number > limit) or (
            tries is not None and self.session.times_begun(step.place) >= tries
        )
        if is_over:
            self.session.record("skip", step=step.place, verb=step.verb)
            return
        self.session.record("begin", step=step.place, verb=step.verb)
        try:
            steps.perform(self, step)
        except (ScriptFailure, OSError) as error:
            raise ScriptFailure(f"{step.place}.{step.verb}: {error}") from error
        self.session.record_durably("done", step=step.place, verb=step.verb)
