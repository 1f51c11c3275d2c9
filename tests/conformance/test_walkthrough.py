"""The two walkthroughs of a harness, with a real program: a whole iteration of the loop, and an interrupt
that is answered."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.testing.models import all_texts, last_user_text, shell, system_text, text, write
from tests.conformance.crew import Crew
from tests.conformance.rig import STEP_S, attempts
from tests.support import loops, processes
from tests.support.tasks import Task, holdfast

QUESTION = "Tests failing, need to check main branch health"
ANSWER = "main is fine, run them again"


def add(crew: Crew, work_id: str) -> Task:
    """One work item for Claude, as in a tracker. Its tools are allowed; permissions are not bypassed."""
    item = {
        "id": work_id,
        "title": "Implement authentication",
        "prompt": "You are spawned by the harness. Check your session context and begin work.",
        "agent": "claude",
        "model": crew.servers["claude"].setup("claude").model,
        "rig": "aardwolf_snd",
        "options": {"allowed_tools": "Bash,Read,Edit,Write,Glob,Grep"},
    }
    env = {**crew.env, "INTERRUPT_CHECK_INTERVAL": "1", "HOLDFAST_KEEPER": "off"}
    done = holdfast("queue", "add", json.dumps(item), "--project", crew.project.path, env=env)
    assert done.returncode == 0, done.stderr
    return loops.task(done.stdout.strip())


def test_walkthrough(crew: Crew, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    path = os.path.join(crew.project.path, "auth.txt")
    ask = f'printf %s "{QUESTION}" > "$INTERRUPT_FILE"; sleep 120'
    server = crew.serve(
        "claude",
        [
            write(path, "done\n", text="I implement it."),
            text("Implemented, and checked."),
            shell(ask, text="Tests failed."),
            text("main is healthy, all done."),
        ],
    )

    # A whole iteration.
    task = add(crew, "issue-123")
    with loops.foreground("--max-iterations", "1") as loop:
        assert loop.wait(timeout=2 * STEP_S) == 0
    manifest = task.wait_for("completed", within_s=STEP_S)
    assert task.moves() == ["spawning", "running", "completing", "completed"]
    assert os.path.exists(path)
    opening = server.conversations()[0]
    assert "# You work under holdfast" in system_text(opening)
    assert "- work item: issue-123" in system_text(opening)
    assert "iteration 1, rig aardwolf_snd" in system_text(opening)
    assert "You are spawned by the harness." in last_user_text(opening)
    assert manifest["heartbeat"]["tool_calls"] == 1
    assert json.loads(holdfast("metrics", task.id, "--json").stdout)["api_usage"]["output_tokens"] > 0
    assert holdfast("archive", task.id).returncode == 0
    assert "Implemented, and checked." in holdfast("logs", task.id).stdout

    # An interrupt by the agent, and a person's answer in the same session.
    asking = add(crew, "issue-124")
    loops.up()
    manifest = asking.wait_for("interrupted", within_s=2 * STEP_S)
    assert manifest["interrupt"]["reason"] == QUESTION
    assert not processes.marked(asking.path("attempts"))
    context = asking.json("state", "interrupts", "1", "context.json")
    assert (context["interrupt_reason"], context["agent_session_id"]) == (QUESTION, manifest["session_id"])
    assert "Tests failed." in asking.read("state", "interrupts", "1", "logs.txt").decode()
    assert asking.ask("resume", "-m", ANSWER).returncode == 0
    asking.wait_for("completed", within_s=2 * STEP_S)
    first, second = attempts(asking)
    assert (first["session_id"], second["mode"]) == (second["session_id"], "resume")
    told = all_texts(server.conversations()[-1])
    for words in ("You are spawned by the harness.", "Tests failed.", ANSWER):
        assert any(words in one for one in told), words
