"""One process that plays a scenario: its state, and the ways in which it ends."""

from __future__ import annotations

import os
import signal as signals_of_os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from holdfast.testing.agent.dialect import Dialect
    from holdfast.testing.agent.output import Output
    from holdfast.testing.agent.scenario import Scenario
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
