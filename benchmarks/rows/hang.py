"""Row 4: how late is a hang detected, and is a healthy silence ever taken for one?"""

from __future__ import annotations

import os
import time

from benchmarks import bash_design
from benchmarks.bash_design import BashDesign
from benchmarks.place import Holdfast, Place, events, note_times, pause
from benchmarks.programs import Notes, agent
from benchmarks.stats import median, milliseconds
from benchmarks.table import Baseline, Line
from holdfast.testing import Scenario
from tests.support.waiting import eventually

STALE_S, GRACE_S = 1.0, 0.5
_THRESHOLDS = ("--stale", f"{STALE_S}s", "--grace", f"{GRACE_S}s")
#: How long the healthy agents are silent, or print without a newline.
SILENT_S = 6.0


def hang(place: Place) -> list[Line]:
    """Lateness of the verdict, and false verdicts."""
    late = _lateness_ms(place)
    false, suite = _false_verdicts(place)
    lines = [
        Line(
            row=4,
            what=f"hang called after its deadline, worst of {len(late)}",
            value=max(late),
            unit="ms",
            target="≤ 50 ms",
            met=max(late) <= 50,
            notes=(
                f"stale {STALE_S:g} s and grace {GRACE_S:g} s; p50 is {median(late):.1f} ms, up to the "
                f"durable stop intent",
            ),
        )
    ]
    bash = _bash(place) if bash_design.is_possible(place) else None
    lines.append(
        Line(
            row=4,
            what=f"false verdicts in the healthy-silent suite of {len(suite)}",
            value=false,
            unit="",
            baseline=Baseline(name="bash design", value=bash[1], note=f"of {bash[2]} that print")
            if bash
            else None,
            target="0",
            met=false == 0,
            notes=(f"healthy and silent, or printing, for {SILENT_S:g} s: {', '.join(suite)}",),
        )
    )
    if bash is not None:
        lines.append(
            Line(
                row=4,
                what="last evidence → hang called, with the same thresholds (90 s + 30 s)",
                value=120 + max(late) / 1000,
                unit="s",
                baseline=Baseline(
                    name="bash design", value=bash[0], note=f"measured at {_INTERVAL_S} s, scaled"
                ),
                notes=(
                    "ours is the threshold plus the worst lateness above; the baseline is scaled to its 30 s",
                ),
            )
        )
    return lines


def _lateness_ms(place: Place) -> list[float]:
    tasks, rounds = place.pick(4, 2), place.pick(6, 2)
    home = Holdfast(place)
    started: list[tuple[str, Notes, str]] = []
    for turn in range(tasks):
        project = place.new("project")
        notes = Notes(os.path.join(place.new("agent"), "notes"))
        passed = os.path.join(home.home, f"notes-{turn}")
        packet = home.run(
            *_THRESHOLDS,
            *("--max-retries", "100000", "--max-interval", "0s"),
            "--",
            *agent(place, notes.path, "say"),
            cwd=project,
            HOLDFAST_FAILPOINT="step.intend_stop=note",
            HOLDFAST_FAILPOINT_NOTES=passed,
        )
        started.append((packet, notes, passed))
    found: list[float] = []
    for packet, notes, passed in started:
        eventually(
            lambda passed=passed: len(note_times(passed, "step.intend_stop")) >= rounds,
            within_s=60,
            what="hangs are called",
            journal=packet,
        )
        said = [at for at, _ in notes.read("said")]
        calls = note_times(passed, "step.intend_stop")
        deadline_ns = int((STALE_S + GRACE_S) * 1e9)
        pairs = list(zip(said, calls, strict=False))[:rounds]
        found += milliseconds(call - at - deadline_ns for at, call in pairs)
    place.end_processes()
    return found


def _false_verdicts(place: Place) -> tuple[int, list[str]]:
    """How many healthy agents were taken for hung or started twice, and what they did."""
    home = Holdfast(place)
    suite = {
        "a tool that sleeps": Scenario().tool("sleep", run_s=SILENT_S),
        "a tool that computes": Scenario().tool("compute", busy_s=SILENT_S),
        "an announced wait": Scenario().announce_retry(SILENT_S),
    }
    count = int(SILENT_S / 0.4)
    shells = {
        "a busy process": f"end=$(($(date +%s) + {int(SILENT_S)})); while [ $(date +%s) -lt $end ]; do :; "
        f"done",
        "files that change": f"for i in $(seq {count}); do echo $i > file; sleep 0.4; done",
        "a line now and then": f"for i in $(seq {count}); do echo $i; sleep 0.4; done",
        "dots without end of line": f"for i in $(seq {count}); do printf .; sleep 0.4; done",
        "a word on stderr": f"for i in $(seq {count}); do echo $i >&2; sleep 0.4; done",
    }
    packets: dict[str, str] = {}
    for name, scenario in suite.items():
        project = place.new("project")
        path = scenario.result("done").write_to(os.path.join(place.new("scenario"), "scenario.json"))
        packets[name] = home.run(
            *_THRESHOLDS,
            *("--agent", "scripted", "-o", f"scenario={path}", "go"),
            cwd=project,
            HOLDFAST_SCRIPTED_STATE=place.new("sessions"),
        )
    for name, script in shells.items():
        packets[name] = home.run(*_THRESHOLDS, "--", "sh", "-c", script, cwd=place.new("project"))
    false = 0
    for name, packet in packets.items():
        done = os.path.join(packet, "done", "_task.done")
        eventually(lambda done=done: os.path.exists(done), within_s=60, what=f"{name} ends", journal=packet)
        hung = [event for event in events(packet, "watch.verdict") if event["verdict"] == "hung"]
        if hung or len(events(packet, "attempt.opened")) != 1:
            place.progress(f"false verdict on {name}: {hung}")
            false += 1
    place.end_processes()
    return false, list(packets)


#: Whole seconds: the design counts in them, so a shorter interval would make it look worse.
_INTERVAL_S = 3


def _bash(place: Place) -> tuple[float, int, int]:
    """Seconds from the last evidence to the verdict (scaled); and how many healthy printing agents were
    taken for hung, of how many."""
    bash = BashDesign(place)
    printing = ["sh", "-c", "while :; do echo working; sleep 0.5; done"]
    healthy, hung = 4, place.pick(4, 2)
    monitors: list[bash_design.Monitor] = []
    begun: list[Notes] = []
    for turn in range(healthy + hung):
        notes = Notes(os.path.join(place.new("agent"), "notes"))
        argv = printing if turn < healthy else agent(place, notes.path, "say")
        directory = bash.launch(f"t{turn}", argv)
        monitors.append(bash.monitor(f"t{turn}", directory, interval_s=_INTERVAL_S))
        begun.append(notes)
    verdict = "Grace period expired"
    gives_up = time.monotonic() + 12 * _INTERVAL_S
    while time.monotonic() < gives_up and not all(monitor.first(verdict) for monitor in monitors):
        pause(0.1)
    delays = [
        called - notes.read("said")[0][0]
        for notes, monitor in zip(begun[healthy:], monitors[healthy:], strict=True)
        if (called := monitor.first(verdict)) is not None
    ]
    false = sum(monitor.first(verdict) is not None for monitor in monitors[:healthy])
    place.end_processes()
    for monitor in monitors:
        monitor.end()
    scale = bash_design.INTERVAL_S / _INTERVAL_S
    return median(milliseconds(delays)) / 1000 * scale, false, healthy
