"""Shared parts of all builders."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, TypedDict

from holdfast.testing.agent.scenario import check_step


class When(TypedDict, total=False):
    """Arguments of every verb: perform the step only sometimes."""

    once: bool
    """Only in the first process of the session."""
    times: int
    """Only in the first N processes of the session."""
    tries: int
    """Only the first N times that the session reaches this step."""


class Steps:
    """A growing list of checked steps."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def step(self, verb: str, **arguments: Any) -> Self:
        """Add a step by its verb; arguments that are None are left out."""
        given = {name: value for name, value in arguments.items() if value is not None}
        check_step(f"steps[{len(self.steps)}]", {verb: given})
        self.steps.append({verb: given})
        return self


def optional_text(path: str | Path | None) -> str | None:
    """A path as text, or None."""
    return None if path is None else str(path)
