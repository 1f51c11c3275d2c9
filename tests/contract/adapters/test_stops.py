"""Every adapter's stop ends in SIGKILL, and gives the agent time before that."""

from __future__ import annotations

import pytest

from holdfast.agents import registry


@pytest.mark.req("LCH-18")
@pytest.mark.parametrize("name", sorted(registry.BUILT_IN))
def test_a_stop_begins_politely_and_ends_with_kill(name: str) -> None:
    steps = registry.adapter(name).capabilities.stop
    assert [step.signal for step in steps[:-1]] in (["TERM"], ["INT", "TERM"])
    assert steps[-1].signal == "KILL"
    assert all(5 <= step.pause_s <= 30 for step in steps[:-1])
    assert sum(step.pause_s for step in steps[:-1]) >= 10
