"""The Python API for asyncio: the same names as in `holdfast`, with `await`.

Everything that reads or writes files runs in a thread. A wait that is cancelled ends its thread within a
second; the tasks go on.
"""

from __future__ import annotations

import asyncio
import threading

import holdfast
from holdfast.views.api import home, waiting, work
from holdfast.views.api.task import read_events
from holdfast.views.facts.events import EventReader
from holdfast.views.recovery import KeeperStarter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from typing import Any, Unpack

    from holdfast.views.api.options import Options

__all__ = ["Task", "digest", "fan_out", "open", "run", "submit", "tasks", "wait"]

#: Between two looks at a journal that is followed.
_PAUSE_S = 0.1


class Task:
    """A task, as `holdfast.Task`."""

    def __init__(self, task: holdfast.Task) -> None:
        #: The same task, with methods that block.
        self.blocking = task

    @property
    def id(self) -> str:
        """Its id."""
        return self.blocking.id

    @property
    def path(self) -> str:
        """Its directory, the packet."""
        return self.blocking.path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and other.blocking == self.blocking

    def __hash__(self) -> int:
        return hash(self.blocking)

    def __repr__(self) -> str:
        return f"<holdfast.aio.Task {self.id}>"

    async def info(self) -> holdfast.TaskInfo:
        """As `holdfast.Task.info`."""
        return await asyncio.to_thread(self.blocking.info)

    async def manifest(self) -> dict[str, Any]:
        """As `holdfast.Task.manifest`."""
        return await asyncio.to_thread(self.blocking.manifest)

    async def events(self, *, since: int = 0, follow: bool = False) -> AsyncIterator[holdfast.Event]:
        """As `holdfast.Task.events`."""
        reader = await asyncio.to_thread(EventReader, self.blocking.packet, offset=since)
        starter = KeeperStarter()
        while True:
            is_over = not follow or await asyncio.to_thread(self.blocking.is_over)
            for event in await asyncio.to_thread(lambda: list(read_events(reader))):
                yield event
            if is_over:
                return
            await asyncio.to_thread(lambda: starter.poll(self.blocking.packet, self.blocking.status))
            await asyncio.sleep(_PAUSE_S)

    async def log(self, *, begin: int = 0, end: int | None = None, limit: int = 65536) -> holdfast.Log:
        """As `holdfast.Task.log`."""
        return await asyncio.to_thread(self.blocking.log, begin=begin, end=end, limit=limit)

    async def summary(self) -> holdfast.Summary:
        """As `holdfast.Task.summary`."""
        return await asyncio.to_thread(self.blocking.summary)

    async def diff(self, *, stage: str | None = None, candidate: int | None = None) -> holdfast.Diff:
        """As `holdfast.Task.diff`."""
        return await asyncio.to_thread(self.blocking.diff, stage=stage, candidate=candidate)

    async def patch(self) -> bytes:
        """As `holdfast.Task.patch`."""
        return await asyncio.to_thread(self.blocking.patch)

    async def wait(self, *, timeout_s: float | None = None) -> holdfast.TaskInfo:
        """As `holdfast.Task.wait`."""
        return (await wait([self], timeout_s=timeout_s))[0]

    async def answer(self, text: str = "") -> None:
        """As `holdfast.Task.answer`."""
        await asyncio.to_thread(self.blocking.answer, text)

    async def approve(self, message: str = "") -> None:
        """As `holdfast.Task.approve`."""
        await asyncio.to_thread(self.blocking.approve, message)

    async def reject(self, message: str = "") -> None:
        """As `holdfast.Task.reject`."""
        await asyncio.to_thread(self.blocking.reject, message)

    async def interrupt(self, question: str = "") -> None:
        """As `holdfast.Task.interrupt`."""
        await asyncio.to_thread(self.blocking.interrupt, question)

    async def retry(self, message: str = "", *, stage: str | None = None, reset: bool = False) -> None:
        """As `holdfast.Task.retry`."""
        await asyncio.to_thread(self.blocking.retry, message, stage=stage, reset=reset)

    async def stop(self, reason: str = "", *, now: bool = False) -> None:
        """As `holdfast.Task.stop`."""
        await asyncio.to_thread(self.blocking.stop, reason, now=now)

    async def apply(self, *, patch: bool = False, force: bool = False) -> holdfast.Applied:
        """As `holdfast.Task.apply`."""
        return await asyncio.to_thread(self.blocking.apply, patch=patch, force=force)

    async def pr(
        self,
        *,
        draft: bool = False,
        remote: str | None = None,
        base: str | None = None,
        yes: bool = False,
        wait_s: float | None = None,
    ) -> holdfast.PullRequest:
        """As `holdfast.Task.pr`."""
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(
                work.pr,
                self.blocking.packet,
                draft=draft,
                remote=remote,
                base=base,
                yes=yes,
                wait_s=wait_s,
                is_cancelled=cancelled.is_set,
            )
        finally:
            cancelled.set()


