"""A person in the agent's own program, in the session of a task."""

from __future__ import annotations

import json
import os

from holdfast.testing.models import all_texts, shell, text
from holdfast.testing.models.settings import KEY
from tests.conformance.rig import STEP_S, Rig, attempts
from tests.support.terminal import Terminal
from tests.support.waiting import eventually

#: The screen must show this: the task's prompt, or what the model said in its first turn.
WORDS = "2222"


def test_takeover(rig: Rig) -> None:
    server = rig.serve(
        [
            shell("touch began; while test ! -e go; do sleep 0.1; done"),
            text("It was word 2222."),
            text("It was word 2222."),
        ]
    )
    prompt = f"Keep word {WORDS} in mind, then wait."
    # Claude asks a person whether to bypass permissions; Codex cannot make its own sandbox everywhere.
    permissions = "full" if rig.agent == "codex" else "edit"
    task = rig.start(server, prompt, permissions=permissions, prepare=lambda _: greet(rig))
    rig.wait_for_tool(task, "began", WORDS)
    session_id = task.manifest()["session_id"]
    terminal = Terminal("takeover", task.id, "-m", "Which word was it?", columns=120, cwd=rig.project)
    try:
        terminal.read_until(session_id, within_s=STEP_S)
        terminal.shows(WORDS, STEP_S)
        rig.touch("go")
        leave(terminal)
        assert terminal.finish(STEP_S) == 0, terminal.text[-3000:]
    finally:
        terminal.kill()
    manifest = task.wait_for("completed", within_s=STEP_S)
    assert manifest["takeover"]["ended"]["how"] == "handed_back"
    assert manifest["session_id"] == session_id
    assert [one["mode"] for one in attempts(task)] == ["fresh", "resume"]
    told = all_texts(server.conversations()[-1])
    assert any("Which word was it?" in one for one in told)
    assert any(f"Keep word {WORDS} in mind" in one for one in told)
    eventually(lambda: not rig.left_of(task), STEP_S, "nothing of the takeover runs")


def greet(rig: Rig) -> None:
    """What each program asks a person once: theme, key, and whether to trust the directory."""
    home = os.environ["HOME"]
    if rig.agent == "claude":
        known = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {rig.project: {"hasTrustDialogAccepted": True}},
        }
        _write(os.path.join(home, ".claude.json"), json.dumps(known))
    elif rig.agent == "codex":
        trusted = f'\n[projects.{json.dumps(rig.project)}]\ntrust_level = "trusted"\n'
        _write(os.path.join(home, ".codex", "config.toml"), trusted, mode="a")
    elif rig.agent == "copilot":
        known = {"trusted_folders": [rig.project], "trustedFolders": [rig.project]}
        _write(os.path.join(home, ".copilot", "config.json"), json.dumps(known))


def _write(path: str, text: str, mode: str = "w") -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, mode, encoding="utf-8") as file:
        file.write(text)


def leave(terminal: Terminal) -> None:
    """End the program as a person does: Ctrl-C twice, or Ctrl-C and Ctrl-D."""
    terminal.type_until_ended("\x03", every_s=0.5, within_s=STEP_S)
