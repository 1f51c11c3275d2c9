"""Several agents in one task: their programs in PATH, and a model server for each that answers by stage."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, cast

from holdfast.testing.models import ModelServer, user_texts
from tests.conformance.pins import BY_AGENT
from tests.conformance.rig import IMPATIENT
from tests.support.repos import Repo
from tests.support.tasks import Task, workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from holdfast.testing.models import ModelRequest, Turn
    from holdfast.testing.models.settings import Agent

#: Part of every stage's prompt, before the texts of others.
_STAGE = re.compile(r"^Stage: (\w+) \(role", re.MULTILINE)


class Crew:
    """The fixture of a scenario with several agents."""

    def __init__(self, agents: Sequence[str]) -> None:
        self.agents = tuple(agents)
        self.project = Repo(os.path.join(workspace(), "project"))
        self.project.commit("README.md")
        self.servers: dict[str, ModelServer] = {}
        self._env = {"PATH": ":".join([*(str(BY_AGENT[agent].bin) for agent in agents), os.environ["PATH"]])}

    def serve(self, agent: str, script: Any) -> ModelServer:
        """The model of one agent, until the test ends."""
        server = self.servers[agent] = ModelServer(script)
        self._env |= {
            **server.setup(cast("Agent", agent)).write_to(os.environ["HOME"]),
            **IMPATIENT.get(agent, {}),
        }
        return server

    def serve_stages(self, turns: dict[str, list[Turn]]) -> None:
        """A model for each agent, which answers each of its stages with the stage's own turns."""
        for agent in self.agents:
            self.serve(
                agent, _by_stage({name: its for name, its in turns.items() if name.startswith(f"{agent}_")})
            )

    @property
    def env(self) -> dict[str, str]:
        """The environment of the programs; call it when all have a server."""
        return dict(self._env)

    @property
    def flags(self) -> list[str]:
        """Variables that occur only in our settings."""
        return ["--env", "HOLDFAST_MODEL_KEY"] if "codex" in self.agents else []

    def start(self, agent: str, prompt: str, *flags: str) -> Task:
        """`holdfast run -d` with this agent first. The prompt is passed on stdin."""
        model = self.servers[agent].setup(cast("Agent", agent)).model
        line = [
            "--agent",
            agent,
            "--model",
            model,
            "--permissions",
            "full",
            *self.flags,
            "--base-interval",
            "1s",
            *flags,
        ]
        return Task.start(
            *line, "--file", "-", project=self.project.path, env=self.env, stdin=prompt.encode()
        )

    def asked(self, stage: str) -> list[ModelRequest]:
        """The requests that a stage sent to its model, in order."""
        server = self.servers[stage.partition("_")[0]]
        return [request for request in server.conversations() if stage_of(request) == stage]

    def close(self) -> None:
        """Stop the servers. Tasks are stopped by the test."""
        for server in self.servers.values():
            server.close()


def stage_of(request: ModelRequest) -> str:
    """The stage whose prompt is in the request."""
    found = _STAGE.search("\n".join(user_texts(request)))
    return found.group(1) if found else ""


def _by_stage(turns: dict[str, list[Turn]]) -> Callable[[ModelRequest], Turn]:
    def answer(request: ModelRequest) -> Turn:
        return turns[stage_of(request)].pop(0)

    return answer
