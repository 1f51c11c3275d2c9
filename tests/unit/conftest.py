"""Unit tests start no processes: those are slow on a busy machine, and belong into tests/integration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

_STARTS = frozenset({"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
#: What the running unit test has started; None between tests, and in tests of other directories.
_started: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _started is not None and event in _STARTS:
        _started.append(f"{event} {arguments[:2]!r}"[:200])


# It cannot be removed again, so it is added once per test process.
sys.addaudithook(_note)


@pytest.fixture(autouse=True)
def no_processes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that started a process, unless it is marked `starts_processes`."""
    global _started
    _started = started = []
    yield
    _started = None
    if started and request.node.get_closest_marker("starts_processes") is None:
        listing = "\n".join(f"  {each}" for each in started)
        pytest.fail(f"a unit test starts no processes; this one did:\n{listing}", pytrace=False)
