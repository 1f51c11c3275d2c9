"""`python -m tests.crash [--every-pass] [PYTEST ARGUMENT…]`: the whole crash run.

It plays each scenario once to learn what it passes, chooses one pass of each situation, and starts pytest
with the choice.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from tests.crash.passes import Life, Pass, note, one_of_each
from tests.crash.record_lives import own_environment
from tests.crash.scenarios import SCENARIOS

#: Scenarios that are played at the same time; they mostly wait.
AT_ONCE = 3


def main(argv: list[str]) -> int:
    """Exit status of pytest."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--every-pass", action="store_true", help="kill at every pass, not one per situation")
    options, pytest_arguments = parser.parse_known_args(argv)
    env = dict(os.environ)
    root = tempfile.mkdtemp(prefix="hf-", dir="/tmp")
    try:
        own_environment(root)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            lives = list(threads.map(lambda scenario: note(scenario, root), SCENARIOS))
        chosen = choose(lives, every_pass=options.every_pass)
        path = os.path.join(root, "passes.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(chosen, file)
        env |= {"HOLDFAST_CRASH_FULL": "1", "HOLDFAST_CRASH_PASSES": path}
        command = [sys.executable, "-m", "pytest", "tests/crash", "--dist=worksteal", *pytest_arguments]
        return subprocess.run(command, env=env, check=False).returncode
    finally:
        shutil.rmtree(root, ignore_errors=True)


def choose(lives: list[Life], *, every_pass: bool) -> list[Pass]:
    """What to kill at, the longest lives first, so that the workers end together."""
    everything = [each for life in lives for each, _ in life.passes]
    first = one_of_each(lives)
    chosen = everything if every_pass else first
    took = {life.passes[0][0].scenario: life.took_s for life in lives if life.passes}
    print(
        f"{len(SCENARIOS)} scenarios, {len(everything)} passes in {len(first)} situations;"
        f" killing at {len(chosen)} of them",
        flush=True,
    )
    return sorted(chosen, key=lambda each: -took[each.scenario])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
