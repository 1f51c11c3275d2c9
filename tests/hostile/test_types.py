"""A wrong type in any field of a JSON file of a packet: every reading verb works, or says what is damaged.

The verbs run in this process: there are thousands of cases.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.store.layout import Home
from holdfast.views.cli import entry
from holdfast.views.facts import timeline
from tests.support.tasks import Task, holdfast

FULL = bool(os.environ.get("HOLDFAST_HOSTILE_FULL"))
#: No float is as large.
HUGE = 10**400
VALUES: tuple[Any, ...] = (None, True, 5, -1.5, "x", [], ["x"], [[]], {}, {"a": 1}, [{"a": 1}], 10**30, HUGE)
VERBS = (
    ("ls",), ("ls", "--all", "--json"), ("show", "it"), ("show", "it", "--json"), ("status",),
    ("status", "it"), ("report",), ("report", "--json"), ("events", "it"), ("logs", "it"), ("digest",),
    ("diff", "it", "--stat"), ("metrics",), ("wait", "it", "--timeout", "0.2s"), ("queue", "ls"),
)  # fmt: skip
#: In a normal run, verbs that read most of a packet.
_SAMPLE = 3
SOME = (("ls",), ("show", "it"), ("status",), ("report",), ("digest",))


@pytest.fixture
def task(home: str) -> Task:
    """A task that ended after a question and an answer; and another one. Not in git, which takes its time."""
    script = (
        '[ -e once ] || { touch once; echo why > "$INTERRUPT_FILE"; sleep 30; }; echo b > a; echo done; '
        'mkdir -p "$HOLDFAST_PACKET/state"'
    )
    made = Task.start("--id", "it", "--", "sh", "-c", script)
    made.wait_for("interrupted", within_s=40)
    assert holdfast("resume", "it", "-m", "because").returncode == 0
    made.wait_for("completed", within_s=40)
    assert holdfast("run", "--id", "other", "--", "true").returncode == 0
    return made


def files_of(task: Task) -> list[str]:
    found: list[str] = []
    for folder, _, names in os.walk(task.packet):
        found += [os.path.join(folder, name) for name in names if name.endswith((".json", ".done"))]
    # The journal has its own tests.
    return sorted(path for path in found if "/git/" not in path)


def mutations(data: Any, every: bool) -> Iterator[tuple[str, Any]]:
    """Every value, or some, at every place, one at a time: `place`, changed data."""
    for place, put in _places(data, ""):
        for value in VALUES if every else random.sample(VALUES, _SAMPLE):
            yield f"{place} = {json.dumps(value)}", put(value)


def _places(data: Any, at: str) -> Iterator[tuple[str, Any]]:
    inside: list[Any] = (
        list(data.items())
        if isinstance(data, dict)
        else list(enumerate(data))
        if isinstance(data, list)
        else []
    )
    for key, value in inside:

        def put(new: Any, key: Any = key) -> Any:
            copy = dict(data) if isinstance(data, dict) else list(data)
            copy[key] = new
            return copy

        yield f"{at}.{key}", put
        for place, inner in _places(value, f"{at}.{key}"):
            yield place, lambda new, put=put, inner=inner: put(inner(new))


def run(verb: tuple[str, ...]) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = entry.run(list(verb))
    return status, err.getvalue() + out.getvalue()


@pytest.mark.timeout(3600 if FULL else 240)
def test_wrong_types(task: Task, home: str) -> None:
    bugs: list[str] = []
    count = 0
    for path in files_of(task):
        with open(path, "rb") as file:
            before = file.read()
        name = os.path.relpath(path, task.packet)
        verbs = VERBS if name == "manifest.json" and FULL else SOME if name == "manifest.json" else SOME[1:2]
        try:
            data = json.loads(before)
        except ValueError:
            continue
        # Every verb reads the manifest, so it gets all values in every run.
        changes = mutations(data, FULL or name == "manifest.json")
        for words, changed in [("the whole", value) for value in VALUES] + list(changes):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(changed, file)
            count += 1
            for verb in verbs:
                status, said = run(verb)
                if status == entry.BUG or "Traceback" in said:
                    bugs.append(f"{name} {words}: {' '.join(verb)}: {said.splitlines()[0][:150]}")
            try:
                timeline.gather(Home(home).packet("it"))
            except Exception as error:
                bugs.append(f"{name} {words}: timeline: {error!r}")
        with open(path, "wb") as file:
            file.write(before)
    assert count > 200
    seen = sorted({bug.partition(" = ")[0] + " → " + bug.partition(": ")[2] for bug in bugs})
    assert not bugs, f"{len(bugs)} of {count}:\n" + "\n".join(seen[:80])
