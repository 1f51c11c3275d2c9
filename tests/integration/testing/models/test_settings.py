"""The settings of the CLIs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.models import ModelServer
from holdfast.testing.models.settings import AGENTS


@pytest.fixture
def server() -> Any:
    with ModelServer() as server:
        yield server


def test_every_agent_is_pointed_at_the_server(server: ModelServer, place: Any) -> None:
    for agent in AGENTS:
        home = Path(place.root) / agent
        env = server.env(agent, home)
        assert env["HOME"] == str(home)
        files = "".join(file.read_text("utf-8") for file in home.rglob("*") if file.is_file())
        assert server.url in "".join(env.values()) + files
        assert server.setup(agent).env.items() <= env.items()


def test_claude(server: ModelServer) -> None:
    env = server.env("claude")
    assert env["ANTHROPIC_BASE_URL"] == server.url
    assert env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"


def test_codex(server: ModelServer, place: Any) -> None:
    env = server.env("codex", place.root, model='odd "name"')
    config = tomllib.loads((Path(env["CODEX_HOME"]) / "config.toml").read_text("utf-8"))
    provider = config["model_providers"][config["model_provider"]]
    assert config["model"] == 'odd "name"'
    assert provider["base_url"] == f"{server.url}/v1"
    assert provider["env_key"] in env
    assert provider["wire_api"] == "responses"
    assert "CODEX_HOME" not in server.env("codex")


def test_gemini(server: ModelServer) -> None:
    setup = server.setup("gemini")
    config = json.loads(setup.files[".gemini/settings.json"])
    assert config["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert setup.arguments == ["-m", "gemini-2.5-pro"]


def test_copilot(server: ModelServer) -> None:
    env = server.env("copilot", model="m")
    assert (env["COPILOT_PROVIDER_BASE_URL"], env["COPILOT_MODEL"]) == (f"{server.url}/v1", "m")


def test_opencode(server: ModelServer) -> None:
    setup = server.setup("opencode")
    config = json.loads(setup.env["OPENCODE_CONFIG_CONTENT"])
    provider, model = setup.model.split("/")
    assert model in config["provider"][provider]["models"]
    assert config["provider"][provider]["options"]["baseURL"] == f"{server.url}/v1"


def test_pi(server: ModelServer, place: Any) -> None:
    env = server.env("pi", place.root)
    config = json.loads((Path(env["PI_CODING_AGENT_DIR"]) / "models.json").read_text("utf-8"))
    [provider] = config["providers"].values()
    assert provider["baseUrl"] == f"{server.url}/v1"


def test_an_unknown_agent_is_an_error(server: ModelServer) -> None:
    with pytest.raises(ValueError, match="no settings for 'x'"):
        server.setup("x")  # pyright: ignore[reportArgumentType]
