"""How a program uses the API, checked by pyright in strict mode and never run.

Each wrong use has a comment that names the error; a comment without its error is an error, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import holdfast
import holdfast.aio
from holdfast.errors import DuplicateTask, NeedsPerson


def starting() -> None:
    task = holdfast.run(
        "fix it",
        agent="claude",
        project=Path("/srv/project"),
        worktree=True,
        labels={"batch": "1"},
        accept=["make test"],
        permissions="edit",
        options={"effort": "high", "fast": True},
        deadline_s=3600,
        budget_usd=2.5,
        on_limit="end",
    )
    assert_type(task, holdfast.Task)
    assert_type(holdfast.run(command=["make", "test"]), holdfast.Task)
    assert_type(holdfast.submit("later", after=[task, "20260131-fix"], priority=7), holdfast.Task)
    assert_type(holdfast.fan_out({"items": []}, agent="codex", send_back=1), holdfast.Task)
    holdfast.run("x", permissions="all")  # pyright: ignore[reportArgumentType]
    holdfast.run("x", deadline_s="1h")  # pyright: ignore[reportArgumentType]
    holdfast.run("x", colour="red")  # pyright: ignore[reportCallIssue]
    holdfast.run("x", ["make"])  # pyright: ignore[reportCallIssue]
    holdfast.run("x", priority=7)  # pyright: ignore[reportCallIssue]


def reading(task: holdfast.Task) -> None:
    info = task.info()
    assert_type(info, holdfast.TaskInfo)
    assert_type(info.labels, Mapping[str, str])
    assert_type(info.cost_usd, float | None)
    assert_type(task.log(end=100).text, str)
    assert_type(task.summary().text, str)
    assert_type(task.patch(), bytes)
    assert_type([file.path for file in task.diff().files], list[str])
    for event in task.events(since=12, follow=True):
        assert_type(event.cursor, int)
        assert_type(event.data, Mapping[str, Any])
    info.status = "failed"  # pyright: ignore[reportAttributeAccessIssue]
    info.labels["batch"] = "2"  # pyright: ignore[reportIndexIssue]
    info.cost_usd + 1  # pyright: ignore[reportOptionalOperand, reportUnusedExpression]
    task.id = "other"  # pyright: ignore[reportAttributeAccessIssue]
    task.log(0)  # pyright: ignore[reportCallIssue]


def deciding(task: holdfast.Task) -> None:
    task.answer("yes")
    task.approve()
    task.stop("not needed", now=True)
    task.stop(True)  # pyright: ignore[reportArgumentType]
    assert_type(task.apply(), holdfast.Applied)
    assert_type(task.apply(patch=True).commit, str | None)
    pull = task.pr(draft=True, remote="origin", base="main", wait_s=600)
    assert_type(pull, holdfast.PullRequest)
    assert_type(pull.url, str | None)
    assert_type([check.bucket for check in pull.checks or ()], list[str])
    task.apply("patch")  # pyright: ignore[reportCallIssue]
    task.pr(wait_s="10m")  # pyright: ignore[reportArgumentType]
    pull.url = ""  # pyright: ignore[reportAttributeAccessIssue]
    try:
        task.wait(timeout_s=10).check()
    except NeedsPerson as error:
        assert_type(error.exit_status, int)
    except DuplicateTask as error:
        assert_type(error.hint, str)


def many() -> None:
    digest = holdfast.digest(labels={"batch": "1"})
    assert_type([change.needs for change in digest.tasks], list[str | None])
    ids = [info.id for info in holdfast.tasks(labels={"batch": "1"}, status=holdfast.Status.RUNNING)]
    assert_type(holdfast.wait(ids, first=True), list[holdfast.TaskInfo])
    holdfast.tasks({"batch": "1"})  # pyright: ignore[reportCallIssue]


async def in_a_loop() -> None:
    task = await holdfast.aio.submit("x", agent="codex", labels={"batch": "1"})
    assert_type(task, holdfast.aio.Task)
    assert_type(await task.wait(timeout_s=5), holdfast.TaskInfo)
    assert_type(await holdfast.aio.wait([task, "other"], first=True), list[holdfast.TaskInfo])
    async for event in task.events(follow=True):
        assert_type(event, holdfast.Event)
    assert_type(await task.apply(patch=True), holdfast.Applied)
    assert_type(await task.pr(draft=True), holdfast.PullRequest)
    (await holdfast.aio.open("x")).stop()  # pyright: ignore[reportUnusedCoroutine]
    holdfast.aio.run("x", colour="red")  # pyright: ignore[reportCallIssue]
