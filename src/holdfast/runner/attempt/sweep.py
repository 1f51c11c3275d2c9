"""The sweep: kill the processes that an attempt left running, and no others.

It finds all descendants of the recorder (orphans re-parent to it), processes re-parented to us because the
recorder was dead, and every process with the attempt's marker in its environment. It spares processes of
another holdfast and their descendants: they have HOLDFAST_ROLE, the marker of another attempt, or a flock on
one of our files.
"""

from __future__ import annotations

import os

from holdfast import clock, ids
from holdfast.model.process import ProcessIdentity
from holdfast.redact import Redactor
from holdfast.store import process
from holdfast.store.layout import is_our_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal  # the C module: import time delays the start of the agent

#: Time between SIGTERM and SIGKILL.
TERM_S = 2.0
#: Processes still alive after this time count as unkillable.
GIVE_UP_S = 30.0
_PASS_S = 0.01


class Sweep:
    """One sweep, in passes that do not block."""

    def __init__(self, marker: str, recorder: int | None, *, attempt_id: str, tree_known: bool) -> None:
        self.marker = marker
        self.attempt_id = attempt_id
        #: The marker without the home: `/tasks/ID/attempts/NAME`.
        self._within = "/" + "/".join(marker.split("/")[-4:])
        self.recorder = recorder
        self.tree_known = tree_known
        self.killed: dict[int, str] = {}
        self.spared: dict[int, str] = {}
        #: Processes without our marker in an earlier pass; reading all environments again is slow.
        self._unmarked: set[int] = {os.getpid()}
        self._empty_passes = 0
        self._began_mono = clock.mono()
        self.proof = ""
        self.unkillable: tuple[int, ...] = ()

    def sweep(self) -> float | None:
        """Run one pass. Returns when the next one is due (monotonic), or None if the sweep is complete."""
        victims = self.find()
        if not victims:
            self._empty_passes += 1
            if self._empty_passes >= 2:
                self.proof = "none left" if self.tree_known else "none marked"
                return None
            return clock.mono()
        self._empty_passes = 0
        age_s = clock.mono() - self._began_mono
        if age_s > GIVE_UP_S:
            self.unkillable = tuple(sorted(victim.pid for victim in victims))
            self.proof = f"{len(victims)} cannot be killed: {list(self.unkillable)}"
            return None
        for victim in victims:
            if victim.pid not in self.killed:
                self.killed[victim.pid] = process.command_line(victim.pid)
                process.send(victim, signal.SIGTERM)
                process.send(victim, signal.SIGCONT)
            elif age_s >= TERM_S:
                process.send(victim, signal.SIGKILL)
        return clock.mono() + (_PASS_S if age_s < 0.1 else 0.05)

    def find(self) -> list[ProcessIdentity]:
        """Live processes of the attempt, without the spared ones."""
        me = os.getpid()
        roots = [self.recorder] if self.recorder is not None else []
        pids: set[int] = set()
        for root in roots:
            pids.update(process.descendants(root))
        # Processes re-parented to us belong to the attempt; the recorder itself does not.
        pids.update(pid for pid in process.children(me) if pid not in roots)
        for pid in process.all_pids():
            if pid in pids or pid in self._unmarked:
                continue
            marker = process.variable(pid, "HOLDFAST_ATTEMPT")
            if marker is not None and self._is_ours(pid, marker):
                pids.add(pid)
            else:
                self._unmarked.add(pid)
        pids -= {me, *roots}
        spared: set[int] = set()
        for pid in pids:
            if self._is_of_another(pid):
                spared.update([pid, *process.descendants(pid)])
        for pid in spared & pids:
            self.spared.setdefault(pid, process.command_line(pid))
        identities = (process.identify(pid) for pid in pids - spared)
        return [identity for identity in identities if identity is not None and process.is_alive(identity)]

    def _is_ours(self, pid: int, marker: str) -> bool:
        """Whether `marker` is the attempt's, or was before the home was renamed.

        Another home may have the old name now, so the attempt's id decides, unless the agent replaced it.
        """
        if not marker.endswith(self._within):
            return False
        attempt_id = process.variable(pid, "SESSION_ID") or ""
        return attempt_id == self.attempt_id or (marker == self.marker and not ids.is_attempt_id(attempt_id))

    def _is_of_another(self, pid: int) -> bool:
        environ = process.environment(pid)
        if "HOLDFAST_ROLE" in environ:
            return True
        marker = environ.get("HOLDFAST_ATTEMPT")
        if marker is not None and not self._is_ours(pid, marker):
            return True
        return holds_our_lock(pid, self.marker)


def holds_our_lock(pid: int, marker: str) -> bool:
    """Whether `pid` holds a flock on a lock file of holdfast other than the attempt's."""
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for descriptor in descriptors:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            if not is_our_lock(target) or os.path.dirname(target) == marker:
                continue
            with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii", errors="replace") as file:
                if "FLOCK" in file.read():
                    return True
        except OSError:
            continue
    return False


def as_list(commands: dict[int, str], redact: Redactor) -> list[dict[str, Any]]:
    """Processes for the journal; command lines are redacted."""
    return [{"pid": pid, "command": redact(command)[:200]} for pid, command in commands.items()]
