"""A stage for the scripted agent: a directory, a session id, and an end to everything started."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing import Scenario, SessionMemory, agent_command
from tests.support import processes
from tests.support.waiting import eventually

SESSION = "11111111-2222-4333-8444-555555555555"
LIMIT_S = 30.0


class Playing:
    """One process of the scripted agent. Its output goes to files, as under a recorder."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process = process
        self._out = out
        self._err = err

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def raw(self) -> bytes:
        return self._out.read_bytes()

    @property
    def text(self) -> str:
        return self.raw.decode("utf-8")

    @property
    def errors(self) -> str:
        return self._err.read_text("utf-8")

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def said(self) -> list[str]:
        """The texts of the assistant's messages."""
        return [
            block["text"]
            for event in self.events
            if event["type"] == "assistant"
            for block in event["message"]["content"]
            if block["type"] == "text"
        ]

    def has_said(self, text: str) -> bool:
        return text.encode() in self.raw

    def wait(self) -> int:
        return self.process.wait(LIMIT_S)


class Stage:
    """Where scenarios are played in a test."""

    def __init__(self, root: Path) -> None:
        self.state = root / "state"
        self.work = root / "work"
        self.work.mkdir()
        self._root = root
        self._playings: list[Playing] = []

    @property
    def memory(self) -> SessionMemory:
        return SessionMemory(self.state / SESSION)

    def start(
        self,
        scenario: Scenario | Path,
        *,
        resume: bool = False,
        env: dict[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        cwd: Path | None = None,
        **options: Any,
    ) -> Playing:
        number = len(self._playings)
        path = scenario
        if isinstance(scenario, Scenario):
            path = scenario.write_to(self._root / f"scenario-{number}.json")
        if "session_id" not in options:
            options["resume" if resume else "session_id"] = SESSION
        options.setdefault("prompt", "do it")
        out, err = self._root / f"out-{number}", self._root / f"err-{number}"
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                agent_command(path, state_dir=self.state, **options),
                stdin=stdin,
                stdout=out_file,
                stderr=err_file,
                cwd=cwd or self.work,
                env=os.environ | (env or {}),
                start_new_session=True,
            )
        self._playings.append(Playing(process, out, err))
        return self._playings[-1]

    def play(self, scenario: Scenario | Path, *, status: int = 0, **options: Any) -> Playing:
        """Play to the end and check the exit status (negative: the signal)."""
        playing = self.start(scenario, **options)
        assert playing.wait() == status, playing.errors + playing.text[-2000:]
        return playing

    def close(self) -> None:
        for playing in self._playings:
            if playing.process.poll() is None:
                playing.process.kill()
            playing.process.wait(LIMIT_S)
            if playing.process.stdin:
                playing.process.stdin.close()


@pytest.fixture
def stage(place: Any, clean_env: dict[str, str]) -> Iterator[Stage]:
    stage = Stage(Path(place.root))
    yield stage
    stage.close()


def pid_in(path: Path) -> int:
    """The pid that a step wrote down, once it has."""
    return int(eventually(path.read_text, what=f"{path.name} is written"))


def end(pid: int) -> None:
    """Kill a process that a scenario left running, and see it gone."""
    process = processes.look(pid)
    assert process is not None
    processes.kill([process])
    eventually(lambda: not processes.is_alive(pid), what=f"process {pid} is gone")
