"""Steps about how a process ends, or does not."""

from __future__ import annotations

from typing import Literal, Self, Unpack

from holdfast.testing.builder.steps import Steps, When


class Ending(Steps):
    """The verbs of `holdfast.testing.agent.steps.ending`."""

    def crash(self, signal: str | None = None, *, exit: int | None = None, **when: Unpack[When]) -> Self:
        """Die by a signal to itself (KILL), or exit, without output."""
        return self.step("crash", signal=signal, exit=exit, **when)

    def exit(self, code: int, **when: Unpack[When]) -> Self:
        """Exit immediately: no result is added."""
        return self.step("exit", code=code, **when)

    def hang(self, *, cpu: bool | None = None, **when: Unpack[When]) -> Self:
        """Do nothing any more; with `cpu`, use a processor for it."""
        return self.step("hang", cpu=cpu, **when)

    def linger(self, s: float | Literal["forever"] | None = None, **when: Unpack[When]) -> Self:
        """Give the result, then stay for this long, or forever."""
        return self.step("linger", s=s, **when)

    def rate_limit(
        self, text: str | None = None, *, resets_in_s: float | None = None, **when: Unpack[When]
    ) -> Self:
        """The CLI's refusal, perhaps with the time at which it ends, an error result, and exit status 1."""
        return self.step("rate_limit", text=text, resets_in_s=resets_in_s, **when)

    def unauthorized(self, text: str | None = None, **when: Unpack[When]) -> Self:
        """A login that is not valid (401), an error result, and exit status 1."""
        return self.step("unauthorized", text=text, **when)

    def kill_group(self, signal: str | None = None, **when: Unpack[When]) -> Self:
        """A signal to its own process group (KILL)."""
        return self.step("kill_group", signal=signal, **when)

    def ignore(self, signals: list[str], **when: Unpack[When]) -> Self:
        """Ignore these signals from now on, in resumed processes, too."""
        return self.step("ignore", signals=signals, **when)

    def fail_if_running(self, **when: Unpack[When]) -> Self:
        """Hold the session's lock until the process ends; fail if another process holds it."""
        return self.step("fail_if_running", **when)
