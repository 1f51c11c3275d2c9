"""Row 5: the cost of a hundred tasks while nothing happens, and while each prints one line per second."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from benchmarks import bash_design, footprint
from benchmarks.bash_design import BashDesign, Monitor
from benchmarks.place import Holdfast, Place, events, pause
from benchmarks.programs import Notes, agent
from benchmarks.table import Baseline, Line
from tests.support.waiting import eventually

#: One per home, whatever the number of tasks.
_ONCE = ("seed", "keeper")


def idle(place: Place) -> list[Line]:
    """Memory, CPU and wake-ups."""
    tasks = place.pick(100, 20)
    while_s = float(place.pick(30, 8))
    home = Holdfast(place, HOLDFAST_KEEPER="on")
    home.start_seed()
    notes = Notes(os.path.join(place.new("agent"), "notes"))
    project = place.new("project")
    place.progress(f"starting {tasks} tasks")
    packets = [home.run("--", *agent(place, notes.path, "tick"), cwd=project) for _ in range(tasks)]
    for packet in packets:
        eventually(lambda packet=packet: events(packet, "attempt.started"), what="it runs", journal=packet)
    eventually(lambda: footprint.ours(place)["keeper"], within_s=30, what="the keeper is up")
    pause(3.0)
    ours = footprint.ours(place)
    memory = {role: sum(footprint.pss_mb(pid) for pid in pids) for role, pids in ours.items()}
    pids = [pid for group in ours.values() for pid in group]
    place.progress(f"idle for {while_s:g} s")
    quiet = footprint.use(pids, while_s)
    for _, pid in notes.read("begin"):
        os.kill(pid, signal.SIGUSR1)
    pause(1.0)
    place.progress(f"a line a second each, for {while_s:g} s")
    printing = footprint.use(pids, while_s)
    counts = {role: len(found) for role, found in ours.items()}
    place.end_processes()
    scale = 100 / tasks
    once = sum(memory[role] for role in _ONCE)
    total = (sum(memory.values()) - once) * scale + once
    each = ", ".join(f"{role} {memory[role] / max(1, counts[role]):.2f} MB" for role in memory)
    wakeups = quiet.wakeups_per_s / tasks
    scaled = "" if tasks == 100 else f", scaled from {tasks}"
    bash = _bash(place) if bash_design.is_possible(place) else None
    return [
        Line(
            row=5,
            what=f"memory (PSS) of 100 tasks{scaled}",
            value=total,
            unit="MB",
            baseline=bash and Baseline(name="bash design", value=bash.memory_mb, note=bash.note),
            target="≤ 330 MB",
            met=total <= 330,
            notes=(f"each: {each}; processes: {counts}; the agents are not counted",),
        ),
        Line(
            row=5,
            what=f"CPU of 100 idle tasks{scaled}",
            value=quiet.cpu_ms_per_s * scale,
            unit="ms/s",
            baseline=bash and Baseline(name="bash design", value=bash.idle_ms_per_s, note=bash.note),
            notes=(f"measured over {while_s:g} s, the heartbeat once per 30 s included",),
        ),
        Line(
            row=5,
            what=f"CPU of 100 tasks at 1 line/s each{scaled}",
            value=printing.cpu_ms_per_s * scale,
            unit="ms/s",
            baseline=bash and Baseline(name="bash design", value=bash.printing_ms_per_s, note=bash.note),
            target="≤ 15 ms/s",
            met=printing.cpu_ms_per_s * scale <= 15,
            notes=(f"{printing.wakeups_per_s * scale:.0f} wake-ups a second",),
        ),
        Line(
            row=5,
            what="wake-ups per idle task and second",
            value=wakeups,
            unit="/s",
            target="≤ one per check interval (0.033/s)",
            met=wakeups <= 1.05 / 30 if while_s >= 30 else None,
            notes=(
                "wake-ups are voluntary context switches, so a wait for the disk in a heartbeat counts as "
                "well",
            ),
        ),
    ]


# ── the bash design, with fewer tasks ──


@dataclass(frozen=True)
class _BashUse:
    memory_mb: float
    idle_ms_per_s: float
    printing_ms_per_s: float
    note: str


def _bash(place: Place) -> _BashUse:
    """Ten tasks, scaled: the tmux server counts once, everything else ten times.

    The monitors poll every second, so their cost is divided by the thirty seconds of their interval.
    """
    tasks, while_s = 10, float(place.pick(20, 6))
    bash = BashDesign(place)
    notes = Notes(os.path.join(place.new("agent"), "notes"))
    monitors: list[Monitor] = []
    for turn in range(tasks):
        directory = bash.launch(f"t{turn}", agent(place, notes.path, "tick"))
        eventually(lambda directory=directory: os.path.exists(os.path.join(directory, "pid")), what="its pid")
        # Nothing may be taken for hung during the measurement.
        monitors.append(bash.monitor(f"t{turn}", directory, interval_s=1, grace_s=3600))
    pause(2.0)
    server, agents = bash.server_pid(), {pid for _, pid in notes.read("begin")}
    everything = {process.pid for process in place.alive()} - agents
    per_task = (sum(footprint.pss_mb(pid) for pid in everything) - footprint.pss_mb(server)) / tasks
    memory = footprint.pss_mb(server) + 100 * per_task
    scale = 100 / tasks

    def polls_ms_per_s() -> float:
        before = sum(footprint.with_children_ms(monitor.pid) for monitor in monitors)
        pause(while_s)
        return (sum(footprint.with_children_ms(monitor.pid) for monitor in monitors) - before) / while_s

    polling = polls_ms_per_s() * scale / bash_design.INTERVAL_S
    rest = [pid for pid in everything if pid not in {monitor.pid for monitor in monitors}]
    for pid in agents:
        os.kill(pid, signal.SIGUSR1)
    pause(1.0)
    lines = footprint.use([pid for pid in rest if footprint.comm(pid) != "sleep"], while_s)
    count = len(everything)
    place.end_processes()
    for monitor in monitors:
        monitor.end()
    return _BashUse(
        memory_mb=memory,
        idle_ms_per_s=polling,
        printing_ms_per_s=polling + lines.cpu_ms_per_s * scale,
        note=f"{count} processes for {tasks} tasks, scaled",
    )
