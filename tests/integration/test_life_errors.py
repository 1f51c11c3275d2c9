"""Each kind of error has its own reaction: errors of the service lead to a wait or a retry, denied tools are
noted.

A stand-in for Claude Code prints what the real one was seen to print.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from tests.support.tasks import Task

pytestmark = pytest.mark.usefixtures("home")

#: Prints the lines of the file `1` at its first start, of `2` at its second, and exits as the file `1.exit`
#: says.
_PROGRAM = """#!{python}
import os, sys, time
folder = {folder!r}
start = len([name for name in os.listdir(folder) if name.startswith("started-")]) + 1
open(os.path.join(folder, "started-%d" % start), "w").close()
session = sys.argv[sys.argv.index("--session-id" if "--session-id" in sys.argv else "--resume") + 1]
with open(os.path.join(folder, str(start))) as file:
    sys.stdout.write(file.read().replace("SESSION", session))
with open(os.path.join(folder, "%d.exit" % start)) as file:
    sys.exit(int(file.read()))
"""
INIT = {"type": "system", "subtype": "init", "session_id": "SESSION", "model": "m"}
DONE = [
    INIT,
    {
        "type": "assistant",
        "message": {"content": [{"type": "text", "text": "All done."}]},
        "session_id": "SESSION",
    },
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "All done.",
        "session_id": "SESSION",
    },
]


def failed(status: int, words: str, error: str) -> list[dict[str, Any]]:
    """How Claude Code reports an API error: as text of the agent, then as a result with subtype success."""
    said = {"content": [{"type": "text", "text": words}]}
    return [
        INIT,
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "I begin."}]}},
        {"type": "assistant", "message": said, "error": error},
        {
            "type": "result",
            "subtype": "success",
            "is_error": True,
            "api_error_status": status,
            "result": words,
            "session_id": "SESSION",
        },
    ]


def start(*runs: tuple[list[dict[str, Any]], int]) -> Task:
    """A task of a program that says this in its first process, that in its second."""
    root = os.path.dirname(os.environ["HOLDFAST_HOME"])
    folder, programs = os.path.join(root, "said"), os.path.join(root, "programs")
    os.mkdir(folder)
    os.mkdir(programs)
    for number, (lines, code) in enumerate(runs, 1):
        for name, text in ((str(number), _lines(lines)), (f"{number}.exit", str(code))):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
    path = os.path.join(programs, "claude")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_PROGRAM.format(python=sys.executable, folder=folder))
    os.chmod(path, 0o755)
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "ANTHROPIC_API_KEY": "none"}
    return Task.start("--agent", "claude", "--base-interval", "0.3s", "hello", env=env)


def _lines(lines: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


@pytest.mark.req("BUD-9")
def test_an_overloaded_service_is_waited_for_and_burns_nothing() -> None:
    task = start((failed(529, "API Error: 529 Overloaded", "overloaded"), 1), (DONE, 0))
    manifest = task.wait_for("waiting")
    assert manifest["wake_at"] is not None
    assert (manifest["retry_count"], manifest["total_retries"]) == (0, 0)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")
    assert [event["mode"] for event in task.events("attempt.opened")] == ["fresh", "resume"]


@pytest.mark.req("BUD-9")
def test_an_error_of_the_service_is_tried_again_after_a_pause() -> None:
    task = start((failed(500, "API Error: 500 Internal server error", "server_error"), 1), (DONE, 0))
    assert task.wait_for("completed")["total_retries"] == 1
    (planned,) = task.events("retry.planned")
    assert planned["burned"]
    assert [event["outcome"] for event in task.events("attempt.ended")] == ["server_error", "success"]


@pytest.mark.req("BUD-9")
def test_a_tool_that_was_denied_is_noted_and_the_work_goes_on() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "rm -rf x"}}
    words = "Claude requested permissions to use Bash, but you haven't granted it yet."
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": words}
    denied = [
        INIT,
        {"type": "assistant", "message": {"content": [use]}},
        {"type": "user", "message": {"content": [result]}},
        DONE[1],
        {**DONE[2], "permission_denials": [{"tool_name": "Bash"}]},
    ]
    task = start((denied, 0))
    task.wait_for("completed")
    (ended,) = task.events("attempt.ended")
    assert ended["outcome"] == "permission_denied_but_finished"
    assert "[tools denied] Bash" in task.log()
