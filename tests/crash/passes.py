"""Which passes of failpoints the crash run kills at: one of each situation.

A life of each scenario is played with a note at every pass. Two passes are the same situation if the process
comes from the same failpoints and its successor finds the same: the same family of task, and in each packet
the same state, last event, files of the last execution and files that ask for something.
"""

from __future__ import annotations

import glob
import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.crash.drive import Case
from tests.crash.scenarios import Scenario, play

#: How many earlier failpoints of the process are part of a situation.
EARLIER = 2
#: Fields of an event that change what comes next.
TOLD = ("mode", "outcome", "intent", "old", "new", "passed", "failed", "verb", "how")
#: Files of an execution that its successor reads first.
OF_EXECUTION = ("argv.json", "identity.json", "exit.json", "result.json")
#: Files of a packet that ask for something, or say that nothing is left to do.
ASKING = ("inbox/", "state/interrupt", "done/_task", "events.jsonl.")
#: Features of a task that decide which code its processes run.
FAMILIES = ("pipeline", "sandbox")
#: To note a life takes longer than to play it.
PATIENCE = 4.0
_EXECUTION = re.compile(r"attempts/(\d+)-[^/]*/(.*)")
#: Parts of names that differ between two lives.
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}|\d+")


class Pass(NamedTuple):
    """One pass of a failpoint in a scenario."""

    scenario: str
    point: str
    #: The place of the process among those that pass the point, and the count of its own passes.
    process: int
    nth: int

    @property
    def failpoint(self) -> str:
        """For HOLDFAST_FAILPOINT."""
        return f"{self.point}=kill@{self.nth}/{self.process}"

    def __str__(self) -> str:
        return f"{self.scenario}-{self.point}-{self.process}.{self.nth}"


class Life(NamedTuple):
    """All passes of a scenario, each with its situation, and how long it took."""

    passes: list[tuple[Pass, str]]
    took_s: float


class _Note(NamedTuple):
    pid: int
    point: str
    #: The files of the home.
    sizes: dict[str, int]


def note(scenario: Scenario, root: str) -> Life:
    """Play the scenario once, without a kill."""
    case = Case(root, scenario.name, "*=note")
    notes = os.path.join(case.root, "notes")
    case.env |= {"HOLDFAST_FAILPOINT_NOTES": notes, "HOLDFAST_FAILPOINT_FOLDER": case.home.path}
    began_mono = time.monotonic()
    try:
        play(scenario, case, patience=PATIENCE)
    finally:
        case.close()
    with open(notes, encoding="utf-8") as file:
        lines = [line.split(" ", 3) for line in file]
    found = _situations(scenario, case, [_Note(int(line[1]), line[2], json.loads(line[3])) for line in lines])
    passes = [(each, situation) for each, situation in found if each.point.startswith(scenario.only)]
    return Life(passes, time.monotonic() - began_mono)


def one_of_each(lives: list[Life]) -> list[Pass]:
    """The first pass of each situation, in the shortest life that has it."""
    first: dict[str, Pass] = {}
    for life in sorted(lives, key=lambda life: life.took_s):
        for each, situation in life.passes:
            first.setdefault(situation, each)
    return list(first.values())


def _situations(scenario: Scenario, case: Case, notes: list[_Note]) -> Iterator[tuple[Pass, str]]:
    journals = [
        _Journal(os.path.relpath(path, case.home.path), path)
        for path in sorted(glob.glob(os.path.join(case.home.tasks, "*", "events.jsonl")))
    ]
    spec = json.loads(journals[0].first)["spec"]
    family = [name for name in FAMILIES if spec.get(name)]
    processes: dict[str, dict[int, int]] = {}
    counts: Counter[tuple[str, int]] = Counter()
    earlier: dict[int, list[str]] = {}
    for pid, point, sizes in notes:
        process = processes.setdefault(point, {}).setdefault(pid, len(processes[point]) + 1)
        counts[point, pid] += 1
        passed = earlier.setdefault(pid, [])
        found = [journal.at(sizes) for journal in journals if journal.name in sizes]
        situation = json.dumps([family, point, passed[-EARLIER:], found])
        yield Pass(scenario.name, point, process, counts[point, pid]), situation
        passed.append(point)


class _Journal:
    """The journal of a packet, and what a successor finds when it has a certain size."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self._folder = os.path.dirname(name) + "/"
        with open(path, "rb") as file:
            lines = file.readlines()
        self.first = lines[0]
        #: Where each line ends, and what is known then.
        self._known: list[tuple[int, list[str]]] = []
        end, state = 0, ""
        kinds: dict[int, str] = {}
        for line in lines:
            end += len(line)
            event: dict[str, Any] = json.loads(line)
            state = event.get("new", state) if event["type"] == "task.moved" else state
            if event["type"] == "attempt.opened":
                kinds[event["attempt"]] = event.get("kind", "agent")
            told = [f"{name}={event[name]}" for name in TOLD if name in event]
            about = kinds.get(event.get("attempt", 0), "")
            self._known.append((end, [state, event["type"], about, *told]))

    def at(self, sizes: dict[str, int]) -> list[list[str]]:
        """State and last event, and the files that matter."""
        known = [known for end, known in self._known if end <= sizes[self.name]]
        return [known[-1] if known else [], sorted(self._files(sizes))]

    def _files(self, sizes: dict[str, int]) -> set[str]:
        own = [path.removeprefix(self._folder) for path in sizes if path.startswith(self._folder)]
        found = [match.groups() for path in own if (match := _EXECUTION.fullmatch(path))]
        last = max((number for number, _ in found), default="")
        files = {file for number, file in found if number == last and file in OF_EXECUTION}
        return files | {_ID.sub("#", path) for path in own if path.startswith(ASKING)}
