"""Input and output: text, tools, prompts, ids and usage."""

from __future__ import annotations

import os
import shutil

from holdfast.agents import registry
from holdfast.testing.models import (
    all_texts,
    last_user_text,
    system_text,
    text,
    tool_results,
    user_texts,
    write,
)
from tests.conformance.rig import STEP_S, Rig, attempts
from tests.support.tasks import holdfast

#: Characters that break shells, JSON encoders and line readers.
AWKWARD = (
    "'single' \"double\" `back` $(touch pwned) ${HOME} $HOME \\n \\\\ %s {0} <b>&amp;</b> # ; | > "
    "\x1b[31m \t é ß 漢 🦀👩‍🚀"
)
PROMPT_BYTES = 500_000


def test_text(rig: Rig) -> None:
    server = rig.serve([text("All is well.")])
    task = rig.start(server, "Say that all is well.")
    task.wait_for("completed", within_s=STEP_S)
    assert [one["outcome"] for one in attempts(task)] == ["success"]
    (request,) = server.conversations()
    assert "Say that all is well." in last_user_text(request)
    assert "All is well." in task.log()
    assert not server.errors


def test_write_file(rig: Rig) -> None:
    server = rig.serve([write(rig.path("hello.txt"), "hello\n"), text("It is written.")])
    task = rig.start(server, "Write hello.txt.")
    manifest = task.wait_for("completed", within_s=STEP_S)
    with open(rig.path("hello.txt"), encoding="utf-8") as file:
        assert file.read().rstrip("\n") == "hello"
    assert [one["outcome"] for one in attempts(task)] == ["success"]
    assert manifest["heartbeat"]["tool_calls"] == 1
    assert len(tool_results(server.conversations()[-1])) == 1


def test_skill(rig: Rig) -> None:
    """Each program lists skills in its own words; the description is ours."""
    done = holdfast("skill", "install")
    assert done.returncode == 0, done.stderr
    server = rig.serve([text("holdfast.")])
    rig.start(server, "Which skills do you have?").wait_for("completed", within_s=STEP_S)
    (request,) = server.conversations()
    assert b"survive crashes, restarts and lost terminals" in request.body


def test_prompt(rig: Rig) -> None:
    # Rulers have few tokens, so a CLI that counts tokens before it sends accepts the prompt.
    ruler = "-" * 200
    filler = "\n".join(f"{number}\n\n{ruler}\n\t{ruler}" for number in range(1 + PROMPT_BYTES // 400))
    prompt = f"{AWKWARD}\n{filler}\n{AWKWARD}\nThat was all."
    assert len(prompt.encode()) >= PROMPT_BYTES
    server = rig.serve([text("Read.")])
    task = rig.start(server, prompt)
    task.wait_for("completed", within_s=STEP_S)
    texts = user_texts(server.conversations()[0])
    found = [said for said in texts if prompt.encode() in said.encode()]
    sizes = [len(said.encode()) for said in texts]
    assert found, f"the texts have {sizes} bytes, the prompt has {len(prompt.encode())}"


def test_session_and_usage(rig: Rig) -> None:
    server = rig.serve([text("Counted.").using(input_tokens=1234, output_tokens=56)])
    task = rig.start(server, "Count.")
    manifest = task.wait_for("completed", within_s=STEP_S)
    named = {event["session_id"] for event in task.events("agent.session")}
    assert named == {manifest["session_id"]}
    used = (manifest["usage"]["input_tokens"], manifest["usage"]["output_tokens"])
    if rig.agent == "copilot":
        rig.note(
            "Copilot CLI writes its tokens into a file at its end: "
            "those of an attempt that was killed are unknown."
        )
    assert used == (1234, 56)


def test_system_prompt(rig: Rig) -> None:
    path = os.path.join(os.environ["HOME"], "own rules.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"Own rule 6060: {AWKWARD}\n")
    server = rig.serve([text("Understood.")])
    task = rig.start(
        server, "Say that it is understood.", "-o", f"system_prompt_path={path}", "--bootstrap", "default"
    )
    task.wait_for("completed", within_s=STEP_S)
    (request,) = server.conversations()
    asked = last_user_text(request)
    assert "Say that it is understood." in asked
    if registry.adapter(rig.agent).capabilities.appends_system_prompt:
        where = system_text(request)
        assert "6060" not in asked
    else:
        rig.note(
            "The CLI takes no further system prompt from a file: the text stands in front of the prompt."
        )
        where = asked.rpartition("Say that it is understood.")[0]
    assert f"Own rule 6060: {AWKWARD}" in where
    assert "# You work under holdfast" in where
    assert f"- task: {task.id}, stage {rig.agent}_run" in where
    assert system_text(request).partition("# You work under holdfast")[0].strip(), "after its own"


def test_session(rig: Rig) -> None:
    server = rig.serve([text("I keep word 1111 in mind."), text("It was 1111.")])
    first = rig.start(server, "Keep word 1111 in mind.")
    session_id = first.wait_for("completed", within_s=STEP_S)["session_id"]
    if rig.agent == "codex":
        # As if a person had used it: sessions of a task are in a private home.
        target = os.path.join(os.environ["HOME"], ".codex", "sessions")
        shutil.copytree(first.path("state", "codex", "sessions"), target)
    second = rig.start(server, "Which word was it?", "--session", session_id)
    manifest = second.wait_for("completed", within_s=STEP_S)
    assert manifest["session_id"] == session_id
    assert [(one["mode"], one["outcome"]) for one in attempts(second)] == [("resume", "success")]
    told = all_texts(server.conversations()[-1])
    for words in ("Keep word 1111 in mind.", "I keep word 1111 in mind.", "Which word was it?"):
        assert any(words in one for one in told), words
