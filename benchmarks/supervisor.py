"""supervisord as a baseline, if it is installed (`pip install supervisor`, anywhere on PATH)."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time

from benchmarks.place import Place, pause
from benchmarks.programs import Notes, agent
from benchmarks.stats import milliseconds
from tests.support.waiting import eventually

_CONFIG = """\
[supervisord]
nodaemon=true
logfile={folder}/log
pidfile={folder}/pid

[program:agent]
command={command}
autorestart=true
startsecs=0
stdout_logfile=NONE
stderr_logfile=NONE
"""


def restarts_ms(place: Place, kills: int) -> list[float]:
    """Time from SIGKILL to the agent's next first instruction; empty without supervisord."""
    program = shutil.which("supervisord")
    if program is None:
        return []
    folder = place.new("supervisord")
    notes = Notes(os.path.join(folder, "notes"))
    config = os.path.join(folder, "config")
    with open(config, "w", encoding="utf-8") as file:
        file.write(_CONFIG.format(folder=folder, command=shlex.join(agent(place, notes.path, "wait"))))
    daemon = subprocess.Popen(
        [program, "-c", config],
        env=place.env(),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found: list[int] = []
    for turn in range(kills):
        eventually(
            lambda turn=turn: len(notes.read("begin")) > turn, within_s=30, what="supervisord starts it"
        )
        # Longer than its tick, or it takes the death for a failed start.
        pause(1.3)
        at = time.monotonic_ns()
        os.kill(notes.read("begin")[turn][1], signal.SIGKILL)
        eventually(lambda turn=turn: len(notes.read("begin")) > turn + 1, within_s=30, what="it runs again")
        found.append(notes.read("begin")[turn + 1][0] - at)
    place.end_processes()
    daemon.wait(timeout=10)
    return milliseconds(found)
