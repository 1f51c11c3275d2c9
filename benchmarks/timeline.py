"""`python -m benchmarks.timeline`: where the time of a launch and of a restart goes, from failpoint to
failpoint."""

from __future__ import annotations

import os
import signal
import sys
import time

from benchmarks.place import Holdfast, Place, events, pause
from benchmarks.programs import Notes, agent
from benchmarks.rows.crash import RESTLESS
from benchmarks.stats import median
from tests.support.waiting import eventually

Passed = list[tuple[int, str]]


def main() -> int:
    """Print both timelines: microseconds since the first failpoint, and since the previous one."""
    place = Place(quick=False, jq=None)
    try:
        _show("launch, cold", [_launch(place, with_seed=False) for _ in range(10)])
        _show("launch, through the seed", [_launch(place, with_seed=True) for _ in range(10)])
        _show("crash and restart", _restarts(place, 20))
    finally:
        place.close()
    return 0


def _env(home: Holdfast) -> dict[str, str]:
    home.env["HOLDFAST_FAILPOINT"] = "*=note"
    home.env["HOLDFAST_FAILPOINT_NOTES"] = os.path.join(home.home, "notes")
    return home.env


def _passed(home: Holdfast, notes: Notes) -> Passed:
    with open(os.path.join(home.home, "notes"), encoding="utf-8") as file:
        fields = [line.split() for line in file]
    found = [(int(at), name) for at, _, name in fields]
    return sorted([*found, *((at, "AGENT BEGINS") for at, _ in notes.read("begin"))])


def _launch(place: Place, *, with_seed: bool) -> Passed:
    home = Holdfast(place)
    _env(home)
    if with_seed:
        home.start_seed()
    notes = Notes(os.path.join(place.new("agent"), "notes"))
    began = time.monotonic_ns()
    packet = home.run("--", *agent(place, notes.path, "wait"))
    eventually(lambda: events(packet, "attempt.started"), what="it runs")
    pause(0.05)
    place.end_processes()
    return [(began, "COMMAND"), *(item for item in _passed(home, notes) if item[0] > began)]


def _restarts(place: Place, kills: int) -> list[Passed]:
    home = Holdfast(place)
    _env(home)
    notes = Notes(os.path.join(place.new("agent"), "notes"))
    packet = home.run(*RESTLESS, "--", *agent(place, notes.path, "wait"))
    killed: list[int] = []
    for turn in range(kills):
        eventually(lambda turn=turn: len(events(packet, "attempt.started")) > turn, what="it runs")
        pause(0.05)
        killed.append(time.monotonic_ns())
        os.kill(notes.read("begin")[turn][1], signal.SIGKILL)
        eventually(lambda turn=turn: len(notes.read("begin")) > turn + 1, what="it runs again")
    pause(0.1)
    place.end_processes()
    passed = _passed(home, notes)
    ends = [*killed[1:], killed[-1] + 10**9]
    return [
        [(begin, "SIGKILL"), *(item for item in passed if begin < item[0] < end)]
        for begin, end in zip(killed, ends, strict=True)
    ]


def _show(title: str, runs: list[Passed]) -> None:
    """Medians of the runs for each failpoint; repeated passes of a failpoint are counted separately."""
    since_start: dict[str, list[float]] = {}
    for run in runs:
        seen: dict[str, int] = {}
        for at, name in run:
            seen[name] = seen.get(name, 0) + 1
            key = name if seen[name] == 1 else f"{name} #{seen[name]}"
            since_start.setdefault(key, []).append((at - run[0][0]) / 1000)
    # Failpoints that only some runs passed would disturb the order.
    points = sorted((median(v), key) for key, v in since_start.items() if len(v) * 2 > len(runs))
    print(f"\n{title} (median of {len(runs)}, µs)")
    before = 0.0
    for at, name in points:
        print(f"{at:10.0f}  {at - before:+8.0f}  {name}")
        before = at


if __name__ == "__main__":
    sys.exit(main())
