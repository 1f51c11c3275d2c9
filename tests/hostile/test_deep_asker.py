"""An agent that starts many processes one below the other is still an agent."""

from __future__ import annotations

import sys

from tests.support.tasks import Task

DEEP = """
import os, sys
for _ in range(80):
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.execv(sys.executable, [sys.executable, "-m", "holdfast", "stop", os.environ["HOLDFAST_TASK"]])
"""


def test_depth_makes_no_person(home: str) -> None:
    task = Task.start("--", sys.executable, "-c", DEEP)
    task.wait_for("failed", within_s=30)
    assert "an agent may not stop its own task" in task.log()
