"""The loop over the queue for tests: fill the queue, start a keeper, read the stamps of the agents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.packet import inbox
from holdfast.store.layout import Home
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

#: Shell: a line of `stamps` in the workspace, with what happened, to which task, when.
STAMP = 'stamp() { echo "$1 $HOLDFAST_TASK $(date +%s.%N)" >> stamps; }; '


def working(for_s: float = 0.0, then: str = "true") -> str:
    """A shell script that records its start and end."""
    return f"{STAMP} stamp begin; sleep {for_s}; stamp end; {then}"


def settings(text: str) -> None:
    """The user's settings."""
    folder = os.path.expanduser("~/.config/holdfast")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as file:
        file.write(text)


def task(task_id: str) -> Task:
    """A task of the home by its id."""
    return Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", task_id))


def submit(*args: str, env: dict[str, str] | None = None) -> Task:
    """`holdfast submit ARGS…`, without starting a keeper."""
    done = holdfast("submit", *args, cwd=workspace(), env={"HOLDFAST_KEEPER": "off", **(env or {})})
    assert done.returncode == 0, done.stderr
    return task(done.stdout.strip())


def fill(**scripts: str | dict[str, Any]) -> list[Task]:
    """Put scripts into the queue, by the name of their task; a dict is a whole work item."""
    items = [
        {"id": name, "command": ["sh", "-c", given]} if isinstance(given, str) else {"id": name, **given}
        for name, given in scripts.items()
    ]
    path = os.path.join(workspace(), ".items.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(items, file)
    done = holdfast(
        "queue", "import", path, "--trust-project", cwd=workspace(), env={"HOLDFAST_KEEPER": "off"}
    )
    assert done.returncode == 0, done.stderr
    return [task(name) for name in scripts]


def item(script: str, **place: Any) -> dict[str, Any]:
    """A work item for `fill`: the script, and its place in the queue."""
    return {"command": ["sh", "-c", script], **place}


def up(*flags: str, env: dict[str, str] | None = None) -> None:
    """`holdfast up`, without a pause between two tasks."""
    done = holdfast("up", "--iteration-delay", "0", *flags, env=env, cwd=workspace())
    assert done.returncode == 0, done.stderr


@contextmanager
def foreground(*flags: str, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """`holdfast up --foreground`, in parallel to the test."""
    argv = [sys.executable, "-m", "holdfast", "up", "--foreground", "--iteration-delay", "0", *flags]
    process = subprocess.Popen(argv, env={**os.environ, **(env or {})}, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def ring(home: str) -> None:
    """Have the keeper check now instead of every 15 s."""
    inbox.ring_keeper(Home(home))


def stamps(what: str | None = None) -> list[tuple[str, str, float]]:
    """The stamps so far, or those of one kind, in the order of their times."""
    try:
        with open(os.path.join(workspace(), "stamps"), encoding="utf-8") as file:
            found = [(line.split()[0], line.split()[1], float(line.split()[2])) for line in file]
    except FileNotFoundError:
        return []
    return sorted((each for each in found if what in (None, each[0])), key=lambda each: each[2])


def order() -> list[str]:
    """The tasks in the order in which their agents began."""
    return [task_id for _, task_id, _ in stamps("begin")]


def most_at_once(only: tuple[str, ...] = ()) -> int:
    """The highest number of agents that worked at the same time, by their stamps."""
    running = most = 0
    for what, task_id, _ in stamps():
        if only and task_id not in only:
            continue
        running += 1 if what == "begin" else -1
        most = max(most, running)
    return most


def wait_for_begin(task_id: str, within_s: float = 20.0) -> None:
    """Wait until its agent has started."""
    eventually(lambda: task_id in order(), within_s, f"{task_id} has begun")


def queue() -> dict[str, dict[str, Any]]:
    """The items of the queue by their task."""
    done = holdfast("queue", "ls", "--json")
    return {each["task_id"]: each for each in json.loads(done.stdout)["items"]}
