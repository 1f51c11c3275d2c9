"""Every hostile test is counted (`counts`): `make hostile` adds them up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Place
from tests.hostile import counts


@pytest.fixture(autouse=True)
def counted(place: Place, request: pytest.FixtureRequest) -> Iterator[None]:
    """After the test, and before its directory is removed. Two ends or two agents at once fail any test."""
    yield
    found = counts.of_homes(place.root)
    request.node.user_properties.append((counts.PROPERTY, found))
    if found["overlaps"]:
        pytest.fail("a run has two ends, or a stage two agents at once", pytrace=False)
