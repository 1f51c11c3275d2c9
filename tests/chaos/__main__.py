"""The chaos run: a queue of short tasks, while keeper, runners, recorders, agents and seed are killed at
random all the time.

    python -m tests.chaos [--tasks 500] [--slots 8] [--seed N] [--within S]

Afterwards each task has one terminal event, no two attempts of a stage overlap in time (by the agents' own
stamps), nothing is lost or stuck, and no process is left. The seed is printed and replays the order of the
strikes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time

from tests.chaos import checks
from tests.chaos.storm import Storm
from tests.chaos.world import World


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--within", type=float, default=1500.0, metavar="S")
    asked = parser.parse_args(argv)
    print(f"seed {asked.seed}: {asked.tasks} tasks, {asked.slots} slots", flush=True)
    root = tempfile.mkdtemp(prefix="hf-chaos-")
    world = World(root)
    began = time.monotonic()
    try:
        world.fill(asked.tasks)
        world.up(asked.slots)
        storm = Storm(world, asked.seed)
        storm.rage(until=began + asked.within)
        world.down()
        faults = checks.all_of(world, asked.tasks)
    finally:
        world.close()
    took_s = time.monotonic() - began
    print(f"{took_s:.0f} s; strikes: {storm.count()}; resumed by hand: {storm.resumed}")
    if faults:
        print(f"seed {asked.seed}: {len(faults)} faults; the home is kept: {world.home.path}")
        print("\n".join(faults[:40]))
        return 1
    shutil.rmtree(root, ignore_errors=True)
    print(f"{asked.tasks} tasks, each with one end; no overlap, nothing lost, nothing left")
    return 0


if __name__ == "__main__":
    os.environ.pop("HOLDFAST_KEEPER", None)
    sys.exit(main(sys.argv[1:]))
