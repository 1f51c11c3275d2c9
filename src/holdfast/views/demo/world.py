"""The demo's home and project, in one directory. Nothing outside it is touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess

from holdfast import clock, own_python, program_search
from holdfast.errors import HoldfastError
from holdfast.model.process import ProcessIdentity
from holdfast.packet import load
from holdfast.store import lock as locks
from holdfast.store import lock_owner, process
from holdfast.store.layout import Home, Packet
from holdfast.views import programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

_COMMAND_S = 20.0
_POLL_S = 0.002


class DemoFailed(HoldfastError):
    """The demo did not go as expected."""

    code = "demo-failed"
    exit_status = 1


class DemoWorld:
    """A home, a project, and the scripted agent's memory."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.home = Home(os.path.join(folder, "home"))
        self.project = os.path.join(folder, "project")
        os.makedirs(self.project, mode=0o700, exist_ok=True)
        # Drop the caller's home, settings and task: the demo must look the same for everyone.
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HOLDFAST_", "MONITOR_")) and name != "XDG_CONFIG_HOME"
        }
        self.env = {
            **env,
            "HOLDFAST_HOME": self.home.path,
            # Its home and settings do not know the user's projects.
            "PATH": program_search.search_path(),
            "HOLDFAST_SCRIPTED_STATE": os.path.join(folder, "agent"),
            "XDG_CONFIG_HOME": os.path.join(folder, "config"),
        }
        self.packet: Packet | None = None

    def holdfast(self, *words: str) -> str:
        """Run `holdfast WORDS…` in this home and return its stdout. Raises DemoFailed."""
        argv = own_python.command("holdfast", *words)
        try:
            done = programs.run(argv, timeout_s=_COMMAND_S, env=self.env, cwd=self.project)
        except subprocess.TimeoutExpired as error:
            raise DemoFailed(f"'holdfast {words[0]}' did not return within {_COMMAND_S:.0f}s") from error
        if done.returncode:
            message = done.stderr.strip().replace("\n", "; ")
            raise DemoFailed(f"'holdfast {words[0]}' failed with status {done.returncode}: {message}")
        return done.stdout

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The journal's events of one type."""
        assert self.packet is not None
        with open(self.packet.journal, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
        return [event for event in map(json.loads, lines) if event["type"] == kind]

    def event(self, kind: str, number: int) -> dict[str, Any] | None:
        """The nth event of a type, counted from 1; None if there are fewer."""
        events = self.events(kind)
        return events[number - 1] if len(events) >= number else None

    def until(self, condition: Callable[[], T | None], what: str, within_s: float = 15.0) -> T:
        """Wait until `condition` returns a true value, and return it. Raises DemoFailed."""
        ends_mono = clock.mono() + within_s
        while True:
            value = condition()
            if value:
                return value
            if clock.mono() > ends_mono:
                raise DemoFailed(
                    f"did not happen within {within_s:.0f}s: {what}", hint=f"see the files in {self.folder}"
                )
            clock.sleep(_POLL_S)

    def owner(self, lock: str) -> ProcessIdentity | None:
        """The live process that holds a lock."""
        owner = lock_owner.owner(lock) if locks.is_held(lock) else None
        return owner if owner is not None and process.is_alive(owner) else None

    def kill(self, identity: ProcessIdentity) -> float:
        """Send SIGKILL; returns the time."""
        at = clock.now()
        os.kill(identity.pid, signal.SIGKILL)
        return at

    def leave(self) -> None:
        """Stop everything that runs in this home, also after an aborted demo."""
        try:
            packet = self.packet or self._find_packet()
            if packet is not None and not os.path.exists(packet.task_done):
                self.holdfast("stop", packet.task_id)
                self.until(lambda: os.path.exists(packet.task_done), "the task is stopped")
            if os.path.isdir(self.home.path):
                self.holdfast("down")
        finally:
            self._end_all()

    def _find_packet(self) -> Packet | None:
        """The task, if the demo was aborted after creating it but before learning its id."""
        return next((self.home.packet(task_id) for task_id in load.task_ids(self.home)), None)

    def _end_all(self) -> None:
        """Wait for the processes of this home to exit; after two seconds, kill them."""
        ends_mono = clock.mono() + 5.0
        while pids := self._pids():
            if clock.mono() > ends_mono:
                raise DemoFailed(f"processes {pids} did not exit")
            if clock.mono() > ends_mono - 3.0:
                for pid in pids:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
            clock.sleep(0.02)

    def _pids(self) -> list[int]:
        """Live processes that were executed with this home in their environment."""
        return [
            pid
            for pid in process.all_pids()
            if process.variable(pid, "HOLDFAST_HOME") == self.home.path and _is_alive(pid)
        ]


def _is_alive(pid: int) -> bool:
    identity = process.identify(pid)
    return identity is not None and process.is_alive(identity)
