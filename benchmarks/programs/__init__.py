"""The small C programs of the benchmarks, compiled if there is a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from benchmarks.place import Place

_HERE = os.path.dirname(os.path.abspath(__file__))


def build(place: Place, name: str) -> str | None:
    """The compiled program `name`; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None

    def compile_it() -> str:
        target = place.path("bin", name)
        source = os.path.join(_HERE, f"{name}.c")
        subprocess.run([compiler, "-O2", "-o", target, source], check=True, timeout=60)
        return target

    return place.once(f"program {name}", compile_it)


def agent(place: Place, notes: str, mode: str) -> list[str]:
    """The command line of the agent that records its start in `notes`."""
    compiled = build(place, "agent")
    if compiled is not None:
        return [compiled, notes, mode]
    return [sys.executable, "-I", "-S", os.path.join(_HERE, "agent.py"), notes, mode]


class Notes:
    """The notes of an agent."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self, what: str) -> list[tuple[int, int]]:
        """Nanoseconds and pid of each note `what`, in order."""
        try:
            with open(self.path, encoding="ascii") as file:
                fields = [line.split() for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []
        return [(int(at), int(pid)) for name, at, pid in fields if name == what]
