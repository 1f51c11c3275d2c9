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

Every number has a baseline that was measured in the same run on the same machine: absolute times differ
between machines, ratios less so. "bash design" is the usual home-made solution (tmux, a wrapper, one
polling monitor per task, jq), built by the benchmark in `benchmarks/bash_design`. A ratio below 1 means
that holdfast needs less.

This page is written by `python -m benchmarks --write` (`make bench ARGS=--write`); its text is in
`benchmarks/report.py`. `--rows 2,3` measures only some rows, `--quick` uses few repeats, `--jq FILE`
selects the jq of the bash design, and `python -m benchmarks.timeline` shows where the time of a launch and
of a restart goes. Row 11 takes 100 and 1,000 tasks; `--whole` adds 3,000, which need 9,000 processes and
16 GB of memory.
"""

_BUSY = """\
**The machine was busy with other work during this run**: absolute times are too long, especially where
several processes wait for each other, and targets in milliseconds mean little. Memory and counts are not
affected.
"""

_WHY = """## Missed targets

The targets were set on a machine whose bare `python -I -S` starts in about 9 ms; the run below states how
long it takes here, and times grow with it. Besides that:

- **Row 1, seed to first instruction**: two synced events, the identity and three forks, as planned. Much of
  the rest is page faults: a forked interpreter copies each page in which it changes a reference count,
  about 830 in the runner, 290 in the recorder and 290 in what becomes the agent. And eleven files and
  directories are created, which is slow on a disk where many were deleted recently.
- **Row 3**: the exit record and three synced records come between death and the next start, and the sweep
  reads every process's environment once.
- **Row 4**: the median is a few milliseconds; the worst case is one check of the process tree and the
  workspace, and two synced records, on a busy core.
- **Row 5, memory**: a forked interpreter copies a page when it changes a reference count in it. A recorder
  is forked before its runner has touched anything and has about 1.1 MB of private memory; a runner touches
  3.7 MB before it sleeps, spread over half of everything the seed has loaded. A quarter of these pages have
  the seed's content again: counts that went up and down. Decision 0041 lists what was tried.
- **Row 5, CPU**: a line wakes its runner only after a silence; while more output comes, it is read at
  intervals of up to 10 s, unless a command follows it (decision 0042).
- **Row 5, wake-ups**: an idle runner's timer fires once per check interval, and its heartbeat does not wait
  for the disk. The rest is the keeper's, which scans every 15 s, and the seed's, which looks every 15 s
  whether a signal has stopped the keeper.
- **Row 7**: a line that is an event needs a decoded structure, a record, redaction, and its place in the
  journal and the state: 8 to 10 µs, nearly all of it in Python. Codex and OpenCode print only such lines, a
  few per second; the others print deltas in between, which cost next to nothing. Decision 0042 has the
  details.
- **Row 8**: `ls` loads neither json, re nor datetime (the C parts of json and sqlite3 are enough), and reads
  only manifests whose timestamps changed since the last list. What is left is the interpreter's own start and
  some forty small modules of holdfast, which take less than one bare interpreter. The start script of an
  older pip imports re, too. A rebuilt index reads three files per ended task: its manifest, and the journal
  and its seals, because an agent can write the manifest.
- **Row 11, `ls`**: a live task costs a look at its manifest, its lock and its log, five system calls, and 15
  to 20 µs in all. Of a log that is not empty, the end is read, which adds 6 µs. A manifest that changed since
  the last look, by a heartbeat, is read again; the keeper does that every 15 s.
"""
_HOW = """\
## Method

- Times are from the monotonic clock that all processes share. The agent is a small C program whose first
  instruction reads it; the runner's times are recorded by failpoints
  (`HOLDFAST_FAILPOINT=observer.noticed=note`), which cost about 20 µs each.
- Rows 1 to 4 run without a keeper; rows 5 and 11 have one.
- Rows 2 and 3: one task whose agent is killed repeatedly, at random times. The killer, the clock and the
  agent are the same for C. The bash monitor polls every second instead of every 30 s, and its delay is
  multiplied by 30.
- Row 4: lateness is the time from the agent's last line plus both thresholds to the durable intent to stop
  it.
- Row 5: PSS of seed, keeper, runners and recorders (not of agents); CPU from the scheduler; wake-ups are
  voluntary context switches. The bash design runs ten tasks and is scaled, with its polling cost divided by
  30.
- Row 11: `sleep` tasks, made by one process and started by the seed; memory, CPU and wake-ups as in row 5,
  over 30 s. `ls` alternates with a bare interpreter. A runner is healed when another process holds its lock.
- Row 12: packets without processes, in one process: the feed of `views/facts/changes.py`, and a loop that
  reads every manifest as `wait` used to do. Manifests are written as a runner writes them. The digest: the
  command with the cursor of the last one, alternating with `ls --json`.
- Rows 1 and 8: our modules are compiled before (a variable that forbids it is removed), as in an installed
  holdfast, and the kernel reports the end of a command.
- Row 6: in one process, alternating with a raw append and fdatasync of 200 bytes on the same file system.
- Row 7: the readers in one process, alternating with json.loads of the same lines. These are the recorded
  runs in `tests/captures` that succeeded, with twenty deltas per other line if the program prints deltas.
  (A line with an error costs up to 100 µs, because of the patterns that it is compared with; a run prints
  one, at its end.) From the file: the same lines through the ingest of a runner, with journal, manifest and
  output.log on disk; CPU, not the wait for the disk. The backlog was printed without a runner, and includes
  the start of a runner and the end of the task.
"""


def write(place: Place, lines: list[Line], command: str) -> None:
    """Write the page."""
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(page(place, lines, command))


def page(place: Place, lines: list[Line], command: str) -> str:
    """The text of the page."""
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
    """The conditions of the run, without host names or paths."""
    with open("/proc/meminfo", encoding="ascii") as file:
        memory_gb = int(file.readline().split()[1]) / 1024**2
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory_gb:.0f} GB, {platform.system()} "
        f"{_release()}, "
        f"{_file_system(place.root)}, Python {platform.python_version()}, {jq_version(place)}; "
        f"load {place.load[0]:.1f} at the start, {os.getloadavg()[0]:.1f} at the end"
        f"{_niceness()}"
    )


def _niceness() -> str:
    """A raised priority is one of the conditions."""
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
