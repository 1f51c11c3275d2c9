"""Row 12: learning of changes with a thousand live tasks, compared with reading all manifests again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from threading import Timer

from benchmarks.place import Place
from benchmarks.rows.digest import digest
from benchmarks.stats import percentile
from benchmarks.table import Baseline, Line
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.views.facts.changes import Changes

#: Targets: CPU while nothing happens, and the time until a change is seen.
_CPU_MS_PER_S, _SEEN_MS = 10.0, 250.0
#: How often everything is read again for the same delay.
_READ_S = 0.2
_MANIFEST = os.path.join(os.path.dirname(__file__), "../../docs/contracts/fixtures/manifest.running.json")


def changes(place: Place) -> list[Line]:
    """In one process: the feed, and a loop that reads every manifest five times a second."""
    count, while_s = place.pick(1000, 100), float(place.pick(20, 6))
    home = Home(place.new("home"))
    _fill(home, count)
    feed = Changes(home)
    try:
        seen_ms = [_seen_ms(home, feed, number % count) for number in range(place.pick(200, 20))]
        feed.wait(1.0)
        place.progress(f"idle for {while_s:g} s")
        feed_ms = _cpu_ms_per_s(lambda: feed.wait(while_s), while_s)
    finally:
        feed.close()
    read_ms = _cpu_ms_per_s(lambda: _read_again(home, count, while_s), while_s)
    return [
        Line(
            row=12,
            what=f"{count} live tasks: CPU of a view that waits for a change",
            value=feed_ms,
            unit="ms/s",
            baseline=Baseline(name="reading all manifests 5 times a second", value=read_ms),
            target=f"≤ {_CPU_MS_PER_S:g} ms/s",
            met=feed_ms <= _CPU_MS_PER_S,
        ),
        Line(
            row=12,
            what=f"{count} live tasks: manifest written → change seen, p95 of {len(seen_ms)}",
            value=percentile(seen_ms, 95),
            unit="ms",
            target=f"≤ {_SEEN_MS:g} ms",
            met=percentile(seen_ms, 95) <= _SEEN_MS,
        ),
        *digest(place),
    ]


def _task(number: int) -> str:
    return f"task-{number:05d}"


def _fill(home: Home, count: int) -> None:
    with open(_MANIFEST, encoding="utf-8") as file:
        manifest = json.load(file)
    for number in range(count):
        os.makedirs(os.path.join(home.tasks, _task(number), "done"), mode=0o700)
        _write(home, {**manifest, "task_id": _task(number)})


def _write(home: Home, manifest: dict[str, object]) -> None:
    """As a runner writes it."""
    atomic.write_json(home.manifest_of(str(manifest["task_id"])), manifest, durable=False)


def _seen_ms(home: Home, feed: Changes, number: int) -> float:
    manifest = load.read_manifest(home.packet(_task(number)))
    written_ns: list[int] = []

    def write() -> None:
        written_ns.append(time.monotonic_ns())
        _write(home, manifest)

    timer = Timer(0.005, write)
    timer.start()
    while _task(number) not in feed.wait(5.0):
        pass
    seen_ns = time.monotonic_ns()
    timer.join()
    return (seen_ns - written_ns[0]) / 1e6


def _read_again(home: Home, count: int, while_s: float) -> None:
    ends = time.monotonic() + while_s
    while time.monotonic() < ends:
        for number in range(count):
            load.read_manifest(home.packet(_task(number)))
        time.sleep(_READ_S)


def _cpu_ms_per_s(run: Callable[[], object], while_s: float) -> float:
    before, began = time.process_time(), time.monotonic()
    run()
    return (time.process_time() - before) * 1000 / max(while_s, time.monotonic() - began)
