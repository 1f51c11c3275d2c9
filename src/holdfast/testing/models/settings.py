"""Settings with which each CLI talks to the model server and to no other host."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Callable

Agent = Literal["claude", "codex", "gemini", "copilot", "opencode", "pi"]
AGENTS: tuple[Agent, ...] = get_args(Agent)
#: The value of every key. Not a secret, and long enough for clients that check the length.
KEY = "holdfast-test-key"
PROVIDER = "holdfast"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Environment, files below HOME, and arguments for the command line."""

    env: dict[str, str]
    files: dict[str, str]
    arguments: list[str]
    model: str
    homes: dict[str, str] = field(default_factory=dict[str, str])
    """Variables that name a directory below HOME; set by `write_to`."""

    def write_to(self, home: str | Path) -> dict[str, str]:
        """Write the files below `home`. Returns the environment for them, including HOME."""
        home = Path(home)
        for name, text in self.files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        homes = {name: str(home / directory) for name, directory in self.homes.items()}
        return {**self.env, **homes, "HOME": str(home)}


def setup(agent: Agent, url: str, *, model: str | None = None) -> Setup:
    """The settings of one CLI; `url` is the server's, without a path."""
    if agent not in _SETUPS:
        raise ValueError(f"no settings for {agent!r} (known: {', '.join(AGENTS)})")
    return _SETUPS[agent](url, model)


def _claude(url: str, model: str | None) -> Setup:
    model = model or "claude-sonnet-4-5"
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }
    return Setup(env=env, files={}, arguments=["--model", model], model=model)


def _codex(url: str, model: str | None) -> Setup:
    model = model or "gpt-5"
    # JSON strings are valid TOML strings. With plug-ins, Codex would try to fetch them for 5 s at its end.
    config = (
        f"model = {json.dumps(model)}\n"
        f"model_provider = {json.dumps(PROVIDER)}\n"
        f"\n[model_providers.{PROVIDER}]\n"
        f"name = {json.dumps(PROVIDER)}\n"
        f"base_url = {json.dumps(url + '/v1')}\n"
        'env_key = "HOLDFAST_MODEL_KEY"\n'
        'wire_api = "responses"\n'
        "\n[features]\nplugins = false\n"
    )
    return Setup(
        env={"HOLDFAST_MODEL_KEY": KEY},
        files={".codex/config.toml": config},
        arguments=["-m", model],
        model=model,
        homes={"CODEX_HOME": ".codex"},
    )


def _gemini(url: str, model: str | None) -> Setup:
    # Without -m, the CLI first asks a small model which one to use.
    model = model or "gemini-2.5-pro"
    config = {
        # The base URL alone selects a login that needs a terminal.
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
    }
    env = {
        "GEMINI_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "1",
    }
    files = {".gemini/settings.json": _json(config)}
    return Setup(env=env, files=files, arguments=["-m", model], model=model)


def _copilot(url: str, model: str | None) -> Setup:
    model = model or "scripted-model"
    env = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": model,
        "COPILOT_AUTO_UPDATE": "false",
    }
    return Setup(env=env, files={}, arguments=[], model=model)


def _opencode(url: str, model: str | None) -> Setup:
    model = model or "scripted-model"
    name = f"{PROVIDER}/{model}"
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": PROVIDER,
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {model: {"name": model}},
    }
    config = {
        "provider": {PROVIDER: provider},
        "model": name,
        "small_model": name,
        "autoupdate": False,
        "share": "disabled",
    }
    env = {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return Setup(env=env, files={}, arguments=["-m", name], model=name)


def _pi(url: str, model: str | None) -> Setup:
    model = model or "scripted-model"
    provider = {
        "baseUrl": f"{url}/v1",
        "api": "openai-completions",
        "apiKey": KEY,
        "models": [{"id": model}],
    }
    files = {".pi/agent/models.json": _json({"providers": {PROVIDER: provider}})}
    name = f"{PROVIDER}/{model}"
    return Setup(
        env={"PI_OFFLINE": "1"},
        files=files,
        arguments=["--model", name],
        model=name,
        homes={"PI_CODING_AGENT_DIR": ".pi/agent"},
    )


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


_SETUPS: dict[Agent, Callable[[str, str | None], Setup]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "copilot": _copilot,
    "opencode": _opencode,
    "pi": _pi,
}
