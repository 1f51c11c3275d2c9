"""Unit tests for what no sandbox shows."""

from __future__ import annotations

import pytest

from holdfast.agents import registry
from holdfast.sandbox import hidden


@pytest.mark.parametrize("agent", registry.BUILT_IN)
def test_the_login_of_every_agent_is_hidden_from_the_others(agent: str) -> None:
    login_files = registry.adapter(agent).capabilities.login_files
    below_home = [path.removeprefix("~/") for path in login_files if path.startswith("~/")]

    shown = [
        path
        for path in below_home
        if not any(path == name or path.startswith(f"{name}/") for name in hidden.IN_HOME)
    ]

    assert shown == []