async def run(
    prompt: str | None = None,
    *,
    command: Sequence[str] | None = None,
    packet: str | os.PathLike[str] | None = None,
    **options: Unpack[Options],
) -> Task:
    """As `holdfast.run`."""
    return Task(await asyncio.to_thread(home.run, prompt, command=command, packet=packet, **options))


async def submit(
    prompt: str | None = None,
    *,
    command: Sequence[str] | None = None,
    packet: str | os.PathLike[str] | None = None,
    priority: str | int | None = None,
    pool: str | None = None,
    after: Iterable[Task | holdfast.Task | str] = (),
    not_before: str | None = None,
    **options: Unpack[Options],
) -> Task:
    """As `holdfast.submit`."""
    ids = [each if isinstance(each, str) else each.id for each in after]
    return Task(
        await asyncio.to_thread(
            home.submit,
            prompt,
            command=command,
            packet=packet,
            priority=priority,
            pool=pool,
            after=ids,
            not_before=not_before,
            **options,
        )
    )


async def fan_out(
    plan: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    split: str | None = None,
    send_back: int | None = None,
    priority: str | int | None = None,
    pool: str | None = None,
    **options: Unpack[Options],
) -> Task:
    """As `holdfast.fan_out`."""
    more = {"split": split, "send_back": send_back, "priority": priority, "pool": pool}
    return Task(await asyncio.to_thread(home.fan_out, plan, **more, **options))  # pyright: ignore


async def open(task_id: str) -> Task:  # noqa: A001 (holdfast.aio.open)
    """As `holdfast.open`."""
    return Task(await asyncio.to_thread(home.open, task_id))


async def tasks(
    *, labels: Mapping[str, str] | None = None, status: str | None = None, recent: int | None = None
) -> list[holdfast.TaskInfo]:
    """As `holdfast.tasks`."""
    return await asyncio.to_thread(home.tasks, labels=labels, status=status, recent=recent)


async def digest(
    *,
    since: str | None = None,
    labels: Mapping[str, str] | None = None,
    only: Iterable[Task | holdfast.Task | str] = (),
) -> holdfast.Digest:
    """As `holdfast.digest`."""
    ids = [each if isinstance(each, str) else each.id for each in only]
    return await asyncio.to_thread(home.digest, since=since, labels=labels, only=ids)


async def wait(
    tasks: Iterable[Task | holdfast.Task | holdfast.TaskInfo | str],
    *,
    timeout_s: float | None = None,
    first: bool = False,
) -> list[holdfast.TaskInfo]:
    """As `holdfast.wait`."""
    ids = [each if isinstance(each, str) else each.id for each in tasks]
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(
            waiting.wait, ids, timeout_s=timeout_s, first=first, is_cancelled=cancelled.is_set
        )
    finally:
        cancelled.set()
