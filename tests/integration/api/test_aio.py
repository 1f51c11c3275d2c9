"""holdfast.aio: the same, in an event loop that stays free."""

from __future__ import annotations

import asyncio  # noqa: TID253 (it is what is tested)
import inspect
import os
import threading
import time

import pytest

import holdfast
import holdfast.aio
from holdfast import errors
from holdfast.testing import Scenario
from tests.support import kin
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def in_a_project(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace())


def test_it_mirrors_the_blocking_api() -> None:
    for name in ("run", "submit", "open", "tasks", "digest", "wait"):
        ours, theirs = (inspect.signature(getattr(module, name)) for module in (holdfast.aio, holdfast))
        assert list(ours.parameters) == list(theirs.parameters), name
        assert [each.default for each in ours.parameters.values()] == [
            each.default for each in theirs.parameters.values()
        ]
    public = {name for name in vars(holdfast.Task) if not name.startswith("_")}
    # What a coroutine cannot be: a property that reads files, and what only the package uses.
    assert public - {"status", "is_over"} <= set(vars(holdfast.aio.Task))
    for name in public - {"status", "is_over", "id", "path"}:
        ours, theirs = (getattr(module.Task, name) for module in (holdfast.aio, holdfast))
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name


def test_many_tasks_at_once_with_a_question() -> None:
    steps = Scenario().say("hm").interrupt_request("which?", once=True).sleep(30, once=True).result("ok")
    path = steps.write_to(os.path.join(workspace(), "scenario.json"))

    async def work(number: int) -> str:
        task = await holdfast.aio.run(
            "do it", agent="scripted", options={"scenario": str(path)}, labels={"n": str(number)}
        )
        info = await task.wait(timeout_s=LIMIT_S)
        assert info.question == "which?"
        await task.answer("this one")
        seen = [event.type async for event in task.events(follow=True)]
        assert seen[0] == "task.created"
        assert "ok" in (await task.log()).text
        return (await task.wait(timeout_s=LIMIT_S)).status

    async def main() -> list[str]:
        return await asyncio.gather(*(work(number) for number in range(3)))

    assert asyncio.run(main()) == ["completed"] * 3


def test_a_cancelled_wait_ends_and_leaves_the_task_alone() -> None:
    task = holdfast.run(command=["sh", "-c", kin.WAIT])
    Task(task.path).agent_pid()
    before = threading.active_count()

    async def main() -> None:
        ticks = 0
        waiting = asyncio.create_task(holdfast.aio.wait([task]))
        for _ in range(10):
            await asyncio.sleep(0.01)
            ticks += 1
        assert ticks == 10
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(errors.Unanswered):
            await holdfast.aio.wait([task], timeout_s=0.1)

    began_mono = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began_mono < 20
    eventually(lambda: threading.active_count() <= before, what="the threads end")
    assert task.status == "running"
    kin.go()
    assert task.wait(timeout_s=LIMIT_S).status == "completed"
