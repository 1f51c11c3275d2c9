"""A memory limit applies only to the agent."""

from __future__ import annotations

import sys

import pytest

from tests.support import loops
from tests.support.tasks import Task, holdfast, workspace

pytestmark = pytest.mark.usefixtures("home")

#: Prints its own limit, then allocates a gibibyte without using it.
HUNGRY = "import resource; print(resource.getrlimit(resource.RLIMIT_AS), flush=True); bytearray(1 << 30)"


def hungry(*flags: str) -> Task:
    return Task.start(*flags, "--", sys.executable, "-c", HUNGRY, project=workspace())


@pytest.mark.req("LCH-20")
def test_an_agent_that_wants_more_memory_than_it_may_have_fails() -> None:
    task = hungry("--memory-limit", "512MiB")
    task.wait_for("failed")
    limit = 512 * 1024**2
    assert f"({limit}, {limit})" in task.log()
    assert "MemoryError" in task.log()
    assert task.events("task.created")[0]["spec"]["limits"]["memory_bytes"] == limit


@pytest.mark.req("LCH-20")
def test_the_setting_holds_unless_the_command_line_says_otherwise() -> None:
    hungry().wait_for("completed")
    loops.settings('memory_limit = "512MiB"\n')
    hungry().wait_for("failed")
    hungry("--memory-limit", "none").wait_for("completed")


@pytest.mark.parametrize("size", ["lots", "0", "-1"])
def test_an_invalid_size_is_reported(size: str) -> None:
    done = holdfast("run", "-d", f"--memory-limit={size}", "--", "true")
    assert done.returncode == 2
    assert "--memory-limit" in done.stderr
