"""The two walkthroughs of a harness: a whole iteration, and an interrupt that a person answers; with the
scripted agent."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.store.layout import Home
from holdfast.testing import Scenario
from tests.support import keepers, loops, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("with_keeper")


def scenario(played: Scenario) -> str:
    return str(played.write_to(os.path.join(workspace(), "scenario.json")))


def submit(played: Scenario, *flags: str) -> Task:
    return loops.submit("--agent", "scripted", "-o", f"scenario={scenario(played)}", *flags)


def audit() -> list[dict]:
    done = holdfast("audit", "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.req("QUE-2", "LCH-10", "LCH-12", "LCH-13", "TST-1", "TST-2", "AUD-2", "PKT-12", "PKT-16", "W-C7")
def test_a_whole_iteration(home: str) -> None:
    """Queue → spawn with the bootstrap → monitor → completion → archive → metrics."""
    # Three work items; the first by priority has an id that a template engine could stumble over.
    first = {"id": "b|x&y", "title": "Implement authentication", "priority": "high"}
    rest = [{"id": f"issue-{number}", "title": "later"} for number in (124, 125)]
    played = (
        Scenario()
        .say("I look around")
        .tool("Read")
        .write("auth.txt", content="done\n")
        .usage(input_tokens=45230, output_tokens=8450)
    )
    path = scenario(played.say("Implemented.").result("ok"))
    given = {"agent": "scripted", "options": {"scenario": path}, "rig": "aardwolf_snd"}
    for item in (*rest, first):
        done = holdfast(
            *("queue", "add", json.dumps({**item, **given}), "--project", workspace()),
            env={"HOLDFAST_KEEPER": "off"},
        )
        assert done.returncode == 0, done.stderr
    assert holdfast("queue", "check").stdout == "3\n"
    assert holdfast("queue", "next").stdout == "b-x-y\n"

    with loops.foreground("--max-iterations", "1") as loop:
        assert loop.wait(timeout=60) == 0
    task = loops.task("b-x-y")
    manifest = task.wait_for("completed")

    # Spawn: the states in order, the pid file, argv as an array, the bootstrap in front of a short prompt.
    assert task.moves() == ["spawning", "running", "completing", "completed"]
    (attempt,) = task.attempts()
    session = os.path.basename(task.events("attempt.opened")[0]["attempt_id"])
    with open(os.path.join(attempt, "pid"), encoding="utf-8") as file:
        assert int(file.read()) == task.events("attempt.started")[0]["pid"]
    assert isinstance(task.json("attempts", os.path.basename(attempt), "argv.json")["argv"], list)
    start = task.memory().starts()[0]
    for line in (
        "# You work under holdfast",
        "- work item: b|x&y",
        f"- session: {session}, iteration 1, rig aardwolf_snd",
        "The work: Implement authentication",
        task.path("state", "interrupt-request.txt"),
    ):
        assert line in start.prompt
    assert start.cwd == os.path.realpath(workspace()) or str(start.cwd) == workspace()

    # Monitor and completion: heartbeat, work item, the derived view of the session.
    assert manifest["heartbeat"]["tool_calls"] >= 1
    assert task.json("state", "work.json")["status"] == "completed"
    assert task.json("state", "work.json")["id"] == "b|x&y"
    view = task.json("state", "current-session.json")
    assert (view["session_id"], view["status"], view["exit_code"]) == (session, "completed", 0)
    assert view["work"]["id"] == "b|x&y"
    assert view["ended_at"]

    # Audit trail and metrics.
    said = [(line["operation"], line.get("new")) for line in audit() if line.get("task_id") == task.id]
    assert ("task.moved", "running") in said
    assert ("task.moved", "completed") in said
    figures = json.loads(holdfast("metrics", task.id, "--json").stdout)
    assert figures["tool_usage"]["total"] >= 1
    assert (figures["api_usage"]["input_tokens"], figures["api_usage"]["output_tokens"]) == (45230, 8450)
    assert json.loads(holdfast("metrics", "--json").stdout)["home"]["by_status"]["completed"] == 1

    # Next iteration: archived, with its logs; nothing temporary is left, and the others still wait.
    assert holdfast("archive", task.id).returncode == 0
    archived = Task(os.path.join(home, "archive", task.id))
    assert archived.status() == "completed"
    assert "Implemented." in archived.log()
    assert os.path.getsize(os.path.join(archived.attempts()[0], "stdout.log")) > 0
    assert not os.path.exists(archived.path("env.json"))
    assert "Implemented." in holdfast("logs", task.id).stdout
    assert holdfast("queue", "check").stdout == "2\n"
    report = json.loads(holdfast("report", "--json").stdout)
    assert [row["task_id"] for row in report["ended"]] == [task.id]


@pytest.mark.req("INT-1", "INT-3", "INT-4", "NOT-3")
def test_an_interrupt_that_a_person_answers(home: str) -> None:
    """Interrupt by the agent → preserved context → notification → a person's answer → the same session
    continues."""
    told = os.path.join(workspace(), "told")
    loops.settings(
        "[[notify]]\non = ['interrupted']\nto = 'command'\n"
        f"argv = ['sh', '-c', 'echo \"$HOLDFAST_TASK: $HOLDFAST_REASON\" >> {told}']\n"
    )
    question = "Tests failing, need to check main branch health"
    played = (
        Scenario()
        .tool("Bash", command="true")
        .say("Tests failed.")
        .interrupt_request(question, once=True)
        .hang(once=True)
        .say("main is healthy, I go on.")
        .result("ok")
    )
    task = submit(played, "--id", "it", "--base-interval", "0.2s", "--stale", "none", "fix the tests")
    loops.fill(next=loops.working())
    loops.up()

    manifest = task.wait_for("interrupted", within_s=30)
    assert manifest["interrupt"]["reason"] == question
    pid = task.events("attempt.started")[0]["pid"]
    assert not processes.is_alive(pid)
    context = task.json("state", "interrupts", "1", "context.json")
    assert (context["interrupt_reason"], context["agent_session_id"]) == (question, manifest["session_id"])
    assert question in task.read("state", "interrupts", "1", "summary.md").decode()
    assert "Tests failed." in task.read("state", "interrupts", "1", "logs.txt").decode()

    def was_told() -> bool:
        with open(told, encoding="utf-8") as file:
            return file.read() == f"it: {question}\n"

    eventually(was_told, what="the overseer is told, once")
    # The queue is not paused: other tasks use its slot, and the task waits for a person.
    loops.task("next").wait_for("completed")
    assert any(question in line for line in keepers.status(home)["attention"])
    assert holdfast("wait", "it", "--timeout", "0.1s").returncode in (4, 6)

    assert task.ask("resume", "-m", "main is fine, run them again").returncode == 0
    task.wait_for("completed", within_s=30)
    first, second = task.memory().starts()
    assert first.env["HOLDFAST_TASK"] == second.env["HOLDFAST_TASK"] == "it"
    assert (second.is_resume, "main is fine, run them again" in second.prompt) == (True, True)
    assert task.memory().overlaps() == []
    assert not os.path.exists(task.path("state", "interrupt-request.txt"))
    report = json.loads(holdfast("report", "--json").stdout)
    assert [row["task_id"] for row in report["interrupts"]] == ["it"]


# ── the bootstrap ──


@pytest.mark.req("LCH-12")
def test_a_resumed_session_does_not_get_the_bootstrap_again(home: str) -> None:
    played = Scenario().say("one").crash(once=True).say("two").result("ok")
    task = submit(played, "--bootstrap", "default", "--base-interval", "0.2s", "do it")
    loops.up()
    task.wait_for("completed", within_s=30)
    first, second = task.memory().starts()
    assert "# You work under holdfast" in first.prompt
    assert "# You work under holdfast" not in second.prompt


@pytest.mark.req("TST-1", "BUD-9", "LCH-14")
def test_a_bootstrap_that_is_missing_aborts_before_the_start(home: str) -> None:
    played = scenario(Scenario().result("ok"))
    path = os.path.join(workspace(), "own.md")
    flags = ("--agent", "scripted", "-o", f"scenario={played}", "--bootstrap", path)
    done = holdfast("submit", *flags, "do it", cwd=workspace())
    assert (done.returncode, "cannot read the bootstrap" in done.stderr) == (2, True)
    assert os.listdir(Home(home).tasks) == []
    # If it disappears while the task waits, no agent is started, and the loop continues.
    with open(path, "w", encoding="utf-8") as file:
        file.write("session {{SESSION_ID}}\n")
    lost = loops.submit(*flags, "--id", "lost", "do it")
    os.remove(path)
    unset = os.path.join(workspace(), "unset.md")
    with open(unset, "w", encoding="utf-8") as file:
        file.write("colour {{COLOUR}}\n")
    odd = loops.submit(*flags[:-1], unset, "--id", "odd", "do it")
    loops.up()
    # A person can restore a file; a template that cannot be filled stays unusable.
    assert "own.md cannot be read" in lost.wait_for("interrupted", within_s=30)["status_reason"]
    assert "COLOUR" in odd.wait_for("failed", within_s=30)["status_reason"]
    assert lost.attempts() == odd.attempts() == []


@pytest.mark.req("LCH-14")
def test_an_immediate_crash_shows_stderr(home: str) -> None:
    task = Task.shell("echo 'no such key' >&2; exit 7", "--max-retries", "0")
    manifest = task.wait_for("failed")
    assert "no such key" in manifest["status_reason"]
    assert "after its start" in manifest["status_reason"]
