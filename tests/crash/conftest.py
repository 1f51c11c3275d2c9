"""Runners of the crash run are forked from one process for each worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash import drive
from tests.support.preloaded import Preloaded


@pytest.fixture(scope="session", autouse=True)
def preloaded() -> Iterator[None]:
    """Before the first test, which must not find it among its own processes."""
    drive.preloaded = Preloaded()
    yield
    drive.preloaded.close()
    drive.preloaded = None
