"""In a sandbox: a tool writes to the workspace and nowhere else, and a killed agent resumes its session."""

from __future__ import annotations

import os
import signal

from holdfast.testing.models import shell, text, write
from tests.conformance.rig import STEP_S, Rig, attempts, summary
from tests.support.tools import need_sandbox

HOLD = "touch began; while test ! -e go; do sleep 0.2; done; echo over"


def test_sandbox(rig: Rig) -> None:
    need_sandbox()
    secret = os.path.join(os.environ["HOME"], ".ssh", "id_test")
    os.makedirs(os.path.dirname(secret), exist_ok=True)
    with open(secret, "w", encoding="utf-8") as file:
        file.write("word 5150")
    look = f"cat {secret} > seen.txt 2>/dev/null; touch {os.environ['HOME']}/owned; echo looked"
    server = rig.serve([write(rig.path("hello.txt"), "hello\n"), shell(look), text("It is written.")])
    task = rig.start(server, "Write hello.txt.", "--sandbox")
    task.wait_for("completed", within_s=STEP_S)
    assert [one["outcome"] for one in attempts(task)] == ["success"]
    with open(rig.path("hello.txt"), encoding="utf-8") as file:
        assert file.read().rstrip("\n") == "hello"
    with open(rig.path("seen.txt"), encoding="utf-8") as file:
        assert file.read() == ""
    assert not os.path.exists(os.path.join(os.environ["HOME"], "owned"))


def test_sandbox_resume(rig: Rig) -> None:
    need_sandbox()
    server = rig.serve([shell(HOLD, text="About to hold."), text("All done.")])
    task = rig.start(server, "Please hold the line.", "--sandbox")
    rig.wait_for_tool(task, "began", "Please hold the line.")
    # A CLI may start the tool before it has saved its last text.
    rig.wait_until_noted(task, "About to hold.")
    os.kill(task.agent_pid(), signal.SIGKILL)
    task.wait_for("completed", within_s=STEP_S)
    assert summary(task)[0][1] == "killed"
    assert summary(task)[-1] == ("resume", "success")
    assert not rig.left_of(task)


def test_sandbox_hosts(rig: Rig) -> None:
    """The program reaches its service through the proxy, which is the only way out, and nothing else."""
    need_sandbox()
    server = rig.serve([shell("curl -sS http://other.example/ > seen.txt; echo looked"), text("All done.")])
    place = server.url.partition("://")[2].partition("/")[0]
    task = rig.start(server, "Look around.", "--sandbox", "--network", place)
    task.wait_for("completed", within_s=STEP_S)
    assert [one["outcome"] for one in attempts(task)] == ["success"]
    with open(rig.path("seen.txt"), encoding="utf-8") as file:
        assert "other.example:80: it is not in the list" in file.read()
