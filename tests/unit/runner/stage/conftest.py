"""The task of a test about a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.bench import Bench


@pytest.fixture
def bench(home: str) -> Iterator[Callable[..., Bench]]:
    """Makes a task: `bench(*stages, prompt=…, **fields of its specification)`."""
    made: list[Bench] = []

    def make(*stages: object, **spec: object) -> Bench:
        made.append(Bench(home, *stages, **spec))  # pyright: ignore[reportArgumentType]
        return made[-1]

    yield make
    for each in made:
        each.ledger.close()
