"""The demo's own home: started, looked at and emptied. It touches nothing outside its directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.process import ProcessIdentity
from holdfast.packet import load
from holdfast.store import lock as locks
from holdfast.store import process
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

_COMMAND_S = 20.0
_POLL_S = 0.002


class DemoFailed(HoldfastError):
    """The demo did not go as it should."""

    code = "demo-failed"
    exit_status = 1


class World:
    """A home, a project, and the memory of the scripted agent, in one directory."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.home = Home(os.path.join(folder, "home"))
        self.project = os.path.join(folder, "project")
        os.makedirs(self.project, mode=0o700, exist_ok=True)
        # Nothing of the caller's holdfast, settings or task: the demo shows what everybody gets.
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HOLDFAST_", "MONITOR_")) and name != "XDG_CONFIG_HOME"
        }
        self.env = {
            **env,
            "HOLDFAST_HOME": self.home.path,
            "HOLDFAST_SCRIPTED_STATE": os.path.join(folder, "agent"),
            "XDG_CONFIG_HOME": os.path.join(folder, "config"),
        }
        self.packet: Packet | None = None

    def holdfast(self, *words: str) -> str:
        """`holdfast WORDS…` in this home, as a person types it; returns what it printed. Raises DemoFailed."""
        argv = [sys.executable, "-P", "-m", "holdfast", *words]
        try:
            done = subprocess.run(
                argv,
                env=self.env,
                cwd=self.project,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=_COMMAND_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DemoFailed(f"'holdfast {words[0]}' did not come back in {_COMMAND_S:.0f}s") from error
        if done.returncode:
            said = done.stderr.strip().replace("\n", "; ")
            raise DemoFailed(f"'holdfast {words[0]}' failed with status {done.returncode}: {said}")
        return done.stdout

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The journal's events of one type."""
        assert self.packet is not None
        with open(self.packet.journal, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
        return [event for event in map(json.loads, lines) if event["type"] == kind]

    def event(self, kind: str, number: int) -> dict[str, Any] | None:
        """The so-manyth event of a type, once it is there."""
        found = self.events(kind)
        return found[number - 1] if len(found) >= number else None

    def until(self, look: Callable[[], T | None], what: str, within_s: float = 15.0) -> T:
        """What `look` finds, as soon as it finds something. Raises DemoFailed."""
        ends_mono = clock.mono() + within_s
        while True:
            found = look()
            if found:
                return found
            if clock.mono() > ends_mono:
                raise DemoFailed(f"not within {within_s:.0f}s: {what}", hint=f"look into {self.folder}")
            clock.sleep(_POLL_S)

    def owner(self, lock: str) -> ProcessIdentity | None:
        """Who holds a lock now."""
        found = locks.owner(lock) if locks.is_held(lock) else None
        return found if found is not None and process.is_alive(found) else None

    def kill(self, identity: ProcessIdentity) -> float:
        """SIGKILL; returns the time of it."""
        at = clock.now()
        os.kill(identity.pid, signal.SIGKILL)
        return at

    def leave(self) -> None:
        """Stop everything that runs in this home. For a demo that was cut short, too."""
        try:
            packet = self.packet or self._find()
            if packet is not None and not os.path.exists(packet.task_done):
                self.holdfast("stop", packet.task_id)
                self.until(lambda: os.path.exists(packet.task_done), "the task is stopped")
            if os.path.isdir(self.home.path):
                self.holdfast("down")
        finally:
            self._end_all()

    def _find(self) -> Packet | None:
        """The task, for whoever was not told: the demo may have been cut short between its making and its name."""
        return next((self.home.packet(task_id) for task_id in load.task_ids(self.home)), None)

    def _end_all(self) -> None:
        """Whatever was executed with this home in its environment."""
        ends_mono = clock.mono() + 5.0
        while left := self.processes():
            if clock.mono() > ends_mono:
                raise DemoFailed(f"processes {left} did not leave")
            if clock.mono() > ends_mono - 3.0:
                for pid in left:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
            clock.sleep(0.02)

    def processes(self) -> list[int]:
        """Living processes of this home."""
        return [
            pid
            for pid in process.all_pids()
            if process.variable(pid, "HOLDFAST_HOME") == self.home.path and _is_alive(pid)
        ]


def _is_alive(pid: int) -> bool:
    found = process.identify(pid)
    return found is not None and process.is_alive(found)
