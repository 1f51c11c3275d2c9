"""Fan-outs for tests: a repository, a plan, and one scenario that plays the agent of every item."""

from __future__ import annotations

import json
import os
from typing import Any

from holdfast.testing import Scenario
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace

#: What an agent does that is told to merge the work of the others: its own side of each conflict stays.
MERGES = "git -c user.name=A -c user.email=a@example.org merge -q -X ours --no-edit holdfast/f1"


def item(name: str, **more: Any) -> dict[str, Any]:
    """An item of a plan."""
    return {"id": name, "title": f"do {name}", "prompt": f"Please do {name}.", **more}


def project() -> Repo:
    """A repository with two files."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("shared.txt", "start\n")
    repo.write("README.md", "hello\n")
    repo.commit("shared.txt", "README.md")
    return repo


def agent(*cases: tuple[str, str], again: str = "true") -> Scenario:
    """An agent that runs the shell command of its item, and `again` when it is sent back."""
    arms = " ".join(f"*.{name}) {command} ;;" for name, command in cases)
    work = Scenario().tool("sh", command=f'case "$HOLDFAST_TASK" in {arms} esac').say("done").result("ok")
    return work.resumed(Scenario().tool("sh", command=again).say("done").result("ok"))


def together(count: int = 2) -> str:
    """A command that ends when the agents of so many items have come to it: they started from one commit."""
    folder = os.path.join(workspace(), "together")
    os.makedirs(folder, exist_ok=True)
    return f"touch {folder}/$HOLDFAST_TASK; until [ $(ls {folder} | wc -l) -ge {count} ]; do sleep 0.05; done"


def plan(*items: dict[str, Any], **more: Any) -> str:
    """The path of a plan."""
    path = os.path.join(workspace(), "plan.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.plan/1", "items": list(items), **more}, file)
    return path


def start(
    repo: Repo, scenario: Scenario, path: str | None, *flags: str, env: dict[str, str] | None = None
) -> Task:
    """`holdfast fan-out PLAN`."""
    script = scenario.write_to(os.path.join(workspace(), "scenario.json"))
    done = holdfast(
        *("fan-out", *([path] if path else []), "--agent", "scripted", "-o", f"scenario={script}"),
        *("--id", "f1", *flags),
        cwd=repo.path,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    return Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", done.stdout.strip()))


def rows(task: Task) -> dict[str, dict[str, Any]]:
    """What the conductor recorded, by item."""
    return {row["id"]: row for row in task.json("state", "fan-out.json")["rows"]}
