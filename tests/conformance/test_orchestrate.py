"""An orchestrating agent with the tools of `holdfast mcp`: 20 tasks, a kill, a question, little to read."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from holdfast.testing.models import Call, stall, text, tool, tool_results, tools
from tests.support import loops
from tests.support.tasks import holdfast

if TYPE_CHECKING:
    from holdfast.testing.models import Turn
    from tests.conformance.crew import Crew
    from tests.support.tasks import Task

TASKS, ASKING, AT_ONCE, MOST_BYTES = 20, 7, 5, 20_000
LABELS = {"batch": "nightly"}
ANSWER = "main, of course"
#: Reports, and the one that asks goes on when it is answered.
REPORT = 'echo "part $1 is fine"'
ASK = 'test -e asked || { touch asked; printf "which branch?" > "$INTERRUPT_FILE"; sleep 120; }; ' + REPORT
STEP_S = 90.0


def start(number: int) -> Call:
    command = ["sh", "-c", ASK if number == ASKING else REPORT, "sh", str(number)]
    return _call("start", {"command": command, "id": _id(number), "labels": LABELS})


def show(number: int) -> Call:
    return _call("show", {"task": _id(number), "what": "summary"})


def turns(make: object, numbers: range) -> list[Turn]:
    """Calls for these tasks, a few in each answer."""
    assert callable(make)
    return [
        tools(*(make(number) for number in numbers[first : first + AT_ONCE]))
        for first in range(0, len(numbers), AT_ONCE)
    ]


def test_orchestrate(crew: Crew, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    half = TASKS // 2
    server = crew.serve(
        "claude",
        [
            *turns(start, range(1, half + 1)),
            stall(2, text="ten of them are started, the others follow"),
            # From here on it is the agent that holdfast has brought back.
            *turns(start, range(half, TASKS + 1)),
            tool(_name("wait"), {"tasks": [_id(ASKING)], "timeout_s": 40}),
            tool(_name("say"), {"task": _id(ASKING), "verb": "answer", "message": ANSWER}),
            tool(_name("wait"), {"labels": LABELS, "until": "all", "timeout_s": 50}),
            *turns(show, range(1, TASKS + 1)),
            text("All parts are fine."),
        ],
    )
    loops.settings('slots = 4\niteration_delay = "0s"\n')
    done = holdfast("mcp", "install", "--for", "claude", env={**crew.env, "HOLDFAST_KEEPER": "on"})
    assert done.returncode == 0, done.stderr
    task = crew.start("claude", "Review the parts.", "--id", "orchestrator")
    server.wait_for_stall(within_s=STEP_S)
    os.kill(task.agent_pid(), signal.SIGKILL)
    task.wait_for("completed", within_s=3 * STEP_S)
    assert task.events("attempt.opened")[-1]["mode"] == "resume"

    children = [loops.task(_id(number)) for number in range(1, TASKS + 1)]
    assert {child.manifest()["status"] for child in children} == {"completed"}
    assert sorted(os.listdir(os.path.join(home, "tasks"))) == sorted([task.id, *(one.id for one in children)])
    assert [one["answer"] for one in _child(ASKING).manifest()["answers"]] == [ANSWER]
    read = [result.text for result in tool_results(server.conversations()[-1])]
    # The tenth was started by its first life: said again, it is refused.
    assert sum("(duplicate-task, exit 2)" in one for one in read) == 1, read
    for number in range(1, TASKS + 1):
        assert any(f"part {number} is fine" in one for one in read), number
    size = sum(len(one.encode()) for one in read)
    print(f"read {size} bytes")
    assert size < MOST_BYTES, size


def _child(number: int) -> Task:
    return loops.task(_id(number))


def _id(number: int) -> str:
    return f"nightly-{number}"


def _call(name: str, arguments: dict[str, object]) -> Call:
    return Call(name=_name(name), arguments=arguments)


def _name(name: str) -> str:
    """How Claude Code calls a tool of the server."""
    return f"mcp__holdfast__{name}"
