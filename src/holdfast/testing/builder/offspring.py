"""Steps that leave a process behind."""

from __future__ import annotations

from pathlib import Path
from typing import Self, Unpack

from holdfast.testing.builder.steps import Steps, When, optional_text


class Offspring(Steps):
    """The verbs of `holdfast.testing.agent.steps.offspring`."""

    def grandchild(
        self,
        s: float | None = None,
        *,
        pid_file: str | Path | None = None,
        ignore_signals: bool | None = None,
        strip_env: bool | None = None,
        orphan: bool | None = None,
        hold_output: bool | None = None,
        **when: Unpack[When],
    ) -> Self:
        """Leave a sleeping process in its own session; `orphan` forks twice, `hold_output` keeps stdout
        and stderr open."""
        return self.step(
            "grandchild",
            s=s,
            pid_file=optional_text(pid_file),
            ignore_signals=ignore_signals,
            strip_env=strip_env,
            orphan=orphan,
            hold_output=hold_output,
            **when,
        )

    def server(
        self,
        *,
        port: int | None = None,
        pid_file: str | Path | None = None,
        port_file: str | Path | None = None,
        limit_s: int | None = None,
        **when: Unpack[When],
    ) -> Self:
        """Leave a server that answers "ok" over HTTP on a loopback port."""
        return self.step(
            "server",
            port=port,
            pid_file=optional_text(pid_file),
            port_file=optional_text(port_file),
            limit_s=limit_s,
            **when,
        )
