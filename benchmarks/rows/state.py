"""Row 6: one durable state change: the event synced, the manifest renamed."""

from __future__ import annotations

import os
import subprocess
import time

from benchmarks.bash_design import jq_version
from benchmarks.place import Holdfast, Place
from benchmarks.rows.launch import new_packet
from benchmarks.stats import median, milliseconds, percentile
from benchmarks.table import Baseline, Line
from holdfast.model import events as ev
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.store.journal import Journal
from holdfast.store.layout import Packet

_JQ = ". + {status: $status, retry_count: $retry_count, last_checked_at: $at}"


def state_change(place: Place) -> list[Line]:
    """Ours, a raw append with fdatasync, and jq with mv, in turn."""
    repeats = place.pick(400, 60)
    packet = Packet(new_packet(Holdfast(place), ["true"]))
    journal = Journal(packet.journal)
    ledger = Ledger(packet, load.fold(packet), journal, Redactor({}))
    raw = os.open(place.path("raw"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    line = b"x" * 199 + b"\n"
    ours: list[int] = []
    appends: list[int] = []
    with_jq: list[int] = []
    try:
        for turn in range(repeats):
            new, old = (Status.WAITING, Status.SPAWNING)[:: 1 if turn % 2 else -1]
            event = ev.TaskMoved(old=old, new=new, reason="a benchmark")
            began = time.monotonic_ns()
            ledger.record(event)
            ours.append(time.monotonic_ns() - began)
            began = time.monotonic_ns()
            os.write(raw, line)
            os.fdatasync(raw)
            appends.append(time.monotonic_ns() - began)
            if place.jq is not None and turn % 8 == 0:
                with_jq.append(_jq_and_mv(place, packet.manifest))
    finally:
        ledger.close()
        os.close(raw)
    value, limit = median(milliseconds(ours)), median(milliseconds(appends))
    lines = [
        Line(
            row=6,
            what="durable state change: event synced, manifest renamed",
            value=value,
            unit="ms",
            baseline=Baseline(name="append + fdatasync", value=limit),
            target="≤ 0.6 ms",
            met=value <= 0.6,
            notes=(f"p99 is {percentile(milliseconds(ours), 99):.2f} ms",),
        )
    ]
    if with_jq:
        lines.append(
            Line(
                row=6,
                what="the same, against jq and mv without a sync",
                value=value,
                unit="ms",
                baseline=Baseline(name=jq_version(place), value=median(milliseconds(with_jq))),
            )
        )
    return lines


def _jq_and_mv(place: Place, manifest: str) -> int:
    """As the bash design's monitor does it, from a shell that is already running."""
    copy = place.path("manifest.json")
    if not os.path.exists(copy):
        with open(manifest, "rb") as source, open(copy, "wb") as target:
            target.write(source.read())
    script = (
        f'jq --arg status crashed --argjson retry_count 1 --arg at "$(date -u +%Y-%m-%dT%H:%M:%SZ)" '
        f"'{_JQ}' "
        f"{copy} > {copy}.tmp && mv {copy}.tmp {copy}; echo done"
    )
    with subprocess.Popen(
        ["bash"], env=place.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        print("echo ready", file=shell.stdin, flush=True)
        shell.stdout.readline()
        began = time.monotonic_ns()
        print(script, file=shell.stdin, flush=True)
        shell.stdout.readline()
        took = time.monotonic_ns() - began
        shell.stdin.close()
    return took
