"""Adapters in real tasks, with stand-ins for their programs that print what the real programs were seen to
print."""

from __future__ import annotations

import json
import os
import sys
import uuid
from typing import Any

import pytest

from tests.support.tasks import Task, workspace

CAPTURES = os.path.join(os.path.dirname(__file__), "..", "captures")
#: Records its arguments and prints the n-th script. `!wait NAME`, `!die` and `!exit N` are commands in it;
#: SESSION is the id that it was given.
ACTOR = """#!{python} -IS
import json, os, signal, sys, time
with open({calls!r}, "a+", encoding="utf-8") as calls:
    call = dict(argv=sys.argv[1:], cwd=os.getcwd(), stdin=sys.stdin.read())
    calls.write(json.dumps(call) + "\\n")
    calls.flush()
    calls.seek(0)
    number = len(calls.readlines())
pairs = zip(sys.argv, sys.argv[1:] + [""])
given = [word.partition("=")[2] or after for word, after in pairs if word.startswith({flags!r})]
for line in open({folder!r} + "/" + str(number), encoding="utf-8"):
    if line.startswith("!wait "):
        while not os.path.exists({folder!r} + "/" + line[6:].strip()):
            time.sleep(0.01)
    elif line.startswith("!die"):
        os.kill(os.getpid(), signal.SIGKILL)
    elif line.startswith("!exit "):
        sys.exit(int(line[6:]))
    else:
        sys.stdout.write(line.replace("SESSION", given[0] if given else ""))
        sys.stdout.flush()
"""
FLAGS = ("--session-id", "--resume", "--session")


class Stage:
    """A directory for PATH with one program in it, and what that program plays."""

    def __init__(self, root: str) -> None:
        self.folder = os.path.join(root, "stage")
        os.mkdir(self.folder)

    def cast(self, program: str, *plays: str) -> dict[str, str]:
        """Put the program there; returns the environment in which it is found."""
        for number, play in enumerate(plays, 1):
            with open(os.path.join(self.folder, str(number)), "w", encoding="utf-8") as file:
                file.write(play)
        path = os.path.join(self.folder, program)
        calls = os.path.join(self.folder, "calls")
        text = ACTOR.format(python=sys.executable, calls=calls, flags=FLAGS, folder=self.folder)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return {"PATH": f"{self.folder}:{os.environ['PATH']}"}

    def cue(self, name: str) -> None:
        """Let it continue from `!wait NAME`."""
        with open(os.path.join(self.folder, name), "w", encoding="utf-8"):
            pass

    def calls(self) -> list[dict[str, Any]]:
        """How it was called, each time."""
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


@pytest.fixture
def stage(home: str) -> Stage:
    return Stage(os.path.dirname(home))


def line(**fields: Any) -> str:
    return json.dumps(fields, separators=(",", ":")) + "\n"


# ── Claude Code ─────────────────────────────────────────────────────────────

INIT = line(type="system", subtype="init", session_id="SESSION", model="claude-sonnet-5", tools=[])


def said(*blocks: dict[str, Any]) -> str:
    return line(
        type="assistant",
        message={"id": "m", "role": "assistant", "content": list(blocks)},
        session_id="SESSION",
    )


CALL = said({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make test"}})
RESULT = line(
    type="user",
    message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]},
    session_id="SESSION",
)
DONE = line(
    type="result", subtype="success", is_error=False, num_turns=2, result="All done.", session_id="SESSION",
    total_cost_usd=0.5, usage={"input_tokens": 10, "output_tokens": 20},
    modelUsage={"claude-sonnet-5": {"inputTokens": 10, "outputTokens": 20, "costUSD": 0.5}},
)  # fmt: skip
FINE = INIT + said({"type": "text", "text": "All done."}) + DONE


