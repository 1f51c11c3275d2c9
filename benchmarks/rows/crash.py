"""Rows 2 and 3: an agent is killed; when is it noticed, and when does it run again?"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass

from benchmarks import bash_design, supervisor
from benchmarks.bash_design import BashDesign
from benchmarks.place import Holdfast, Place, events, note_times, pause
from benchmarks.programs import Notes, agent, build
from benchmarks.rows.launch import spawn_ns
from benchmarks.stats import median, milliseconds, percentile
from benchmarks.table import Baseline, Line
from tests.support.waiting import eventually

#: A task that is resumed immediately, however often it is killed.
RESTLESS = ("--max-retries", "100000", "--max-interval", "0s", "--stale", "none")


@dataclass(frozen=True)
class Killed:
    """Milliseconds after the kill, one per kill."""

    noticed: list[float]
    running_again: list[float]


def noticed(place: Place) -> list[Line]:
    """Row 2."""
    ours = place.once("crash", lambda: _holdfast(place)).noticed
    p50 = median(ours)
    lines = [
        Line(
            row=2,
            what=f"crash (SIGKILL) → noticed, p50 of {len(ours)}",
            value=p50,
            unit="ms",
            target="≤ 1 ms",
            met=p50 <= 1.0,
            notes=(f"p99 is {percentile(ours, 99):.2f} ms, the worst {max(ours):.2f} ms",),
        )
    ]
    theirs = _in_c(place, len(ours))
    if theirs:
        base = median(theirs)
        lines.append(
            Line(
                row=2,
                what="the same, against C with pidfd and poll",
                value=p50,
                unit="ms",
                baseline=Baseline(name="C", value=base, note=f"p99 {percentile(theirs, 99):.2f}"),
                target="≤ 3× C",
                met=p50 <= 3 * base,
            )
        )
    if bash_design.is_possible(place):
        lines.append(_against_bash(place, p50))
    return lines


def restarted(place: Place) -> list[Line]:
    """Row 3."""
    ours = place.once("crash", lambda: _holdfast(place)).running_again
    start = median(milliseconds([spawn_ns(place) for _ in range(place.pick(20, 5))]))
    value = median(ours)
    note = f"p99 is {percentile(ours, 99):.1f} ms; starting the agent alone takes {start:.1f} ms"
    said = (
        "the bash design does not do it: its wrapper writes the done-file, "
        "which the monitor takes for completion"
    )
    lines = [
        Line(
            row=3,
            what=f"crash → durable record → running again, p50 of {len(ours)}",
            value=value,
            unit="ms",
            baseline=Baseline(name="bash design", value=None),
            target="≤ 30 ms + agent start",
            met=value <= 30 + start,
            notes=(note, said),
        )
    ]
    theirs = supervisor.restarts_ms(place, place.pick(5, 2))
    if theirs:
        lines.append(
            Line(
                row=3,
                what="the same, against supervisord",
                value=value,
                unit="ms",
                baseline=Baseline(name="supervisord", value=median(theirs)),
            )
        )
    return lines


def _holdfast(place: Place) -> Killed:
    kills = place.pick(100, 15)
    home = Holdfast(place)
    passed = os.path.join(home.home, "notes")
    notes = Notes(os.path.join(place.new("agent"), "notes"))
    packet = home.run(
        *RESTLESS,
        "--",
        *agent(place, notes.path, "wait"),
        HOLDFAST_FAILPOINT="observer.noticed=note",
        HOLDFAST_FAILPOINT_NOTES=passed,
    )
    killed_at: list[int] = []
    for turn in range(kills):
        eventually(
            lambda turn=turn: len(events(packet, "attempt.started")) > turn, what="the start is journalled"
        )
        pause(0.01 + random.random() * 0.02)  # at any moment, once the runner sleeps
        pid = notes.read("begin")[turn][1]
        killed_at.append(time.monotonic_ns())
        os.kill(pid, signal.SIGKILL)
        eventually(
            lambda turn=turn: len(notes.read("begin")) > turn + 1, what="it runs again", journal=packet
        )
    place.end_processes()
    begun = [at for at, _ in notes.read("begin")]
    seen = note_times(passed, "observer.noticed")
    return Killed(
        noticed=milliseconds(after - at for at, after in zip(killed_at, seen, strict=True)),
        running_again=milliseconds(after - at for at, after in zip(killed_at, begun[1:], strict=True)),
    )


def _in_c(place: Place, kills: int) -> list[float]:
    watch = build(place, "watch")
    if watch is None:
        return []
    found: list[int] = []
    for _ in range(kills):
        notes = Notes(os.path.join(place.new("agent"), "notes"))
        victim = subprocess.Popen(agent(place, notes.path, "wait"), env=place.env())
        eventually(lambda notes=notes: notes.read("begin"), what="the agent begins")
        watcher = subprocess.Popen(
            [watch, str(victim.pid)], env=place.env(), stdout=subprocess.PIPE, text=True
        )
        assert watcher.stdout is not None
        watcher.stdout.readline()
        pause(0.01 + random.random() * 0.02)
        at = time.monotonic_ns()
        os.kill(victim.pid, signal.SIGKILL)
        found.append(int(watcher.stdout.readline()) - at)
        watcher.stdout.close()
        watcher.wait(timeout=10)
        victim.wait(timeout=10)
    return milliseconds(found)


def _tells_of_end(said: tuple[int, str], since: int) -> bool:
    return said[0] > since and said[1].startswith(("Task completed", "Crash detected"))


def _against_bash(place: Place, p50: float) -> Line:
    """Its monitor polls: measured at one second, scaled to its interval."""
    count, interval_s = place.pick(20, 6), 1
    bash = BashDesign(place)
    tasks: list[tuple[Notes, bash_design.Monitor]] = []
    for turn in range(count):
        notes = Notes(os.path.join(place.new("agent"), "notes"))
        directory = bash.launch(f"t{turn}", agent(place, notes.path, "wait"))
        eventually(lambda directory=directory: os.path.exists(os.path.join(directory, "pid")), what="its pid")
        tasks.append((notes, bash.monitor(f"t{turn}", directory, interval_s=interval_s, grace_s=3600)))
    pause(1.5)
    took: list[int] = []
    for notes, _ in tasks:
        pause(random.random() * 0.2)
        at = time.monotonic_ns()
        os.kill(notes.read("begin")[0][1], signal.SIGKILL)
        took.append(at)
    found: list[int] = []
    words: dict[str, int] = {}
    for at, (_, monitor) in zip(took, tasks, strict=True):
        # Earlier messages (a silent agent is stale for it) are not about the kill.
        after, word = eventually(
            lambda at=at, monitor=monitor: next(
                (said for said in monitor.said if _tells_of_end(said, at)), None
            ),
            within_s=30,
            what="the monitor notices",
        )
        found.append(after - at)
        word = word.partition(" (")[0]
        words[word] = words.get(word, 0) + 1
    place.end_processes()
    for _, monitor in tasks:
        monitor.end()
    scale = bash_design.INTERVAL_S // interval_s
    return Line(
        row=2,
        what="the same, against the bash design's monitor",
        value=p50,
        unit="ms",
        baseline=Baseline(
            name="bash design",
            value=median(milliseconds(found)) * scale,
            note=f"polled each second, ×{scale}",
        ),
        notes=(
            f"on {count} killed agents its monitor said: "
            + "; ".join(f"{text} ({n})" for text, n in words.items()),
        ),
    )
