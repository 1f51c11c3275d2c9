"""When an agent is out of quota, another takes over with a briefing, in both directions; if all are out, the
task waits."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from holdfast import clock
from holdfast.store import lock as locks
from holdfast.testing import Scenario
from tests.support.packets import REPORTS, Written, calls, gate
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

#: Two agents that play scenarios, one file for each call of the task, and can be out of quota for a while.
PLUGIN = """
from holdfast import clock
from holdfast.agents.base import Capabilities, Launch
from holdfast.agents.scripted import Scripted
from holdfast.model.outcome import Outcome


class Limited(Scripted):
    capabilities = Capabilities(
        chooses_session_id=True, session_id_from="chosen", can_resume=True, stdin_prompt=True,
        has_events=True, stale_s=90.0,
    )

    def __init__(self, name):
        self.name = name

    def classify(self, end, attempt):
        text = attempt.result.text if attempt.result is not None else ""
        if text.startswith("out for "):
            resets_at = clock.iso(clock.now() + float(text.split()[2]))
            return Outcome(kind="rate_limit", detail=text, resets_at=resets_at)
        if text.startswith("too long"):
            return Outcome(kind="context_too_long", detail=text)
        if text.startswith("no login"):
            return Outcome(kind="auth", detail=text)
        return super().classify(end, attempt)

    def _line(self, spec, flag):
        call = f"{spec.task.options['calls']}/{spec.resume_count}-{self.name}.json"
        task = spec.task.evolve(options={**spec.task.options, "scenario": call})
        return super()._line(spec.evolve(task=task), flag)


class Gone(Limited):
    def _line(self, spec, flag):
        return Launch(argv=["/nowhere/agent"])


ONE, TWO, GONE = Limited("one"), Limited("two"), Gone("gone")
"""


@pytest.fixture(autouse=True)
def agents(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`one` and `two`, installed; of `gone` the program is missing."""
    site = os.path.join(os.path.dirname(home), "site-packages")
    info = os.path.join(site, "limited-1.0.dist-info")
    os.makedirs(info)
    for path, text in (
        (os.path.join(site, "limited.py"), PLUGIN),
        (os.path.join(info, "METADATA"), "Metadata-Version: 2.1\nName: limited\nVersion: 1.0\n"),
        (
            os.path.join(info, "entry_points.txt"),
            "[holdfast.agents]\none = limited:ONE\ntwo = limited:TWO\ngone = limited:GONE\n",
        ),
    ):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    monkeypatch.setenv("PYTHONPATH", site, prepend=os.pathsep)


def out(seconds: float, said: str = "") -> Scenario:
    """It prints a text, then it is out of quota for this long."""
    scenario = Scenario().say(said) if said else Scenario()
    return scenario.result(f"out for {seconds} s", is_error=True).exit(1)


def write_calls(*scenarios: tuple[str, Scenario]) -> str:
    """What each call of the task does, and which agent it is."""
    folder = os.path.join(workspace(), "calls")
    os.mkdir(folder)
    for number, (agent, scenario) in enumerate(scenarios):
        scenario.write_to(os.path.join(folder, f"{number}-{agent}.json"))
    return folder


def start(*scenarios: tuple[str, Scenario], agent: str = "one", env: dict[str, str] | None = None) -> Task:
    return Task.start(
        "--agent", agent, "--failover", "two", "-o", f"calls={write_calls(*scenarios)}",
        "--base-interval", "0.3s", "sort the attic", env=env,
    )  # fmt: skip


def switches(task: Task) -> list[tuple[str, str]]:
    return [(event["old"], event["new"]) for event in task.events("agent.switched")]


def told(task: Task, call: dict[str, Any]) -> str:
    return task.read("attempts", f"{call['attempt']:03d}-{call['stage']}", "prompt").decode()


def test_another_agent_takes_over_with_a_briefing() -> None:
    task = start(("one", out(600, "I sorted half of it.")), ("two", Scenario().result("sorted")))
    task.wait_for("completed")
    assert switches(task) == [("one", "two")]
    first, second = calls(task)
    assert [(call["agent"], call["mode"]) for call in (first, second)] == [
        ("one", "fresh"),
        ("two", "briefing"),
    ]
    assert first["session_id"] != second["session_id"]
    assert "sort the attic" in told(task, second)
    assert "I sorted half of it." in told(task, second)
    assert "out for 600" in task.events("agent.switched")[0]["reason"]
    manifest = task.manifest()
    # A rate limit is not a failure and costs no retry.
    assert (manifest["agent"], manifest["total_retries"]) == ("two", 0)


@pytest.mark.req("INT-6")
def test_a_full_context_is_handed_over_to_a_fresh_session() -> None:
    full = (
        Scenario()
        .write("attic.txt", content="hats\n")
        .say("The hats are sorted, the coats are not.")
        .result("too long", is_error=True)
        .exit(1)
    )
    task = start(("one", full), ("one", Scenario().result("sorted")))
    task.wait_for("completed")
    assert switches(task) == []
    first, second = calls(task)
    assert (second["agent"], second["mode"]) == ("one", "briefing")
    assert first["session_id"] != second["session_id"]
    text = told(task, second)
    for part in (
        "sort the attic",
        "The hats are sorted, the coats are not.",
        "- attic.txt",
        "context_too_long",
    ):
        assert part in text


