"""People and pipelines: a task is stopped or interrupted in any of its phases, and continues there."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast.testing import Scenario
from tests.support import processes
from tests.support.packets import Written, calls, gate, played, summary
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")


def at_its_gate(**manifest: Any) -> tuple[Task, int]:
    """A task whose gate runs a command that is slow the first time; and the pid of that command."""
    began = os.path.join(workspace(), "began")
    command = f"test -e {began} || {{ echo $$ > {began}.tmp; mv {began}.tmp {began}; sleep 3000; }}"
    packet = Written(
        {"scripted_verify": None},
        intent="review_only",
        group="review",
        acceptance={"commands": [command]},
        **manifest,
    )
    task = packet.start("--stop-pause", "0.5s")
    eventually(lambda: os.path.exists(began), 20, "the gate runs its command", journal=task.packet)
    with open(began, encoding="utf-8") as file:
        return task, int(file.read())


def test_a_task_is_interrupted_at_its_gate_and_judged_again() -> None:
    task, pid = at_its_gate()
    done = task.ask("interrupt", "-m", "wait a moment")
    assert done.returncode == 0, done.stderr
    assert task.wait_for("interrupted")["status_reason"] == "wait a moment"
    eventually(lambda: not processes.is_alive(pid), what="the command of the gate is gone")
    summary(task)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")
    # The agent's work is done; only the gate runs again.
    assert len(calls(task)) == 1
    assert gate(task, "scripted_verify")["passed"]


def test_a_task_is_stopped_at_its_gate() -> None:
    task, pid = at_its_gate()
    assert task.ask("stop").returncode == 0
    task.wait_for("killed")
    assert not processes.is_alive(pid)
    assert not os.path.exists(task.path("done", "scripted_verify.done"))
    # After the restart no other call is needed: the agent's work was not judged yet.
    assert task.ask("retry").returncode == 0
    task.wait_for_event("run.opened")
    task.wait_for("completed")
    assert len(calls(task)) == 1


@pytest.mark.req("BUD-1")
def test_a_deadline_ends_a_gate_too() -> None:
    task, pid = at_its_gate(budgets={"deadline_sec": 2})
    manifest = task.wait_for("abandoned")
    assert "deadline" in manifest["status_reason"]
    assert not processes.is_alive(pid)


def test_stages_side_by_side_are_interrupted_and_go_on_together() -> None:
    go = os.path.join(workspace(), "go")
    stages = {
        f"scripted_{role}": played(role, before=Scenario(on_resume="restart").say("at work").wait_file(go))
        for role in ("review", "static_verify")
    }
    packet = Written(stages, intent="review_only", group="review", waves=[{"parallel": list(stages)}])
    task = packet.start("--stop-pause", "0.5s")
    task.wait_for_event("agent.text", count=2)
    assert task.ask("interrupt").returncode == 0
    task.wait_for("interrupted")
    with open(go, "w", encoding="utf-8"):
        pass
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")
    for stage in stages:
        assert [call["mode"] for call in calls(task, stage)] == ["fresh", "resume"]


@pytest.mark.req("LCH-18")
def test_a_stop_ends_the_task_although_one_of_two_stages_side_by_side_has_finished() -> None:
    """The finished stage is not judged: a stop starts nothing and leaves no done marker."""
    stages = {
        "scripted_review": None,
        "scripted_static_verify": played("static_verify", before=Scenario().say("at work").hang()),
    }
    packet = Written(stages, intent="review_only", group="review", waves=[{"parallel": list(stages)}])
    task = packet.start("--stop-pause", "0.5s", "--stale", "none")
    task.wait_for_event("agent.text", 2)

    def outcomes() -> list[str]:
        numbers = [call["attempt"] for call in calls(task)]
        return [event["outcome"] for event in task.events("attempt.ended") if event["attempt"] in numbers]

    eventually(lambda: outcomes() == ["success"], what="one of them has finished", journal=task.packet)
    opened = len(task.events("attempt.opened"))
    assert task.ask("stop").returncode == 0
    manifest = task.wait_for("killed")
    assert manifest["status_reason"].startswith("stopped by")
    assert task.moves() == ["running", "killed"]
    assert outcomes() == ["success", "stopped"]
    (intended,) = task.events("stop.intended")
    (live,) = calls(task, "scripted_static_verify")
    assert (intended["intent"], intended["attempt"]) == ("stop", live["attempt"])
    assert len(task.events("attempt.opened")) == opened, "nothing was started after the stop, not even a gate"
    assert os.listdir(task.path("done")) == ["_task.done"]


def test_of_two_side_by_side_only_the_one_that_failed_runs_again() -> None:
    ran = os.path.join(workspace(), "ran")
    stages = {
        "scripted_review": played("review", before=Scenario().write(ran, content="review\n", append=True)),
        "scripted_static_verify": played(
            "static_verify", before=Scenario().say("x").crash("KILL", once=True)
        ),
    }
    packet = Written(stages, intent="review_only", group="review", waves=[{"parallel": list(stages)}])
    task = packet.run()
    assert len(calls(task, "scripted_review")) == 1
    assert len(calls(task, "scripted_static_verify")) == 2
    with open(ran, encoding="utf-8") as file:
        assert file.read() == "review\n"


@pytest.mark.req("INT-1")
def test_an_agent_asks_a_person_in_the_middle_of_a_pipeline() -> None:
    asking = Scenario().interrupt_request("which greeting?").say("I asked.")
    packet = Written({"scripted_brief": None, "scripted_impl": asking.result("ok"), "scripted_review": None})
    task = packet.start()
    manifest = task.wait_for("interrupted", within_s=20)
    assert "which greeting?" in manifest["interrupt"]["reason"]
    assert calls(task, "scripted_review") == []
    assert "which greeting?" in summary(task)
    played("impl", before=Scenario(on_resume="restart").write("b.txt", content="hello\n")).write_to(
        os.path.join(packet.path, "scripted_impl.json")
    )
    assert task.ask("resume", "-m", "hello will do").returncode == 0
    task.wait_for("completed", within_s=20)
    again = calls(task, "scripted_impl")[-1]
    assert (
        "hello will do" in task.read("attempts", f"{again['attempt']:03d}-scripted_impl", "prompt").decode()
    )
