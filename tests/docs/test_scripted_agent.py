"""docs/guides/scripted-agent.md: its examples are valid scenarios."""

from __future__ import annotations

import json

from holdfast.testing.agent.scenario import check_step
from tests.support import pages


def test_the_examples_are_steps_of_scenarios() -> None:
    lines = pages.fenced(pages.read("docs/guides/scripted-agent.md"), "json").splitlines()
    steps = [step for line in lines for step in json.loads(line)]
    assert {check_step("steps", step).verb for step in steps} >= {
        "crash",
        "hang",
        "rate_limit",
        "unauthorized",
    }
    assert {"result": {"text": "done, without tests", "denied": ["Bash"]}} in steps
