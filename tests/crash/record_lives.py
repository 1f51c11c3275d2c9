"""Record the journal of every crash scenario, for tests that need real lives and have no time to play them.

    python -m tests.crash.record_lives [SCENARIO …]     play them and write lives/<scenario>.jsonl

Paths of this machine and the ids of events are left out. Record again after a change of the scenarios or of
what a runner journals; test_plan.py fails if a scenario has no recording.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile

from tests.crash.drive import Case
from tests.crash.scenarios import BY_NAME, Scenario, play

LIVES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lives")


def path_of(name: str) -> str:
    """The recording of a scenario."""
    return os.path.join(LIVES, f"{name}.jsonl")


def record(scenario: Scenario, root: str) -> list[str]:
    """Play the scenario without a kill; returns the lines of its journal."""
    case = Case(root, scenario.name)
    try:
        play(scenario, case)
        with open(case.packet.journal, encoding="utf-8") as file:
            return [_compact(line, case.root) for line in file]
    finally:
        case.close()


def _compact(line: str, root: str) -> str:
    event = json.loads(line.replace(root, "/case").replace(sys.executable, "python"))
    del event["id"]
    if "boot_id" in event:
        event["boot_id"] = "boot"
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def own_environment(root: str) -> None:
    """Nothing of the caller's holdfast, as in a test."""
    for name in [name for name in os.environ if name.startswith(("HOLDFAST_", "XDG_"))]:
        del os.environ[name]
    os.environ.update(HOLDFAST_KEEPER="off", HOME=root, TMPDIR=root)


def main(names: list[str]) -> None:
    """Record the named scenarios, or all of them."""
    root = tempfile.mkdtemp(prefix="hf-", dir="/tmp")
    own_environment(root)
    os.makedirs(LIVES, exist_ok=True)
    try:
        for name in names or list(BY_NAME):
            lines = record(BY_NAME[name], root)
            with open(path_of(name), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            print(f"{name}: {len(lines)} events")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
