"""Deaths of the agent and of the runner: the work continues where it was."""

from __future__ import annotations

import os
import signal

from holdfast.model.outcome import SUCCESS
from holdfast.testing.models import ModelRequest, all_texts, last_user_text, shell, stall, text, user_texts
from tests.conformance.rig import PI_FORGETS, STEP_S, Rig, attempts, summary
from tests.support.tasks import Task
from tests.support.waiting import journal_tail

#: A tool that runs until the test lets it end.
HOLD = "touch began; while test ! -e go; do sleep 0.2; done; echo over"
BRIEFING = "An earlier session worked on this task"
ASKED = "Please hold the line, word 5150."


def test_kill_in_tool(rig: Rig) -> None:
    server = rig.serve([shell(HOLD, text="About to hold."), text("All done.")])
    task = rig.start(server, ASKED)
    rig.wait_for_tool(task, "began", ASKED)
    # A CLI may start the tool before it has saved its last text.
    rig.wait_until_noted(task, "About to hold.")
    os.kill(task.agent_pid(), signal.SIGKILL)
    task.wait_for("completed", within_s=STEP_S)
    _resumed(task, "killed")
    last = server.conversations()[-1]
    assert _has_history(last)
    assert any("About to hold." in said for said in all_texts(last)), "it includes the agent's earlier text"
    if rig.agent == "opencode":
        rig.note(
            "OpenCode does not tell when a tool starts: "
            "the resume message cannot name the command that was cut off."
        )
    else:
        assert HOLD in last_user_text(last), "the message names the command that was cut off"
    assert not rig.left_of(task)


def test_kill_in_stream(rig: Rig) -> None:
    server = rig.serve([stall(2, text="one two three four five six seven eight"), text("All done.")])
    task = rig.start(server, ASKED)
    server.wait_for_stall(within_s=STEP_S)
    if rig.agent != "pi":
        rig.wait_until_noted(task, ASKED)
    if rig.agent == "opencode":
        # It chooses the id itself, and reports it when the answer begins.
        task.wait_for_event("agent.session", within_s=STEP_S)
    if rig.agent == "copilot":
        # Only its output shows whether its session can be resumed: without any, it may not be saved.
        rig.wait_for_output(task, b'"assistant.message_delta"')
    os.kill(task.agent_pid(), signal.SIGKILL)
    task.wait_for("completed", within_s=STEP_S)
    if rig.agent == "pi":
        rig.cannot(PI_FORGETS)
        assert summary(task) == [("fresh", "killed"), ("briefing", "success")]
        assert BRIEFING in last_user_text(server.conversations()[-1])
    else:
        _resumed(task, "killed")
        assert _has_history(server.conversations()[-1])


def test_kill_before_session(rig: Rig) -> None:
    server = rig.serve([text("All done.")])
    task = rig.start(server, ASKED, held_up=True)
    os.kill(task.agent_pid(), signal.SIGKILL)
    rig.let_start()
    task.wait_for("completed", within_s=STEP_S)
    assert attempts(task)[0]["outcome"] == "killed"
    assert attempts(task)[-1]["mode"] == "briefing"
    (request,) = server.conversations()
    assert BRIEFING in last_user_text(request)
    assert ASKED in last_user_text(request)


def test_sigterm(rig: Rig) -> None:
    server = rig.serve([shell(HOLD, text="About to hold."), text("All done.")])
    task = rig.start(server, ASKED)
    rig.wait_for_tool(task, "began", ASKED)
    os.kill(task.agent_pid(), signal.SIGTERM)
    task.wait_for("completed", within_s=STEP_S)
    assert attempts(task)[0]["outcome"] not in SUCCESS
    if rig.agent in ("gemini", "copilot"):
        assert attempts(task)[0]["exit_code"] == 0, "the CLI calls it a success"
    assert attempts(task)[-1]["mode"] == "resume"
    assert _has_history(server.conversations()[-1])
    assert not rig.left_of(task)


def test_runner_killed(rig: Rig) -> None:
    server = rig.serve([shell(HOLD, text="About to hold."), text("All done.")])
    task = rig.start(server, ASKED)
    rig.wait_for_file("began")
    agent = task.agent_pid()
    task.kill_runner()
    task.start_runner()
    task.wait_for_event("runner.started", 2, within_s=STEP_S)
    assert task.agent_pid() == agent
    rig.touch("go")
    task.wait_for("completed", within_s=STEP_S)
    assert [one["outcome"] for one in attempts(task)] == ["success"]
    assert "All done." in task.log()


def test_two_tasks(rig: Rig) -> None:
    words = {"first": "word 1111", "second": "word 2222"}
    scripts = {
        name: [shell(HOLD.replace("began", name), text=f"I hold for {word}."), text("All done.")]
        for name, word in words.items()
    }

    def answer(request: ModelRequest):
        name = next(name for name, word in words.items() if word in "".join(user_texts(request)))
        return scripts[name].pop(0)

    server = rig.serve(answer)
    tasks: dict[str, Task] = {}
    for name, word in words.items():
        # Started one after the other, so that they do not set up the CLI's home at the same time.
        tasks[name] = rig.start(server, f"Please hold the line, {word}.")
        rig.wait_for_tool(tasks[name], name, word)
    for task in tasks.values():
        os.kill(task.agent_pid(), signal.SIGKILL)
    for task in tasks.values():
        task.wait_for("completed", within_s=STEP_S)
        _resumed(task, "killed")
    assert len({task.manifest()["session_id"] for task in tasks.values()}) == 2
    for request in server.conversations():
        told = "".join(all_texts(request))
        assert sum(word in told for word in words.values()) == 1, "each session has only its own task"


def _resumed(task: Task, outcome: str) -> None:
    """Two attempts in one session."""
    assert summary(task) == [("fresh", outcome), ("resume", "success")], journal_tail(task.packet)
    second = attempts(task)[1]
    session_id = task.manifest()["session_id"]
    assert session_id
    assert second["session_id"] == session_id
    assert {event["session_id"] for event in task.events("agent.session")} <= {session_id}


def _has_history(request: ModelRequest) -> bool:
    """The model was sent the original prompt, which our message does not repeat, and our message."""
    is_asked = any(ASKED in said for said in user_texts(request))
    return is_asked and "This is the same session: continue." in last_user_text(request)
