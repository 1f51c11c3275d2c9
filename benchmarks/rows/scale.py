"""Row 11: a hundred, a thousand and (with --whole) three thousand live tasks that do nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from benchmarks import footprint
from benchmarks.place import Holdfast, Place, duration_ns, pause, program
from benchmarks.stats import median, milliseconds
from benchmarks.table import Baseline, Line
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home
from tests.support.waiting import eventually

#: All tasks are made by one process; each runner comes from the seed.
_START = (
    "import sys\n"
    "from holdfast.views.cli.entry import run\n"
    "for number in range(int(sys.argv[1])):\n"
    "    assert run(['run', '-d', '--id', f'task-{number:05d}', '--', 'sleep', '86400']) == 0\n"
)
#: Targets: CPU per idle task, and `ls` with a thousand of them.
_CPU_MS_PER_S = 0.06
_LS_RATIO, _LS_TASKS = 5.0, 1000
_HEALS = 5


def many_tasks(place: Place) -> list[Line]:
    """Each number of tasks in a home of its own."""
    counts = [20] if place.quick else [100, 1000, 3000] if place.whole else [100, 1000]
    lines: list[Line] = []
    for count in counts:
        lines += _measure(place, count)
        place.end_processes()
    return lines


def _measure(place: Place, count: int) -> list[Line]:
    while_s = float(place.pick(30, 8))
    home = Holdfast(place, HOLDFAST_KEEPER="on")
    home.start_seed()
    place.progress(f"starting {count} tasks")
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-P", "-c", _START, str(count)],
        env=home.env,
        cwd=place.new("project"),
        stdout=subprocess.DEVNULL,
        timeout=60 + count,
        check=True,
    )
    eventually(lambda: _is_complete(place, count), within_s=60 + count, what="every task runs, and is kept")
    took_s = time.monotonic() - began
    # Every runner finds the keeper and settles.
    pause(5.0)
    ours = footprint.ours(place)
    memory = {role: sum(footprint.pss_mb(pid) for pid in pids) for role, pids in ours.items()}
    place.progress(f"idle for {while_s:g} s")
    used = footprint.use([pid for pids in ours.values() for pid in pids], while_s)
    (keeper,) = ours["keeper"]
    open_files = footprint.descriptors(keeper)
    ls_ms, bare_ms = _list(home, place.pick(15, 5))
    heal_ms = median([_heal_ms(home, number) for number in range(min(count, _HEALS))])
    each = ", ".join(f"{role} {memory[role] / max(1, len(pids)):.2f} MB" for role, pids in ours.items())
    per_task = used.cpu_ms_per_s / count
    return [
        Line(
            row=11,
            what=f"{count} live tasks: memory (PSS)",
            value=sum(memory.values()),
            unit="MB",
            notes=(
                f"{count} tasks: each {each}; the agents are not counted; all were running after "
                f"{took_s:.0f} s",
            ),
        ),
        Line(
            row=11,
            what=f"{count} live tasks: CPU per idle task",
            value=per_task,
            unit="ms/s",
            target=f"≤ {_CPU_MS_PER_S} ms/s",
            met=per_task <= _CPU_MS_PER_S,
            notes=(f"{count} tasks: {used.wakeups_per_s / count:.3f} wake-ups per task and second",),
        ),
        Line(
            row=11,
            what=f"{count} live tasks: `holdfast ls`",
            value=ls_ms,
            unit="ms",
            baseline=Baseline(name="bare python", value=bare_ms),
            target=f"≤ {_LS_RATIO:g}× bare Python" if count == _LS_TASKS else "",
            met=ls_ms <= _LS_RATIO * bare_ms if count == _LS_TASKS else None,
        ),
        Line(
            row=11,
            what=f"{count} live tasks: runner killed → another one has its task, p50 of {_HEALS}",
            value=heal_ms,
            unit="ms",
        ),
        Line(row=11, what=f"{count} live tasks: files that the keeper has open", value=open_files, unit=""),
    ]


def _is_complete(place: Place, count: int) -> bool:
    """Whether each task has a runner and a recorder, and the keeper watches all of them."""
    ours = footprint.ours(place)
    if not len(ours["runner"]) == len(ours["recorder"]) == count or len(ours["keeper"]) != 1:
        return False
    return footprint.descriptors(ours["keeper"][0]) > count


def _list(home: Holdfast, repeats: int) -> tuple[float, float]:
    """`ls` and a bare interpreter, in turn."""
    commands = {"ls": [program(), "ls"], "bare": [sys.executable, "-I", "-S", "-c", ""]}
    times: dict[str, list[int]] = {key: [] for key in commands}
    for _ in range(repeats + 1):
        for key, argv in commands.items():
            times[key].append(duration_ns(argv, home.env))
    return median(milliseconds(times["ls"][1:])), median(milliseconds(times["bare"][1:]))


def _heal_ms(home: Holdfast, number: int) -> float:
    """Kill a runner; the time until another process holds its lock."""
    lock = Home(home.home).packet(f"task-{number:05d}").runner_lock
    old = lock_owner.owner(lock)
    assert old is not None
    began = time.monotonic()
    os.kill(old.pid, signal.SIGKILL)

    def is_healed() -> bool:
        new = lock_owner.owner(lock)
        return new is not None and new.pid != old.pid and locks.is_held(lock)

    eventually(is_healed, within_s=30, what="another runner has the task")
    return (time.monotonic() - began) * 1000
