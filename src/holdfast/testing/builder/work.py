"""Steps that change something, or check it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, Unpack

from holdfast.testing.builder.steps import Steps, When, optional_text


class Work(Steps):
    """The verbs of `holdfast.testing.agent.steps.work`."""

    def tool(
        self,
        name: str | None = None,
        *,
        run_s: float | None = None,
        busy_s: float | None = None,
        command: str | None = None,
        arguments: dict[str, Any] | None = None,
        output: str | None = None,
        fails: bool | None = None,
        stays_open: bool | None = None,
        **when: Unpack[When],
    ) -> Self:
        """A tool: it sleeps, computes and runs a shell command as given, and is finished unless it stays
        open."""
        return self.step(
            "tool",
            name=name,
            run_s=run_s,
            busy_s=busy_s,
            command=command,
            arguments=arguments,
            output=output,
            fails=fails,
            stays_open=stays_open,
            **when,
        )

    def write(
        self,
        path: str | Path,
        content: str | None = None,
        *,
        append: bool | None = None,
        **when: Unpack[When],
    ) -> Self:
        """Write a file; each write is recorded."""
        return self.step("write", path=str(path), content=content, append=append, **when)

    def holdfast(
        self,
        argv: list[str],
        *,
        wait: bool | None = None,
        pid_file: str | Path | None = None,
        **when: Unpack[When],
    ) -> Self:
        """Run `holdfast`, and wait for it unless `wait` is false."""
        return self.step("holdfast", argv=argv, wait=wait, pid_file=optional_text(pid_file), **when)

    def sleep(self, s: float, **when: Unpack[When]) -> Self:
        """Silence."""
        return self.step("sleep", s=s, **when)

    def wait_file(self, path: str | Path, *, limit_s: float | None = None, **when: Unpack[When]) -> Self:
        """Wait until a file exists; fail after the limit."""
        return self.step("wait_file", path=str(path), limit_s=limit_s, **when)

    def expect_env(self, variables: dict[str, str | bool | None], **when: Unpack[When]) -> Self:
        """Check variables: with a value, set (`True`) or absent (`None`); fail otherwise."""
        return self.step("expect_env", variables=variables, **when)

    def interrupt_request(self, text: str, **when: Unpack[When]) -> Self:
        """Request a person through `$INTERRUPT_FILE`."""
        return self.step("interrupt_request", text=text, **when)
