"""Steps about how a process ends, or fails to."""

from __future__ import annotations

from typing import Literal, Self, Unpack

from holdfast.testing.builder.steps import Steps, When


class Ending(Steps):
    """The verbs of `holdfast.testing.agent.steps.ending`."""

    def crash(self, signal: str | None = None, *, exit: int | None = None, **when: Unpack[When]) -> Self:
        return self.step("crash", signal=signal, exit=exit, **when)

    def exit(self, code: int, **when: Unpack[When]) -> Self:
        return self.step("exit", code=code, **when)

    def hang(self, *, cpu: bool | None = None, **when: Unpack[When]) -> Self:
        return self.step("hang", cpu=cpu, **when)

    def linger(self, s: float | Literal["forever"] | None = None, **when: Unpack[When]) -> Self:
        return self.step("linger", s=s, **when)

    def rate_limit(self, text: str | None = None, **when: Unpack[When]) -> Self:
        return self.step("rate_limit", text=text, **when)

    def kill_group(self, signal: str | None = None, **when: Unpack[When]) -> Self:
        return self.step("kill_group", signal=signal, **when)

    def ignore(self, signals: list[str], **when: Unpack[When]) -> Self:
        return self.step("ignore", signals=signals, **when)

    def fail_if_running(self, **when: Unpack[When]) -> Self:
        return self.step("fail_if_running", **when)
