"""Write scenario files from Python.

    Scenario().say("working").tool("sleep", run_s=3).crash("KILL", once=True).write_to(path)

One method per verb, with the verb's arguments; the guide on the scripted agent explains them. Each step is
checked when it is added, so a mistake is an error where it was made.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, Self

from holdfast import own_python
from holdfast.testing.agent.scenario import SCHEMA
from holdfast.testing.agent.scenario import Scenario as CheckedScenario
from holdfast.testing.builder.ending import Ending
from holdfast.testing.builder.offspring import Offspring
from holdfast.testing.builder.steps import optional_text
from holdfast.testing.builder.talk import Talk
from holdfast.testing.builder.work import Work


class Scenario(Talk, Work, Offspring, Ending):
    """A scenario under construction; every method returns the scenario itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = settings
        self._resume_steps: list[dict[str, Any]] | None = None

    def on_resume(self, how: Literal["continue", "restart"]) -> Self:
        """Where a resumed process continues: after the last completed step, or at the first one."""
        self._settings["on_resume"] = how
        return self

    def on_signal(self, name: str, action: str | dict[str, Any]) -> Self:
        """The reaction to a signal: that of the imitated CLI (`agent`), of the kernel (`default`), none
        (`ignore`), or an exit after a while."""
        self._settings.setdefault("on_signal", {})[name] = action
        return self

    def resumed(self, other: Scenario) -> Self:
        """Play the steps of `other` in a resumed process."""
        self._resume_steps = other.steps
        return self

    def to_dict(self) -> dict[str, Any]:
        """The content of the scenario file, checked."""
        data: dict[str, Any] = {"schema": SCHEMA, "steps": self.steps, **self._settings}
        if self._resume_steps is not None:
            data["resume_steps"] = self._resume_steps
        CheckedScenario(data)
        return data

    def write_to(self, path: str | Path) -> Path:
        """Write the scenario file; returns its path."""
        path = Path(path)
        path.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        return path


def scenario(**settings: Any) -> Scenario:
    """A new scenario with these settings of the file: `on_resume`, `resume_as`, `model`…"""
    return Scenario(**settings)


def agent_command(
    path: str | Path,
    *,
    state_dir: str | Path | None = None,
    session_id: str | None = None,
    resume: str | None = None,
    dialect: str | None = None,
    model: str | None = None,
    prompt: str | None = None,
) -> list[str]:
    """The command line that plays the scenario at `path` with this interpreter."""
    argv = own_python.command("holdfast.testing.agent", str(path))
    options = {
        "--state-dir": optional_text(state_dir),
        "--session-id": session_id,
        "--resume": resume,
        "--dialect": dialect,
        "--model": model,
    }
    for name, value in options.items():
        if value is not None:
            argv += [name, value]
    return argv if prompt is None else [*argv, "--", prompt]
