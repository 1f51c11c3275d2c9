"""The process of these tests is a program that uses the API."""

from __future__ import annotations

import pytest

from holdfast import spawn


@pytest.fixture(autouse=True)
def a_guest(not_a_guest: None) -> None:
    """As importing the API does; the test before has undone it."""
    spawn.is_guest = True
