"""The stages of a task that is followed: which are at work, and what is new about them."""

from __future__ import annotations

from holdfast import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PENDING, _DONE, _FAILED = "pending", "done", "failed"


def are_many(manifest: dict[str, Any]) -> bool:
    """Whether the task has stages to tell apart; a plain run has one."""
    return len(manifest.get("stages") or ()) > 1


def now(manifest: dict[str, Any]) -> str:
    """`codex_impl`, or `codex_impl (2 of 4)`, or `gemini_review, codex_review (1 and 2 of 4)` where they run side by side."""
    stages: list[dict[str, Any]] = manifest.get("stages") or []
    if len(stages) < 2:
        return manifest["stage"] or "-"
    active = [at for at, stage in enumerate(stages) if stage["state"] not in (_PENDING, _DONE, _FAILED)]
    if not active:
        active = [at for at, stage in enumerate(stages) if stage["name"] == manifest["stage"]]
    names = ", ".join(stages[at]["name"] for at in active) or "-"
    numbers = " and ".join(str(at + 1) for at in active) or "?"
    return f"{names} ({numbers} of {len(stages)})"


class Stages:
    """What was told of each stage so far."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._began_mono: dict[str, float] = {}

    def news(self, manifest: dict[str, Any], now_mono: float) -> list[str]:
        """`gemini_brief started (1 of 4)`, `gemini_brief completed after 1m02s (1 of 4)`. A task that was begun before it was
        followed is told from its present stage on; a plain run has no news of stages."""
        if not are_many(manifest):
            return []
        stages: list[dict[str, Any]] = manifest["stages"]
        is_first = not self._states
        lines: list[str] = []
        for number, stage in enumerate(stages, 1):
            name, state = stage["name"], stage["state"]
            before = self._states.get(name, _PENDING)
            self._states[name] = state
            if state in (before, _PENDING) or (is_first and state == _DONE):
                continue
            of = f"({number} of {len(stages)})"
            if state not in (_DONE, _FAILED):
                # From one kind of work to another (its gate) is no start.
                if before in (_PENDING, _DONE, _FAILED):
                    self._began_mono[name] = now_mono
                    lines.append(f"{name} started {of}")
                continue
            if before == _PENDING and not is_first:
                # It began and ended between two looks.
                lines.append(f"{name} started {of}")
            word = "completed" if state == _DONE else "failed"
            began = self._began_mono.pop(name, None)
            took = f" after {clock.words(now_mono - began)}" if began is not None else ""
            lines.append(f"{name} {word}{took} {of}")
        return lines
