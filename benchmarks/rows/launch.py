"""Row 1: from the command to the agent's first instruction."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from benchmarks import bash_design
from benchmarks.bash_design import BashDesign
from benchmarks.place import Holdfast, Place, duration_ns
from benchmarks.programs import Notes, agent
from benchmarks.stats import median, milliseconds
from benchmarks.table import Baseline, Line
from tests.support.waiting import eventually


def launch(place: Place) -> list[Line]:
    """Cold, and through the seed; interleaved with the bash design."""
    repeats = place.pick(20, 5)
    cold, seeded = Holdfast(place), Holdfast(place)
    seeded.start_seed()
    bash = BashDesign(place) if bash_design.is_possible(place) else None
    times: dict[str, list[int]] = {"cold": [], "seed": [], "bash": [], "python": [], "spawn": []}
    for turn in range(repeats + 1):
        found = {
            "cold": _until_begun(place, lambda argv: cold.run("--", *argv)),
            "seed": _until_begun(place, lambda argv: seeded.run("--", *argv)),
            "python": duration_ns([sys.executable, "-I", "-S", "-c", ""]),
            "spawn": spawn_ns(place),
        }
        if bash is not None:
            found["bash"] = _until_begun(place, lambda argv, name=f"t{turn}": bash.launch(name, argv))
        if turn:  # the first round fills caches
            for key, value in found.items():
                times[key].append(value)
    place.end_processes()
    ms = {key: median(milliseconds(values)) for key, values in times.items() if values}
    notes = (
        f"the bash design ran with {bash_design.jq_version(place)}, an empty start-up file and a tmux server "
        f"that was up;"
        f" bare `python -I -S` takes {ms['python']:.1f} ms, starting the agent itself {ms['spawn']:.1f} ms",
    )
    baseline = Baseline(name="bash design", value=ms["bash"]) if "bash" in ms else None
    return [
        Line(
            row=1,
            what="launch, cold: command → agent's first instruction",
            value=ms["cold"],
            unit="ms",
            baseline=baseline,
            target="≤ 2× bash design",
            met=ms["cold"] <= 2 * ms["bash"] if "bash" in ms else None,
            notes=notes,
        ),
        Line(
            row=1,
            what="launch through the seed, command line included",
            value=ms["seed"],
            unit="ms",
            baseline=baseline,
        ),
        *_by_seed_alone(place, repeats),
    ]


def _by_seed_alone(place: Place, repeats: int) -> list[Line]:
    """The keeper's cost: the packet exists, and the seed is asked for a runner."""
    home = Holdfast(place)
    home.start_seed()
    script = (
        "import sys, time\n"
        "from holdfast import seed_client\n"
        "from holdfast.store.layout import Packet\n"
        "import socket\n"
        "for line in sys.stdin:\n"
        "    began = time.monotonic_ns()\n"
        "    assert seed_client.fork_runner(Packet(line.strip()))\n"
        "    print(began, flush=True)\n"
    )
    asker = subprocess.Popen(
        [sys.executable, "-P", "-c", script],
        env=home.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert asker.stdin is not None
    assert asker.stdout is not None
    times: list[int] = []
    for turn in range(repeats + 1):
        notes = Notes(os.path.join(place.new("agent"), "notes"))
        packet = new_packet(home, agent(place, notes.path, "wait"))
        print(packet, file=asker.stdin, flush=True)
        began = int(asker.stdout.readline())
        eventually(lambda notes=notes: notes.read("begin"), what="the agent begins")
        if turn:
            times.append(notes.read("begin")[0][0] - began)
    asker.stdin.close()
    asker.wait(timeout=10)
    asker.stdout.close()
    place.end_processes()
    value = median(milliseconds(times))
    return [
        Line(
            row=1,
            what="packet made → seed → agent's first instruction",
            value=value,
            unit="ms",
            target="≤ 10 ms",
            met=value <= 10,
        )
    ]


def new_packet(home: Holdfast, argv: list[str]) -> str:
    """A packet without a runner."""
    script = (
        "import sys\n"
        "from holdfast import spawn\n"
        "from holdfast.views.cli.commands import run\n"
        "run.start_runner = lambda packet: None\n"
        "from holdfast.views.cli.entry import run as main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, "run", "-d", "--", *argv],
        env=home.env,
        cwd=home.place.root,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return os.path.join(home.home, "tasks", done.stdout.strip())


def _until_begun(place: Place, start) -> int:
    notes = Notes(os.path.join(place.new("agent"), "notes"))
    argv = agent(place, notes.path, "wait")
    began = time.monotonic_ns()
    start(argv)
    eventually(lambda: notes.read("begin"), what="the agent begins")
    return notes.read("begin")[0][0] - began


def spawn_ns(place: Place) -> int:
    """Time to start the agent from here: fork, exec, first instruction."""
    notes = Notes(os.path.join(place.new("agent"), "notes"))
    argv = agent(place, notes.path, "exit")
    began = time.monotonic_ns()
    subprocess.run(argv, check=True, timeout=30)
    return notes.read("begin")[0][0] - began