@pytest.mark.req("INT-6", "SUP-7")
def test_a_briefing_whose_agent_could_not_be_started_is_given_again_to_the_same_new_session() -> None:
    """The directory is gone when the second agent is to start, and back when the third is."""
    project = workspace()
    full = Scenario().say("The hats are sorted.").tool("Bash", command=f"mv {project} {project}.away")
    full.result("too long", is_error=True).exit(1)
    script = write_calls(("one", full), ("one", Scenario().result("sorted")))
    task = Task.start(
        "--agent", "one", "-o", f"calls={script}", "--base-interval", "1s", "sort the attic"
    )  # fmt: skip
    task.wait_for_event("attempt.ended", 2)
    os.rename(f"{project}.away", project)
    task.wait_for("completed")
    assert [event["outcome"] for event in task.events("attempt.ended")] == [
        "context_too_long",
        "spawn_failed",
        "success",
    ]
    first, second, third = calls(task)
    assert [call["mode"] for call in (first, second, third)] == ["fresh", "briefing", "briefing"]
    assert first["session_id"] != second["session_id"] == third["session_id"]
    for part in ("sort the attic", "The hats are sorted."):
        assert part in told(task, third)


def test_there_and_back_again() -> None:
    slow = out(600, "I sorted the rest, but for the hats.")
    slow.steps.insert(0, {"sleep": {"s": 1.2}})
    task = start(("one", out(1)), ("two", slow), ("one", Scenario().result("sorted")))
    task.wait_for("completed")
    assert switches(task) == [("one", "two"), ("two", "one")]
    assert [call["mode"] for call in calls(task)] == ["fresh", "briefing", "briefing"]
    assert "but for the hats" in told(task, calls(task)[2])


def test_where_all_are_out_it_waits_for_the_first_that_is_back() -> None:
    task = start(("one", out(4)), ("two", out(600)), ("one", Scenario().result("sorted")))
    manifest = task.wait_for("waiting")
    assert clock.parse_iso(manifest["wake_at"]) - clock.now() < 15
    task.wait_for("completed")
    assert switches(task) == [("one", "two"), ("two", "one")]
    assert task.manifest()["total_retries"] == 0


def test_an_agent_that_is_not_logged_in_is_passed_over() -> None:
    refused = Scenario().result("no login", is_error=True).exit(1)
    task = start(("one", refused), ("two", Scenario().result("sorted")))
    task.wait_for("completed")
    assert switches(task) == [("one", "two")]


@pytest.mark.req("PKT-13")
def test_an_agent_whose_program_is_gone_is_passed_over() -> None:
    # Killed before it learned of the start: its successor finds that nothing was started.
    env = {"HOLDFAST_FAILPOINT": "attempt.forked=kill"}
    task = start(("two", Scenario().result("sorted")), agent="gone", env=env)
    eventually(
        lambda: os.path.exists(os.path.join(task.attempts()[0], "exit.json")), what="it could not start"
    )
    task.start_runner()
    task.wait_for("completed")
    assert switches(task) == [("gone", "two")]
    assert [event["outcome"] for event in task.events("attempt.ended")] == ["spawn_failed", "success"]


@pytest.mark.req("INT-1", "INT-2")
def test_an_interrupt_wins_over_a_failover() -> None:
    env = {"HOLDFAST_FAILPOINT": "step.record_end=kill"}
    task = start(("one", out(600)), ("two", Scenario().result("sorted")), env=env)
    task.wait_for_event("attempt.ended")
    eventually(lambda: not locks.is_held(task.path("runner.lock")), what="its runner is dead")
    assert task.ask("interrupt", "-m", "hold on").returncode == 0
    assert task.wait_for("interrupted")["interrupt"]["reason"] == "hold on"
    assert switches(task) == []
    task.stop()


def test_a_runner_that_is_killed_keeps_to_the_one_who_took_over() -> None:
    go = os.path.join(workspace(), "go")
    task = start(("one", out(600)), ("two", Scenario().say("here").wait_file(go).result("sorted")))
    task.wait_for_event("agent.text")
    task.kill_runner()
    with open(go, "w", encoding="utf-8"):
        pass
    task.start_runner()
    task.wait_for("completed")
    assert switches(task) == [("one", "two")]
    assert len(calls(task)) == 2


def test_a_stage_of_a_packet_is_taken_over() -> None:
    packet = Written(intent="review_only", routing={"failover": ["two"]}, acceptance={"commands": []})
    packet.manifest["routing"]["options"] = {
        "one": {
            "calls": write_calls(("one", out(600)), ("two", Scenario().say(REPORTS["review"]).result("ok")))
        }
    }
    packet.put("manifest.yaml", json.dumps(packet.manifest))
    for agent in ("one", "two"):
        about = {"version": 1, "agent": agent, "allowed_models": "any"}
        packet.project.write(f".holdfast/agents/{agent}.yaml", json.dumps(about))
    profile = {"review_only": {"stages": ["one_review"]}}
    packet.project.write(
        ".holdfast/pipelines/review.yaml",
        json.dumps({"version": 1, "pipeline": "review", "profiles": profile}),
    )
    assert holdfast("trust", packet.project.path, "--yes").returncode == 0
    task = packet.run()
    assert switches(task) == [("one", "two")]
    assert gate(task, "one_review")["passed"]
    meta = task.json("outputs", "one_review.two.meta.json")
    assert (meta["tool"], meta["outcome"]) == ("two", "success")
    assert task.json("outputs", "one_review.one.meta.json")["outcome"] == "rate_limit"
    assert os.path.exists(task.path("inputs", "prompt", "two.review.md"))
    assert task.json("state", "stats.json")["paid_calls"] == 2


def test_what_cannot_take_over_is_refused() -> None:
    for words in (("--failover", "nobody"), ("--failover", "one")):
        done = holdfast("run", "--agent", "one", *words, "do it", cwd=workspace())
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("error: ")
