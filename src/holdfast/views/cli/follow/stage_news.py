"""The stages of a followed task: which ones are running, and what is new about them."""

from __future__ import annotations

from holdfast import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PENDING, _DONE, _FAILED, _ELIMINATED = "pending", "done", "failed", "eliminated"


def has_several(manifest: dict[str, Any]) -> bool:
    """Whether the task has more than one stage; a plain run has one."""
    return len(manifest.get("stages") or ()) > 1


def current(manifest: dict[str, Any]) -> str:
    """`codex_impl`, `codex_impl (2 of 4)`, or `pi_review, codex_review (1 and 2 of 4)` for parallel ones."""
    stages: list[dict[str, Any]] = manifest.get("stages") or []
    if len(stages) < 2:
        return manifest["stage"] or "-"
    active = [at for at, stage in enumerate(stages) if stage["state"] not in (_PENDING, _DONE, _FAILED)]
    if not active:
        active = [at for at, stage in enumerate(stages) if stage["name"] == manifest["stage"]]
    names = ", ".join(stages[at]["name"] for at in active) or "-"
    numbers = " and ".join(str(at + 1) for at in active) or "?"
    return f"{names} ({numbers} of {len(stages)})"


class StageNews:
    """Reports each start and end of a stage once."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._began_mono: dict[str, float] = {}

    def update(self, manifest: dict[str, Any], now_mono: float) -> list[str]:
        """`gemini_brief started (1 of 4)`, `gemini_brief completed after 1m02s (1 of 4)`.

        Stages that ended before the first call are not reported. A plain run has no news.
        """
        if not has_several(manifest):
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
            if state not in (_DONE, _FAILED, _ELIMINATED):
                # From the agent to the gate is not a start.
                if before in (_PENDING, _DONE, _FAILED, _ELIMINATED):
                    self._began_mono[name] = now_mono
                    lines.append(f"{name} started {of}")
                continue
            if before == _PENDING and not is_first:
                # It started and ended between two calls.
                lines.append(f"{name} started {of}")
            ended = "completed" if state == _DONE else state
            began = self._began_mono.pop(name, None)
            took = f" after {clock.duration_text(now_mono - began)}" if began is not None else ""
            lines.append(f"{name} {ended}{took} {of}")
        return lines
