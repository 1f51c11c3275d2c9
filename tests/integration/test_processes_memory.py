"""Memory of the processes that live as long as an agent."""

from __future__ import annotations

import os
import subprocess
import sys

_SCRIPT = """
import os, signal, sys
from holdfast import recorder, idle_recorder

def written(pid):
    "What a process has written into its memory, piece by piece."
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for span, rights, *_, name in map(str.split, maps):
            if rights.startswith("rw") and not name.startswith("[v"):
                first, end = (int(place, 16) for place in span.split("-"))
                memory.seek(first)
                yield memory.read(end - first)

directory = sys.argv[1]
idle_recorder.prepare()
told, tell = os.pipe()
lock = (os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT), os.open(directory, os.O_RDONLY))
mark = "of the agent alone " * 50
env = {f"LARGE_{number}": mark * 100 for number in range(8)}
order = recorder.Order(
    directory=directory, argv=["/bin/sleep", "60"], env=env, cwd="/", stdin=os.devnull, umask=0o22, limits={}
)
pid = idle_recorder.send_order(order, lock, tell, keep=(), sign=lambda pid: b"signed")
os.close(tell)
os.read(told, 1)  # the agent was forked, and executed
with open(os.path.join(directory, "pid")) as file:
    agent = int(file.read())
with open(f"/proc/{agent}/environ", "rb") as file:
    print("agent", file.read().count(mark.encode()))
print("recorder", sum(part.count(mark.encode()) for part in written(pid)))
os.kill(agent, signal.SIGKILL)
os.waitpid(pid, 0)
"""


def test_the_recorder_keeps_nothing_of_its_order(home: str) -> None:
    """The environment of an agent is in it, which can be large."""
    directory = os.path.join(home, "attempt")
    os.mkdir(directory)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, directory], capture_output=True, text=True, timeout=30, check=False
    )
    agent, recorder = done.stdout.splitlines()
    assert agent == "agent 800", done.stderr
    assert int(recorder.split()[1]) <= 8, "a page or two of what was given back"
