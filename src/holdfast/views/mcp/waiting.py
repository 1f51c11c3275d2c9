"""The tool `wait`: a digest as soon as a task has ended or needs a person, or when its time is over."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import HoldfastError
from holdfast.model import labels
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.facts import digest
from holdfast.views.facts.changes import SCAN_S, Changes
from holdfast.views.mcp import protocol, tools
from holdfast.views.settle import SettleCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Codex cuts a call off after 60 s.
MAX_WAIT_S = 50.0
#: Minimum and maximum time between two digests; interval of progress messages.
_PAUSE_S, _LOOK_S, _PROGRESS_S = 0.2, 5.0, 5.0
_SETTLED = frozenset({*ENDS, Status.INTERRUPTED})


class Wait:
    """One call."""

    def __init__(self, arguments: dict[str, Any], params: dict[str, Any]) -> None:
        self._home = Home(paths.home())
        self._only = tools.task_ids(self._home, arguments)
        self._wanted: dict[str, str] = arguments.get("labels") or {}
        self._until: str = arguments.get("until", "any")
        self._changes = Changes(self._home, only=self._only)  # from here on, nothing is missed
        self._since: str | None = arguments.get("since")
        if self._since is None and self._only is None and not self._wanted:
            self._since = digest.gather(self._home, since=None)["cursor"]
        self._queue = SettleCheck(self._home, say=lambda _: None)
        self._began_mono = self._told_mono = clock.mono()
        self._ends_mono = self._began_mono + min(MAX_WAIT_S, max(0.0, arguments.get("timeout_s", MAX_WAIT_S)))
        self._token = protocol.progress_token(params)
        self._counts: dict[str, int] = {}
        self._looked_mono = float("-inf")
        self._has_changed = True
        self.carries_version = protocol.carries_version(params)

    @property
    def descriptor(self) -> int:
        """Readable when something may have changed; -1 while a change waits to be looked at."""
        return -1 if self._has_changed else self._changes.descriptor

    def due_s(self) -> float:
        """When to look again, if nothing is readable before."""
        pause_s = _PAUSE_S if self._has_changed else SCAN_S if self._changes.descriptor < 0 else _LOOK_S
        return max(0.0, min(self._looked_mono + pause_s, self._ends_mono) - clock.mono())

    def look(self) -> dict[str, Any] | None:
        """The result, or None if it must wait longer."""
        self._has_changed = bool(self._changes.wait(0)) or self._has_changed
        now_mono = clock.mono()
        is_over = now_mono >= self._ends_mono
        if not is_over and now_mono < self._looked_mono + (_PAUSE_S if self._has_changed else _LOOK_S):
            return None
        self._looked_mono, self._has_changed = now_mono, False
        found = digest.gather(self._home, since=self._since, only=self._only, wanted=self._wanted)
        self._counts = found["counts"]
        is_finished = self._is_finished(found)
        if not is_finished and not is_over:
            return None
        return {**found, "finished": is_finished, "waited_s": round(now_mono - self._began_mono, 1)}

    def _is_finished(self, found: dict[str, Any]) -> bool:
        if self._until == "change":
            return bool(found["tasks"] or found["gone"])
        stuck = {task_id for task_id in self._queue.stuck_in_queue() if self._is_asked(task_id)}
        # Fan-outs that wait for a person with their items.
        asking: int = found["asking"]["count"] if "asking" in found else 0
        if self._until == "all":
            at_work = sum(count for state, count in found["counts"].items() if state not in _SETTLED)
            return at_work <= len(stuck) + asking
        # What does not fit into the digest is not known here.
        return bool(found["gone"] or found["left_out"]) or any(
            task["id"] in stuck or "asking" in task or self._is_settled(task) for task in found["tasks"]
        )

    def _is_settled(self, task: dict[str, Any]) -> bool:
        if task["state"] not in _SETTLED:
            return False
        try:
            packet = load.find(self._home, task["id"], archived=True)
            return load.is_settled(packet, load.read_manifest(packet))
        except HoldfastError:
            return True  # it is gone, or nothing will repair it

    def _is_asked(self, task_id: str) -> bool:
        if self._only is not None and task_id not in self._only:
            return False
        try:
            return labels.match(load.read_manifest(self._home.packet(task_id)), self._wanted)
        except HoldfastError:
            return False

    def progress(self, now_mono: float) -> dict[str, Any] | None:
        """What to tell a client that asked for it, if that is due."""
        if self._token is None or now_mono < self._told_mono + _PROGRESS_S:
            return None
        self._told_mono = now_mono
        counts = ", ".join(f"{count} {state}" for state, count in self._counts.items()) or "no tasks"
        return {
            "progressToken": self._token,
            "progress": round(now_mono - self._began_mono, 1),
            "total": round(self._ends_mono - self._began_mono, 1),
            "message": counts,
        }

    def close(self) -> None:
        """Stop watching."""
        self._changes.close()
