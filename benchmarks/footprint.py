"""What the processes of a benchmark use: memory, CPU, wake-ups, descriptors."""

from __future__ import annotations

import os
from dataclasses import dataclass

from benchmarks.place import Place, pause

_NAMES = {
    "holdfast-seed": "seed",
    "holdfast-keep": "keeper",
    "holdfast-run": "runner",
    "holdfast-rec": "recorder",
}


@dataclass(frozen=True)
class Use:
    """What a set of processes used during a period."""

    cpu_ms_per_s: float
    wakeups_per_s: float


def ours(place: Place) -> dict[str, list[int]]:
    """Seed, keeper, runners and recorders, by role; without the agents."""
    found: dict[str, list[int]] = {role: [] for role in _NAMES.values()}
    for process in place.alive():
        role = _NAMES.get(comm(process.pid))
        if role is not None:
            found[role].append(process.pid)
    return found


def comm(pid: int) -> str:
    """The short name of a process; empty if it is gone."""
    return _read(f"/proc/{pid}/comm").strip()


def pss_mb(pid: int) -> float:
    """Memory of a process: its own, and its share of what it shares."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def use(pids: list[int], while_s: float) -> Use:
    """Watch processes for a while."""
    before = [(_cpu_ns(pid), _voluntary(pid)) for pid in pids]
    pause(while_s)
    after = [(_cpu_ns(pid), _voluntary(pid)) for pid in pids]
    pairs = list(zip(before, after, strict=True))
    return Use(
        cpu_ms_per_s=sum(new[0] - old[0] for old, new in pairs) / 1e6 / while_s,
        wakeups_per_s=sum(new[1] - old[1] for old, new in pairs) / while_s,
    )


def with_children_ms(pid: int) -> float:
    """CPU of a process and of all its reaped children."""
    raw = _read(f"/proc/{pid}/stat")
    fields = raw[raw.rfind(")") + 2 :].split()
    return sum(int(value) for value in fields[11:15]) * 1000 / os.sysconf("SC_CLK_TCK") if fields else 0.0


def descriptors(pid: int) -> int:
    """How many files a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def _cpu_ns(pid: int) -> int:
    """CPU time, from the scheduler."""
    fields = _read(f"/proc/{pid}/schedstat").split()
    return int(fields[0]) if fields else 0


def _voluntary(pid: int) -> int:
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith("voluntary_ctxt_switches:"):
            return int(line.split()[1])
    return 0


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
