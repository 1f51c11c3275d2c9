"""One agent, one project, and the model servers that answer it."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from holdfast.testing.models import ModelServer
from tests.support import processes
from tests.support.tasks import Task
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.testing.models.settings import Agent
    from tests.conformance.pins import Pin

#: Time limit of one step of a real CLI on a busy machine.
STEP_S = 60.0
#: Added to the settings of a CLI, so that its own retries do not take minutes.
IMPATIENT = {
    # Root may not bypass permissions, unless the machine is a sandbox. This one is.
    "claude": {"CLAUDE_CODE_MAX_RETRIES": "0", "IS_SANDBOX": "1"},
}
#: Why the rows in which Pi dies in its first answer end with a briefing.
PI_FORGETS = (
    "Pi writes no session before its first answer is complete: there is nothing to resume, and a new session "
    "gets the recovery briefing."
)
#: Where each CLI keeps its sessions, below HOME; for Codex, in its private home.
_SESSIONS = {
    "claude": ".claude/projects/*/*.jsonl",
    "codex": "codex/sessions/**/*.jsonl",
    "gemini": ".gemini/tmp/*/chats/*.jsonl",
    "copilot": ".copilot/session-state/*/events.jsonl",
    "opencode": ".local/share/opencode/opencode.db*",
    "pi": ".pi/agent/sessions/*/*.jsonl",
}


class Rig:
    """The fixture of a scenario. The home and everything below `root` belong to the test."""

    def __init__(self, pin: Pin, root: str, *, tell: Callable[[str, str], None]) -> None:
        self.pin = pin
        self.agent = pin.agent
        self.project = os.path.join(root, "project")
        self._root = root
        self._tell = tell
        self._servers: list[ModelServer] = []
        os.mkdir(self.project)

    def note(self, text: str) -> None:
        """The row passes, with a note in the table."""
        self._tell("note", text)

    def cannot(self, text: str) -> None:
        """The CLI cannot do this: the table says why, and what holdfast does instead, which the rest of the
        test proves."""
        self._tell("cannot", text)

    def serve(self, script: Any) -> ModelServer:
        """A model server with this script, until the test ends."""
        server = ModelServer(script)
        self._servers.append(server)
        return server

    def start(
        self,
        server: ModelServer,
        prompt: str,
        *flags: str,
        permissions: str = "full",
        held_up: bool = False,
        prepare: Callable[[dict[str, str]], None] | None = None,
    ) -> Task:
        """`holdfast run -d` with the real CLI, by default without its permission prompts. The prompt is
        passed on stdin.

        One that is held up has a process, but the CLI does not start before `let_start`. `prepare` is called
        when the CLI has its settings, with its environment.
        """
        setup = server.setup(cast("Agent", self.agent))
        env = {**setup.write_to(os.environ["HOME"]), **IMPATIENT.get(self.agent, {})}
        path = f"{self._hold_up() if held_up else ''}{self.pin.bin}:{os.environ['PATH']}"
        if prepare is not None:
            prepare({**env, "PATH": path})
        model = ["--model", setup.model] if setup.arguments else []
        passed = [word for name in ("HOLDFAST_MODEL_KEY",) if name in env for word in ("--env", name)]
        line = [
            "--agent",
            self.agent,
            "--permissions",
            permissions,
            *model,
            *passed,
            "--base-interval",
            "1s",
            *flags,
            "--file",
            "-",
        ]
        return Task.start(*line, project=self.project, env={**env, "PATH": path}, stdin=prompt.encode())

    def _hold_up(self) -> str:
        """A directory for PATH in which the program waits before it executes the real one."""
        folder = os.path.join(self._root, "held-up")
        os.mkdir(folder)
        shim = os.path.join(folder, self.pin.program)
        with open(shim, "w", encoding="utf-8") as file:
            file.write(
                f'#!/bin/sh\nwhile test ! -e "{folder}/go"; do sleep 0.05; done\n'
                f'exec "{self.pin.bin}/{self.pin.program}" "$@"\n'
            )
        os.chmod(shim, 0o755)
        return f"{folder}:"

    def let_start(self) -> None:
        """From now on the program starts at once."""
        with open(os.path.join(self._root, "held-up", "go"), "w", encoding="utf-8"):
            pass

    # ── the project ──

    def path(self, name: str) -> str:
        """A file of the project."""
        return os.path.join(self.project, name)

    def wait_for_file(self, name: str) -> None:
        """Wait until a tool has created this file."""
        eventually(lambda: os.path.exists(self.path(name)), STEP_S, f"the agent's tool makes {name}")

    def wait_for_tool(self, task: Task, name: str, words: str) -> None:
        """Wait until a tool has created this file, holdfast knows it, and the session has the prompt."""
        self.wait_for_file(name)
        if self.agent != "opencode":  # it reports a tool only when it has ended
            task.wait_for_event("agent.tool_started", within_s=STEP_S)
        self.wait_until_noted(task, words)

    def touch(self, name: str) -> None:
        """Make an empty file."""
        with open(self.path(name), "w", encoding="utf-8"):
            pass

    # ── what runs ──

    def left_of(self, task: Task) -> list[processes.Process]:
        """Processes that carry the marker of one of the task's attempts."""
        return processes.marked(os.path.join(task.packet, "attempts"))

    def wait_until_noted(self, task: Task, words: str) -> None:
        """Wait until the CLI has written these words into its session, which can then be resumed."""
        place = task.path("state") if self.agent == "codex" else os.environ["HOME"]
        pattern = os.path.join(place, _SESSIONS[self.agent])
        if os.path.isdir(homes := task.path("sandbox", "homes")) and self.agent != "codex":
            pattern = os.path.join(homes, "**", os.path.basename(pattern))

        def is_noted() -> bool:
            return any(
                words.encode() in Path(path).read_bytes() for path in glob.glob(pattern, recursive=True)
            )

        eventually(is_noted, STEP_S, f"{pattern} holds the prompt")

    def wait_for_output(self, task: Task, words: bytes) -> None:
        """Wait until the CLI has printed this."""
        log = Path(task.attempts()[-1]) / "stdout.log"
        eventually(lambda: words in log.read_bytes(), STEP_S, f"{log} has {words!r}", journal=task.packet)

    def close(self) -> None:
        """Stop the servers. Tasks are stopped by the test."""
        for server in self._servers:
            server.close()


def attempts(task: Task) -> list[dict[str, Any]]:
    """How each attempt began and ended: mode, session_id, outcome."""
    ended = {event["attempt"]: event for event in task.events("attempt.ended")}
    return [{**event, **ended.get(event["attempt"], {})} for event in task.events("attempt.opened")]


def summary(task: Task) -> list[tuple[str, str]]:
    """The mode and the outcome of each attempt."""
    return [(one["mode"], one.get("outcome", "open")) for one in attempts(task)]
