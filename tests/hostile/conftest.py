"""Every hostile test is counted (`counts`): `make hostile` adds them up. `make test` runs a sample."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.conftest import Place
from tests.hostile import counts

#: So many cases of one function are run by `make test`, spread over its list; `make hostile` runs all.
SAMPLE = 4


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("HOLDFAST_HOSTILE_FULL") or any("::" in each for each in config.args):
        return
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.path.is_relative_to(os.path.dirname(__file__)):
            cases[item.nodeid.partition("[")[0]].append(item)
    spare: set[pytest.Item] = set()
    for each in cases.values():
        spare |= set(each) - {each[at * len(each) // SAMPLE] for at in range(SAMPLE)}
    config.hook.pytest_deselected(items=spare)
    items[:] = [item for item in items if item not in spare]


@pytest.fixture(autouse=True)
def counted(place: Place, request: pytest.FixtureRequest) -> Iterator[None]:
    """After the test, and before its directory is removed. Two ends or two agents at once fail any test."""
    yield
    found = counts.of_homes(place.root)
    request.node.user_properties.append((counts.PROPERTY, found))
    if found["overlaps"]:
        pytest.fail("a run has two ends, or a stage two agents at once", pytrace=False)
