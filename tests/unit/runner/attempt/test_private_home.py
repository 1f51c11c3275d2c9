"""The config home of an agent: made again before an attempt, but not under another one that is alive."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.agents.base import Launch, PrivateHome
from holdfast.model import events as ev
from holdfast.model.spec import Limits, SandboxSpec, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.redact import Redactor
from holdfast.runner.attempt import open as opening
from holdfast.runner.ledger import Ledger
from holdfast.store.layout import Home
from tests.support.journals import opened


class Place:
    """A task whose stages have the same agent, and the config home that they share."""

    def __init__(self, home: str, *, is_sandboxed: bool) -> None:
        self.user = os.path.join(os.path.dirname(home), "user")
        self.agent, self.settings = ("claude", "settings.json") if is_sandboxed else ("codex", "config.toml")
        os.makedirs(os.path.join(self.user, f".{self.agent}"))
        self._put(os.path.join(self.user, f".{self.agent}", self.settings), "mine\n")
        spec = TaskSpec(
            task_id="it", task_name="it", goal="", agent=self.agent, project_dir=home, limits=Limits(),
            stages=tuple(StageSpec(name=name, agent=self.agent) for name in ("one", "two", "three")),
            sandbox=SandboxSpec() if is_sandboxed else None,
        )  # fmt: skip
        packet = create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)
        self.ledger = Ledger(packet, load.fold(packet), opened(packet), Redactor({}))
        self.path = (
            os.path.join(packet.sandbox_homes, "claude.0")
            if is_sandboxed
            else os.path.join(packet.path, "state", "codex")
        )

    @staticmethod
    def _put(path: str, text: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def start(self, number: int, stage: str) -> None:
        event = ev.AttemptOpened(
            attempt=number, attempt_id=str(number), stage=stage, agent=self.agent, mode="fresh"
        )
        self.ledger.record(event, shown=False)
        own = PrivateHome(
            variable="CODEX_HOME", path=self.path, default=".codex", copies=("config.toml",), keeps=("kept",)
        )
        launch = Launch(argv=["true"], home=own if self.agent == "codex" else None)
        directory = self.ledger.packet.attempt(f"{number:03}-{stage}")
        env = {"env": {"HOME": self.user, "PATH": os.environ["PATH"]}}
        opening.command_of(self.ledger, directory, launch, event, env=env)

    def end(self, number: int) -> None:
        self.ledger.record(ev.AttemptEnded(attempt=number, outcome="crash"), shown=False)

    def write(self) -> None:
        """As a living agent does: its settings, and a lock."""
        self._put(os.path.join(self.path, self.settings), "changed\n")
        self._put(os.path.join(self.path, "a.lock"), "")

    def found(self) -> tuple[str, bool]:
        with open(os.path.join(self.path, self.settings), encoding="utf-8") as file:
            return file.read(), os.path.exists(os.path.join(self.path, "a.lock"))


@pytest.fixture(params=[False, True], ids=["plain", "sandboxed"])
def place(home: str, request: pytest.FixtureRequest) -> Iterator[Place]:
    ensure_home(home)
    place = Place(home, is_sandboxed=request.param)
    yield place
    place.ledger.close()


@pytest.mark.starts_processes
def test_the_start_of_an_agent_leaves_that_of_a_living_one_alone(place: Place) -> None:
    place.start(1, "one")
    assert place.found() == ("mine\n", False)
    place.write()
    place.start(2, "two")
    assert place.found() == ("changed\n", True)
    place.end(1)
    place.end(2)
    place.start(3, "three")
    assert place.found() == ("mine\n", False)
