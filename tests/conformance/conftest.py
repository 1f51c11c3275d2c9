"""The tests are collected inside the namespace only; each gets one agent and its own rig."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import namespace
from tests.conformance.crew import Crew
from tests.conformance.pins import BY_AGENT
from tests.conformance.rig import Rig
from tests.conformance.scenarios import ROWS
from tests.conformance.scenarios import TOGETHER as JOINTS
from tests.conformance.table import TOGETHER

# Elsewhere a real CLI could reach the network: use `make conformance`.
collect_ignore_glob = [] if namespace.is_inside() else ["test_*.py"]

_FOLDER = Path(__file__).parent
#: Time limit of one cell; the slowest CLI retries a rate limit for more than a minute.
CELL_S = 240


def pytest_configure(config: pytest.Config) -> None:
    """Markers of this directory."""
    config.addinivalue_line("markers", "smoke: part of `make conformance-smoke`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each test is a row; rows of the smoke run are marked, and rows that wait for something are left out."""
    # pytest also passes the tests of all other directories.
    ours = [item for item in items if isinstance(item, pytest.Function) and item.path.parent == _FOLDER]
    pending = [item for item in ours if _is_pending(item)]
    if pending:
        config.hook.pytest_deselected(items=pending)
        items[:] = [item for item in items if item not in pending]
    for item in ours:
        if item in pending or not {"rig", "crew"} & set(item.fixturenames):
            continue
        rows = ROWS if "rig" in item.fixturenames else JOINTS
        item.add_marker(pytest.mark.timeout(CELL_S))
        if rows[item.originalname.removeprefix("test_")].is_smoke:
            item.add_marker(pytest.mark.smoke)


def _is_pending(item: pytest.Function) -> bool:
    return "rig" in item.fixturenames and bool(ROWS[item.originalname.removeprefix("test_")].not_built)


@pytest.fixture(params=list(BY_AGENT))
def rig(request: pytest.FixtureRequest, home: str) -> Iterator[Rig]:
    """A project, model servers, and tasks of one agent."""
    agent: str = request.param
    properties = request.node.user_properties
    properties.append(("scenario", request.node.originalname.removeprefix("test_")))
    properties.append(("agent", agent))
    assert namespace.is_inside(), "a real CLI runs in a namespace with loopback only"
    rig = Rig(BY_AGENT[agent], os.path.dirname(home), tell=lambda kind, text: properties.append((kind, text)))
    yield rig
    rig.close()


@pytest.fixture
def crew(request: pytest.FixtureRequest, home: str) -> Iterator[Crew]:
    """A project, and several programs for one task, each with its own model server."""
    name = request.node.originalname.removeprefix("test_")
    request.node.user_properties += [("scenario", name), ("agent", TOGETHER)]
    assert namespace.is_inside(), "a real CLI runs in a namespace with loopback only"
    crew = Crew(JOINTS[name].agents)
    yield crew
    crew.close()
