"""docs/benchmarks.md: one run, with what a reader needs to repeat it."""

from __future__ import annotations

import os
import platform
import time

from benchmarks import table
from benchmarks.bash_design import jq_version
from benchmarks.place import Place
from benchmarks.table import Line

PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "benchmarks.md")

_HEAD = """\
# Benchmarks

Every number stands next to a baseline that was measured in the same run, on the same machine: absolute times move from
machine to machine, ratios less so. "bash design" is the usual home-made way (tmux, a wrapper, one polling monitor per
task, jq), built by the benchmark itself in `benchmarks/bash_design`. A ratio below 1 means that holdfast takes less.

This page is written by `python -m benchmarks --write` (`make bench ARGS=--write`); the text is in `benchmarks/report.py`.
`--rows 2,3` measures some rows only, `--quick` uses few repeats, `--jq FILE` chooses the jq of the bash design, and
`python -m benchmarks.timeline` shows where the time of a launch and of a restart goes.
"""

_BUSY = """\
**The machine was busy with other work during this run**: absolute times are too long, those that wait for several processes in
turn most of all, and a target that counts milliseconds says little. Memory and counts are not affected.
"""

_WHY = """## Where a target is missed, and why

The targets were set on a machine whose bare `python -I -S` starts in about 9 ms; a run says what it takes here, and times grow with
it. What stays beside that:

- **Row 1, seed to first instruction**: two synced events, the identity and three forks, as planned. Much of the rest is page
  faults: a forked interpreter copies each page in which it touches a reference count, some 830 in the runner, 290 in the recorder and
  290 in what becomes the agent. And eleven files and directories are made on the way, which is slow on a disk where many were deleted of late.
- **Row 3**: the exit record and three synced records lie between death and the next start, and the sweep reads every process's
  environment once.
- **Row 4**: the median is some milliseconds; the worst of a run is one look at the process tree and the workspace, and two
  synced records, on a busy core.
- **Row 5, memory**: a forked interpreter copies a page when it touches a reference count in it. A recorder is forked before its runner
  has touched anything and has about 1.1 MB of its own; a runner touches 3.7 MB before it sleeps, spread over half of
  all that the seed has loaded. A quarter of these pages hold the seed's bytes again: counts that went up and down. What was tried is
  in decision 0041.
- **Row 5, CPU**: a line wakes its runner only after a silence; while more comes, it is read at intervals of up to 5 s, unless somebody
  follows (decision 0042).
- **Row 5, wake-ups**: an idle runner's timer fires once per check interval, and its heartbeat waits for no disk. What is above that is
  the keeper's.
- **Row 7**: a line that is an event costs a decoded structure, a record, its redaction, its place in the journal and in the state: some
  8 to 10 µs, nearly all of it in Python. Codex and OpenCode print nothing else, a few lines a second; the others print pieces of texts
  between, which cost next to nothing. Where it goes, and what was tried, is in decision 0042.
- **Row 8**: json and sqlite3, with the re, enum and datetime that they load, are between two and three bare interpreters; 25 small
  modules of ours are less than one. A start script of an older pip loads re as well.
"""
_HOW = """\
## How it is measured

- Times are on the monotonic clock that all processes share. The agent is a small C program whose first instruction reads
  it; the runner's moments are noted by failpoints (`HOLDFAST_FAILPOINT=observer.noticed=note`), which cost some 20 µs each.
- No keeper runs beside rows 1 to 4; row 5 has one.
- Rows 2 and 3: one task whose agent is killed again and again, at random moments. The killer, the clock and the agent are
  the same for C. The bash monitor polls each second here instead of each 30 s, and its delay is multiplied by 30.
- Row 4: lateness runs from the agent's last line plus both thresholds to the durable intent to stop it.
- Row 5: PSS of seed, keeper, runners and recorders (not of agents); CPU from the scheduler's own count; wake-ups are voluntary
  context switches. The bash design runs ten tasks and is scaled, its polling cost divided by 30.
- Rows 1 and 8: our modules are compiled before (a variable that forbids it is left out), as those of an installed holdfast are, and
  the end of a command is told by the kernel.
- Row 6: in one process, in turn with a raw append and fdatasync of 200 bytes on the same file system.
- Row 7: the readers in one process, in turn with json.loads of the same lines, which are those of the recorded runs in
  `tests/captures` that ended well, with twenty pieces of text for each other line where the program prints such pieces. (A line that tells
  an error costs up to 100 µs, for the patterns that its words are held against; a run prints one, at its end.) From the
  file: the same lines through the ingest of a runner, with journal, manifest and output.log on the disk; CPU, not the wait for the disk. The
  backlog was printed while no runner lived, and includes the start of one and the end of the task.
"""


def write(place: Place, lines: list[Line], command: str) -> None:
    """Replace the page."""
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(page(place, lines, command))


def page(place: Place, lines: list[Line], command: str) -> str:
    """The page as text."""
    busy = place.load[0] > (os.cpu_count() or 1) / 2
    missed = [line for line in lines if line.met is False]
    parts = [
        _HEAD,
        f"## A run of {time.strftime('%Y-%m-%d', time.gmtime())}\n",
        f"`{command}` on {machine(place)}.\n",
        *([_BUSY] if busy else []),
        table.as_markdown(lines) + "\n",
        "\n".join(f"- {note}." for note in table.notes(lines)) + "\n",
    ]
    if missed:
        parts.append("Missed: " + "; ".join(f"row {line.row}, {line.what}" for line in missed) + ".\n")
        parts.append(_WHY)
    return "\n".join([*parts, _HOW])


def machine(place: Place) -> str:
    """What the run depends on; no names of hosts or paths."""
    with open("/proc/meminfo", encoding="ascii") as file:
        memory_gb = int(file.readline().split()[1]) / 1024**2
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory_gb:.0f} GB, {platform.system()} {_release()}, "
        f"{_file_system(place.root)}, Python {platform.python_version()}, {jq_version(place)}; "
        f"load {place.load[0]:.1f} at the start, {os.getloadavg()[0]:.1f} at the end"
        f"{_niceness()}"
    )


def _niceness() -> str:
    """A raised priority is a condition of the run like any other."""
    nice = os.nice(0)
    return f", all processes at niceness {nice}" if nice else ""


def _release() -> str:
    """`6.18`: the rest of a release names builds and hosts."""
    return ".".join(platform.release().split(".")[:2])


def _file_system(path: str) -> str:
    best, kind = "", "an unknown file system"
    with open("/proc/mounts", encoding="utf-8") as file:
        for line in file:
            _, where, found = line.split()[:3]
            if (path + "/").startswith(where.rstrip("/") + "/") and len(where) >= len(best):
                best, kind = where, found
    return kind
