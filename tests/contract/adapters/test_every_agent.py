"""A new agent is tested everywhere: the tables by agent have a row for each program."""

from __future__ import annotations

import os
import tomllib
from typing import Any

import pytest

from holdfast.agents import registry
from holdfast.testing.models import settings
from holdfast.views.mcp.install import PROGRAMS
from tests.conformance import pins, rig, test_mcp, test_permissions
from tests.contract.adapters import recorded, test_exits, test_recorded, test_replay
from tests.integration import test_agent_programs
from tests.support import pages

#: Agents without an entry in a table, and why.
CODEX_HAS_ONLY_A_SHELL = {"codex"}
HAVE_TESTS_OF_THEIR_OWN = {"claude", "codex"}
TABLES: dict[str, Any] = {
    "recorded runs": os.listdir(recorded.FOLDER),
    "whole runs": test_recorded.WHOLE,
    "ends of runs": test_recorded.SAYS_SUCCESS,
    "exits": [row[0] for row in test_exits.EXITS if row[3] == "crashed"],
    "models": [row[0] for row in test_replay.MODELS],
    "efforts": test_replay.EFFORTS,
    "plays": test_agent_programs.PLAYS.keys() | HAVE_TESTS_OF_THEIR_OWN,
    "model servers": settings.AGENTS,
    "pins": pins.BY_AGENT,
    "sessions": rig._SESSIONS,
    "tools": test_permissions._TOOLS.keys() | CODEX_HAS_ONLY_A_SHELL,
}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_every_agent(table: str) -> None:
    assert set(recorded.AGENTS) - set(TABLES[table]) == set()


def test_every_program_that_uses_mcp_servers_is_asked_for_its_list() -> None:
    assert set(test_mcp.LISTS) == set(PROGRAMS)


def test_every_adapter_is_in_the_import_contract() -> None:
    contracts = tomllib.loads(pages.read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    listed = next(contract["modules"] for contract in contracts if contract["id"] == "adapters")
    assert listed == sorted(f"holdfast.agents.{name}" for name in registry.BUILT_IN)


@pytest.mark.parametrize("agent", recorded.AGENTS)
def test_every_agent_has_its_own_tests_and_a_page(agent: str) -> None:
    assert os.path.exists(os.path.join(os.path.dirname(__file__), f"test_{agent}.py"))
    assert f"| `{agent}` |" in pages.read("docs/guides/model-servers.md")
