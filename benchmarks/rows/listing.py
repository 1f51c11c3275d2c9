"""Row 8: `holdfast ls` with ten thousand tasks, compared with a bare interpreter; and rebuilding the
index."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time

from benchmarks.place import Holdfast, Place, duration_ns, program
from benchmarks.stats import median, milliseconds
from benchmarks.table import Baseline, Line
from holdfast.store.index import Index
from holdfast.store.layout import Home

#: Verbs without a target.
_OTHERS = ("show", "wait", "status")


def listing(place: Place) -> list[Line]:
    """Interleaved with a bare interpreter, one with json and sqlite3, and jq per task."""
    count, repeats = place.pick(10_000, 500), place.pick(15, 5)
    holdfast = Holdfast(place)
    task_id = _fill(holdfast, count)
    began = time.monotonic_ns()
    Index(Home(holdfast.home)).close()
    cold_rebuild_ms = (time.monotonic_ns() - began) / 1e6
    os.unlink(os.path.join(holdfast.home, "index.db"))
    began = time.monotonic_ns()
    Index(Home(holdfast.home)).close()
    rebuild_ms = (time.monotonic_ns() - began) / 1e6
    commands = {
        "ls": [program(), "ls"],
        "bare": [sys.executable, "-I", "-S", "-c", ""],
        "loaded": [sys.executable, "-c", "import json, sqlite3"],
        "show": [program(), "show", task_id],
        "wait": [program(), "wait", task_id],
        "status": [program(), "status"],
    }
    times: dict[str, list[int]] = {key: [] for key in commands}
    for _ in range(repeats + 1):
        for key, argv in commands.items():
            times[key].append(duration_ns(argv, holdfast.env))
    ms = {key: median(milliseconds(values[1:])) for key, values in times.items()}
    others = ", ".join(f"{key} {ms[key]:.1f} ms ({ms[key] / ms['bare']:.1f}×)" for key in _OTHERS)
    return [
        Line(
            row=8,
            what=f"`holdfast ls` with {count} tasks",
            value=ms["ls"],
            unit="ms",
            baseline=Baseline(name="bare python", value=ms["bare"]),
            target="≤ 3.5× bare Python",
            met=ms["ls"] <= 3.5 * ms["bare"],
            notes=(
                f"python with json and sqlite3 loaded takes {ms['loaded']:.1f} ms "
                f"({ms['loaded'] / ms['bare']:.1f}×)",
                f"in the same home: {others}",
            ),
        ),
        Line(
            row=8,
            what=f"the index of {count} tasks built anew, warm",
            value=rebuild_ms / 1000,
            unit="s",
            target="≤ 1 s",
            met=rebuild_ms <= 1000,
            notes=(f"the first time it took {cold_rebuild_ms / 1000:.2f} s",),
        ),
    ]


def _fill(holdfast: Holdfast, count: int) -> str:
    """One real task, whose id is returned, and copies of its manifest and journal under other ids."""
    packet = holdfast.run("--", "true")
    holdfast.call("wait", os.path.basename(packet), "--timeout", "30s")
    home = Home(holdfast.home)
    real = home.packet(os.path.basename(packet))
    with open(real.manifest, encoding="utf-8") as file:
        manifest = json.load(file)
    for number in range(count - 1):
        task_id = f"20260101-task-{number:05d}"
        folder = os.path.join(holdfast.home, "tasks", task_id)
        os.mkdir(folder, 0o700)
        with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as file:
            json.dump({**manifest, "task_id": task_id}, file)
        # Without a journal that confirms it, no end is believed.
        other = home.packet(task_id)
        shutil.copyfile(real.journal, other.journal)
        shutil.copyfile(real.seals, other.seals)
    return os.path.basename(packet)