@pytest.mark.req("OUT-4", "OUT-10", "SUP-14", "W-C4")
def test_a_stream_is_read_while_it_grows(stage: Stage) -> None:
    play = (
        INIT + "not json\n{torn\n" + line(type="never_seen_before", x=1)
        + said({"type": "text", "text": "I begin."}) + CALL + "!wait go\n" + RESULT
        + said({"type": "text", "text": "All done."}) + DONE
    )  # fmt: skip
    task = Task.start("--agent", "claude", "go", env=stage.cast("claude", play))
    started = task.wait_for_event("agent.tool_started")
    assert (started["name"], started["tool_id"]) == ("Bash", "toolu_1")
    assert started["at"].endswith("Z"), "it has the time of receipt, because the line has none"
    assert not task.events("agent.tool_finished")
    stage.cue("go")
    manifest = task.wait_for("completed")
    heartbeat = manifest["heartbeat"]
    assert (heartbeat["message_count"], heartbeat["tool_calls"]) == (2, 1)
    usage = manifest["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["cost_usd"]) == (10, 20, 0.5)
    assert "not json" in task.log(), "lines that are not events are kept as text"


@pytest.mark.req("W-C1", "LCH-11", "LCH-4", "BUD-5", "LCH-16")
def test_claude_is_given_an_id_that_it_accepts_and_all_limits(stage: Stage) -> None:
    task = Task.start(
        "--agent",
        "claude",
        "--model",
        "sonnet",
        "--max-turns",
        "50",
        "--budget-usd",
        "10",
        "Keep this off the line.",
        env=stage.cast("claude", FINE),
    )
    manifest = task.wait_for("completed")
    (call,) = stage.calls()
    argv = call["argv"]
    given = argv[argv.index("--session-id") + 1]
    assert str(uuid.UUID(given)) == given == manifest["session_id"]
    assert argv[argv.index("--output-format") + 1] == "stream-json"
    assert argv[argv.index("--max-turns") + 1] == "50"
    assert argv[argv.index("--max-budget-usd") + 1] == "10"
    assert argv[argv.index("--model") + 1] == "claude-sonnet-5"
    assert "Keep this off the line." in call["stdin"]
    assert not any("Keep this" in word for word in argv)
    (attempt,) = task.attempts()
    with open(os.path.join(attempt, "argv.json"), encoding="utf-8") as file:
        assert json.load(file)["argv"][1:] == argv, "exactly what was executed is recorded"


@pytest.mark.req("RES-3", "RES-9", "RES-1")
def test_claude_goes_on_in_its_session_where_it_was(stage: Stage) -> None:
    first = INIT + said({"type": "text", "text": "I begin."}) + CALL + "!die\n"
    env = stage.cast("claude", first, FINE)
    project = workspace()
    task = Task.start(
        "--agent", "claude", "--model", "sonnet", "--base-interval", "1s", "go", env=env, project=project
    )
    manifest = task.wait_for("completed")
    before, after = stage.calls()
    assert after["argv"][after["argv"].index("--resume") + 1] == manifest["session_id"]
    assert "-c" not in after["argv"]
    assert before["cwd"] == after["cwd"] == os.path.realpath(project)
    assert "make test" in after["stdin"], "the message names the call that was cut off"
    same = [word for word in before["argv"] if word != "--session-id"]
    assert [word for word in after["argv"] if word != "--resume"] == same, "all flags are repeated"
    assert {event["session_id"] for event in task.events("agent.session")} == {manifest["session_id"]}


# ── Codex ───────────────────────────────────────────────────────────────────

THREAD = "0199a0b0-0000-7000-8000-000000000001"
BEGUN = line(type="thread.started", thread_id=THREAD) + line(type="turn.started")
ANSWERED = line(type="item.completed", item={"id": "i", "type": "agent_message", "text": "All done."}) + line(
    type="turn.completed", usage={"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 2}
)


@pytest.mark.req("RES-2", "RES-1")
def test_codex_is_resumed_by_the_id_that_its_stream_gave(stage: Stage) -> None:
    env = stage.cast("codex", BEGUN + "!die\n", BEGUN + ANSWERED)
    task = Task.start("--agent", "codex", "--base-interval", "1s", "go", env=env)
    assert task.wait_for("completed")["session_id"] == THREAD
    before, after = stage.calls()
    assert "resume" not in before["argv"]
    assert after["argv"][-3:] == ["resume", THREAD, "-"]


@pytest.mark.req("RES-2")
def test_without_an_id_nothing_is_guessed(stage: Stage) -> None:
    task = Task.start(
        "--agent", "codex", "--base-interval", "1s", "go", env=stage.cast("codex", "!die\n", BEGUN + ANSWERED)
    )
    task.wait_for("completed")
    assert [event["mode"] for event in task.events("attempt.opened")] == ["fresh", "briefing"]
    _, after = stage.calls()
    assert not {"resume", "--last"} & set(after["argv"])
    assert "An earlier session worked on this task" in after["stdin"]


# ── Gemini, Copilot, OpenCode, Pi ───────────────────────────────────────────

GEMINI = line(type="init", timestamp="2026-11-15T06:00:00.000Z", session_id="SESSION", model="m")
GEMINI_SAID = line(type="message", timestamp="", role="assistant", content="Working. ", delta=True)
COPILOT = line(
    type="assistant.message", data={"content": "Working."}, id="1", timestamp="2026-11-15T06:00:00.000Z"
)
OPENCODE = line(type="step_start", timestamp=1794725920811, sessionID="ses_1", part={})
PI = line(type="session", version=3, id="SESSION") + line(type="agent_start")
PI_SAID = line(
    type="message_end",
    message={
        "role": "assistant", "content": [{"type": "text", "text": "All done."}], "stopReason": "stop",
        "usage": {"input": 1, "output": 2, "cost": {"total": 0.5}}, "timestamp": 1794725920811,
    },
)  # fmt: skip
PLAYS = {
    "gemini": (
        GEMINI
        + GEMINI_SAID
        + line(type="tool_use", tool_name="run_shell_command", tool_id="1", parameters={})
        + "!die\n",
        GEMINI + GEMINI_SAID + line(type="result", timestamp="", status="success", stats={}),
        lambda session: ["--resume", session],
    ),
    "copilot": (
        COPILOT + "!die\n",
        COPILOT + line(type="result", timestamp="", sessionId="SESSION", exitCode=0, usage={}),
        lambda session: [f"--resume={session}"],
    ),
    "opencode": (
        OPENCODE + "!die\n",
        OPENCODE
        + line(type="text", timestamp=1, sessionID="ses_1", part={"text": "All done."})
        + line(
            type="step_finish",
            timestamp=1,
            sessionID="ses_1",
            part={"reason": "stop", "tokens": {"input": 1, "output": 2}},
        ),
        lambda _: ["--session", "ses_1"],
    ),
    "pi": (
        PI + PI_SAID + "!die\n",
        PI + PI_SAID + line(type="agent_end", messages=[], willRetry=False) + line(type="agent_settled"),
        lambda session: ["--session", session],
    ),
}


@pytest.mark.req("RES-7", "RES-3", "RES-1")
@pytest.mark.parametrize("agent", sorted(PLAYS))
def test_each_goes_on_in_its_own_session(stage: Stage, agent: str) -> None:
    cut, whole, expected = PLAYS[agent]
    task = Task.start("--agent", agent, "--base-interval", "1s", "go", env=stage.cast(agent, cut, whole))
    session = task.wait_for("completed")["session_id"]
    _, after = stage.calls()
    words = expected(session)
    at = after["argv"].index(words[0])
    assert after["argv"][at : at + len(words)] == words
    assert not {"--continue", "-c", "latest"} & set(after["argv"])


@pytest.mark.req("RES-3")
def test_a_lost_session_is_reported_and_replaced(stage: Stage) -> None:
    """Claude answers that it knows no such conversation."""
    lost = line(
        type="result", subtype="error_during_execution", is_error=True, num_turns=0, session_id="SESSION",
        errors=["No conversation found with session ID: SESSION"],
    )  # fmt: skip
    env = stage.cast("claude", INIT + CALL + "!die\n", lost + "!exit 1\n", FINE)
    task = Task.start("--agent", "claude", "--base-interval", "1s", "go", env=env)
    task.wait_for("completed")
    assert [event["mode"] for event in task.events("attempt.opened")] == ["fresh", "resume", "briefing"]
    first, _, third = stage.calls()
    ids = [call["argv"][call["argv"].index("--session-id") + 1] for call in (first, third)]
    assert ids[0] != ids[1], "an id that was used is not used again"


@pytest.mark.req("RES-6")
def test_another_id_is_never_accepted_silently(stage: Stage) -> None:
    other = BEGUN.replace(THREAD[-1:] + '"', '2"')
    assert THREAD not in other
    env = stage.cast("codex", BEGUN + "!die\n", other + "!wait never\n", BEGUN + ANSWERED)
    task = Task.start("--agent", "codex", "--base-interval", "1s", "--stop-pause", "1s", "go", env=env)
    task.wait_for("completed", within_s=30)
    intended = task.events("stop.intended")
    assert [event["intent"] for event in intended] == ["session"]
    assert THREAD in intended[0]["reason"]
    stranger = json.loads(other.splitlines()[0])["thread_id"]
    assert stranger in intended[0]["reason"]
    assert [event["mode"] for event in task.events("attempt.opened")] == ["fresh", "resume", "briefing"]
    assert not any(stranger in call["argv"] for call in stage.calls()), "the other session is not continued"
