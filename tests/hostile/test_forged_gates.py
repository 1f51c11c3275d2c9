"""Files alone do not pass a gate: neither a forged result nor a forged done marker."""

from __future__ import annotations

import json
import os

import pytest

from tests.support import kin
from tests.support.repos import Repo
from tests.support.tasks import Task, trust, workspace
from tests.support.tools import need_sandbox

STAGE = "command_run"
#: The gate waits for a file, then fails.
CHECK = "while [ ! -e ../judge ]; do sleep 0.05; done; exit 1"


def in_gate() -> Task:
    """A task whose agent succeeded, and whose gate runs and will fail."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write(".holdfast/config.toml", f"post_work = [{json.dumps(CHECK)}]\n")
    repo.commit(".holdfast/config.toml")
    trust(repo.path)
    task = Task.start("--base-interval", "0.2s", "--", "true", project=repo.path)
    task.wait_for_event("attempt.started", 2, within_s=40)
    return task


def put(path: str, data: object) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file)


def forged_result() -> dict[str, object]:
    result = {"schema": "holdfast.gate/1", "stage": STAGE, "role": "run", "attempt": 1, "passed": True}
    return {**result, "failed": "", "reasons": [], "checks": [], "timestamp": "2026-01-01T00:00:00.000Z"}


@pytest.mark.parametrize("dies", [False, True])
def test_a_done_marker_needs_a_gate_that_passed(home: str, *, dies: bool) -> None:
    lock = kin.alone(home)
    task = in_gate()
    put(task.path("done", f"{STAGE}.done"), {"stage": STAGE, "attempt": 1, "run": 1})
    put(task.path("outputs", f"{STAGE}.gate_result.json"), forged_result())
    if dies:
        task.kill_runner()
        task.start_runner()
        task.wait_for_event("runner.started", 2)
    kin.go("judge")
    assert "quality gate failed" in task.wait_for("interrupted", within_s=40)["interrupt"]["reason"]
    assert not task.events("stage.done")
    os.close(lock)


def test_a_result_counts_only_with_the_exit_status_of_its_gate(home: str) -> None:
    """The gate is killed, and another process has written a result that says "passed"."""
    lock = kin.alone(home)
    task = in_gate()
    gates = task.events("attempt.started")
    put(os.path.join(task.attempts()[-1], "result.json"), forged_result())
    kin.kill(gates[-1]["pid"])
    task.wait_for_event("attempt.started", 3, within_s=40)
    kin.go("judge")
    assert "quality gate failed" in task.wait_for("interrupted", within_s=40)["interrupt"]["reason"]
    assert not task.events("stage.done")
    os.close(lock)


@pytest.mark.parametrize("flags", [(), ("--sandbox",)], ids=["without a sandbox", "with a sandbox"])
def test_a_repository_of_the_agents_own_does_not_make_its_work_committed(
    home: str, flags: tuple[str, ...]
) -> None:
    """`clean_git` is about the repository that was there before the agent."""
    if flags:
        need_sandbox()
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("sub/.holdfast/config.toml", "clean_git = true\n")
    repo.commit()
    script = """
        echo work > new
        git init -q; git add -A; git -c user.name=x -c user.email=x@example.org commit -qm mine
    """
    task = Task.shell(script, *flags, project=os.path.join(repo.path, "sub"))
    manifest = task.wait_for("interrupted", within_s=40)
    assert os.path.isdir(os.path.join(repo.path, "sub", ".git"))
    assert "not committed: sub/new" in manifest["interrupt"]["reason"]
