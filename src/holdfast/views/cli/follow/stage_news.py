"""The stages of a followed task: which ones are running, and what is new about them."""

from __future__ import annotations

from holdfast import clock
from holdfast.views.text import describe

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
        self._is_first = True
        self._states: dict[str, str] = {}
        #: Stage → how long it had worked at its last end: what follows is the time of its next pass.
        self._worked_s: dict[str, float] = {}
        #: The last repair that was reported.
        self._repair: dict[str, str] = {}

    def update(self, manifest: dict[str, Any]) -> list[str]:
        """`gemini_brief started (1 of 4)`, `gemini_brief completed after 1m02s (1 of 4)`, and why work went
        back to an agent.

        What was before the first call is not reported. A plain run has no news of stages.
        """
        is_first, self._is_first = self._is_first, False
        lines = self._repairs(manifest, is_first=is_first)
        if not has_several(manifest):
            return lines
        stages: list[dict[str, Any]] = manifest["stages"]
        for number, stage in enumerate(stages, 1):
            name, state = stage["name"], stage["state"]
            before = self._states.get(name, _PENDING)
            self._states[name] = state
            worked_s, before_s = stage.get("worked_s"), self._worked_s.get(name, 0.0)
            if not isinstance(worked_s, (int, float)):
                worked_s = 0.0  # an agent can write the manifest
            if state in (_DONE, _FAILED, _ELIMINATED):
                self._worked_s[name] = worked_s
            if state in (before, _PENDING) or (is_first and state == _DONE):
                continue
            of = f"({number} of {len(stages)})"
            if state not in (_DONE, _FAILED, _ELIMINATED):
                # From the agent to the gate is not a start.
                if before in (_PENDING, _DONE, _FAILED, _ELIMINATED):
                    lines.append(f"{name} started {of}")
                continue
            if before == _PENDING and not is_first:
                # It started and ended between two calls.
                lines.append(f"{name} started {of}")
            ended = "completed" if state == _DONE else state
            took = f" after {clock.duration_text(worked_s - before_s)}" if worked_s else ""
            lines.append(f"{name} {ended}{took} {of}")
        return lines

    def _repairs(self, manifest: dict[str, Any], *, is_first: bool) -> list[str]:
        """`the gate of codex_verify refused the work: make test failed`, of repairs that are new."""
        found: list[dict[str, str]] = manifest.get("repairs") or []
        new = found[found.index(self._repair) + 1 :] if self._repair in found else found
        self._repair = found[-1] if found else {}
        return [] if is_first else [describe.refusal(each) for each in new]
