"""The digest of a thousand tasks, for row 12: size and time, compared with listing all of them again."""

from __future__ import annotations

import json
import os

from benchmarks.place import Holdfast, Place, duration_ns, program
from benchmarks.stats import median, milliseconds
from benchmarks.table import Baseline, Line
from holdfast.store import atomic
from holdfast.store.layout import Home

#: Targets: bytes if nothing changed, and in any case.
_QUIET_BYTES, _MOST_BYTES = 500, 4096
_MANIFEST = os.path.join(os.path.dirname(__file__), "../../docs/contracts/fixtures/manifest.interrupted.json")


def digest(place: Place) -> list[Line]:
    """The commands that an orchestrator runs: `digest` with its cursor, and `ls --json` instead."""
    count, repeats = place.pick(1000, 100), place.pick(15, 3)
    holdfast = Holdfast(place)
    _fill(Home(holdfast.home), count)
    full = holdfast.call("digest", "--json")
    cursor = str(json.loads(full)["cursor"])
    while json.loads(full)["left_out"]:
        full = holdfast.call("digest", "--json", "--since", cursor)
        cursor = str(json.loads(full)["cursor"])
    quiet = holdfast.call("digest", "--json", "--since", cursor)
    listed = holdfast.call("ls", "--json")
    largest = len(holdfast.call("digest", "--json")) + 1
    commands = {
        "digest": [program(), "digest", "--json", "--since", cursor],
        "ls": [program(), "ls", "--json"],
    }
    times: dict[str, list[int]] = {key: [] for key in commands}
    for _ in range(repeats + 1):
        for key, argv in commands.items():
            times[key].append(duration_ns(argv, holdfast.env))
    ms = {key: median(milliseconds(values[1:])) for key, values in times.items()}
    return [
        Line(
            row=12,
            what=f"{count} tasks, nothing changed: bytes that an orchestrator reads",
            value=len(quiet) + 1,
            unit="bytes",
            baseline=Baseline(name="ls --json", value=len(listed) + 1),
            target=f"≤ {_QUIET_BYTES} bytes",
            met=len(quiet) + 1 <= _QUIET_BYTES,
            notes=(f"a full digest of them is {largest} bytes (at most {_MOST_BYTES})",),
        ),
        Line(
            row=12,
            what=f"{count} tasks, nothing changed: `holdfast digest`",
            value=ms["digest"],
            unit="ms",
            baseline=Baseline(name="ls --json", value=ms["ls"]),
            target="≤ ls --json",
            met=ms["digest"] <= ms["ls"],
        ),
    ]


def _fill(home: Home, count: int) -> None:
    with open(_MANIFEST, encoding="utf-8") as file:
        manifest = json.load(file)
    for number in range(count):
        task_id = f"task-{number:05d}"
        os.makedirs(os.path.join(home.tasks, task_id), mode=0o700)
        atomic.write_json(home.manifest_of(task_id), {**manifest, "task_id": task_id}, durable=False)
