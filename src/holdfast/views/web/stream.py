"""The stream of a page: Server-Sent Events, read with `fetch` so that the bearer is in a header.

event: board     rows of tasks that changed
event: journal   id: <task>:<byte>   new events of the task that the page shows
event: log       new lines of its log
event: again     the page must load everything again
"""

from __future__ import annotations

import asyncio

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.views.web import answers
from holdfast.views.web.answers import Json
from holdfast.views.web.body import parse_number
from holdfast.views.web.follow import TaskFollower

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from starlette.requests import Request
    from starlette.responses import Response

    from holdfast.store.layout import Home, Packet
    from holdfast.views.web.feed import Feed, Subscription

MOST_STREAMS = 32
#: Pause between comments; sending one finds out that a connection is gone.
_BEAT_S = 15.0
#: Pause between two looks at the log of a task whose agent runs: the journal does not say that it grew.
_LOG_S = 0.25
_MESSAGE_BYTES = 512 * 1024
#: Rows in one message. If more tasks changed at once, the page loads all of them.
_ROWS = 200


class Streams:
    """All open streams."""

    def __init__(self, home: Home, feed: Feed) -> None:
        self._home = home
        self._feed = feed
        self.count = 0

    async def open(self, request: Request) -> Response:
        """GET /api/stream?task=ID&log=BYTE, with Last-Event-ID to go on."""
        if self.count >= MOST_STREAMS:
            return Json({"error": f"{MOST_STREAMS} pages are open; close one"}, 429)
        self.count += 1
        try:
            follower, packet = await run_in_threadpool(self._follower, request)
        except BaseException:
            self.count -= 1
            raise
        return _Stream(self, self._messages(packet, follower))

    def _follower(self, request: Request) -> tuple[TaskFollower | None, Packet | None]:
        task = request.query_params.get("task")
        if not task:
            return None, None
        packet = load.find(self._home, task, archived=True)
        last = request.headers.get("last-event-id") or request.query_params.get("from") or ""
        task_id, _, place = last.rpartition(":")
        log = request.query_params.get("log", "")
        return TaskFollower(
            packet,
            journal=parse_number(place) or 0 if task_id == packet.task_id else 0,
            log_bytes=parse_number(log),
        ), packet

    async def _messages(self, packet: Packet | None, follower: TaskFollower | None) -> AsyncIterator[bytes]:
        subscription = await self._feed.subscribe()
        try:
            yield b"retry: 1000\n\n"
            yield _message("hello", {"at": clock.iso_now()})
            if packet is None or follower is None:
                async for message in _board(subscription):
                    yield message
            else:
                async for message in _task(subscription, packet, follower):
                    yield message
        finally:
            self._feed.unsubscribe(subscription)


class _Stream(StreamingResponse):
    """Counts itself out when it ends, however that happens: also if it never sent a byte."""

    def __init__(self, streams: Streams, messages: AsyncIterator[bytes]) -> None:
        super().__init__(messages, media_type="text/event-stream")
        self._streams = streams

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the messages until the page is gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.count -= 1


async def _board(subscription: Subscription) -> AsyncIterator[bytes]:
    while True:
        rows = await _next(subscription, _BEAT_S)
        if rows is None:
            yield b":\n\n"
        elif not rows:
            yield _message("again", {})
            return
        elif len(rows) > _ROWS:
            yield _message("again", {})
        else:
            yield _message("board", rows)


async def _task(subscription: Subscription, packet: Packet, follower: TaskFollower) -> AsyncIterator[bytes]:
    status, beat_mono = await run_in_threadpool(_status, packet), clock.mono()
    while True:
        while (found := await run_in_threadpool(follower.events)) is not None:
            place, events = found
            data = {"end": place, "events": events}
            yield _message("journal", data, id=f"{packet.task_id}:{place}")
        while (window := await run_in_threadpool(follower.log, status)) is not None:
            yield _message("log", window)
        is_busy = follower.log_bytes is not None and status == Status.RUNNING
        rows = await _next(subscription, _LOG_S if is_busy else _BEAT_S)
        if rows is not None and not rows:
            yield _message("again", {})
            return
        if rows and packet.task_id in rows:
            row = rows[packet.task_id]
            status = row["status"] if row is not None else ""
            yield _message("board", {packet.task_id: row})
        if clock.mono() - beat_mono > _BEAT_S:
            beat_mono = clock.mono()
            yield b":\n\n"


async def _next(subscription: Subscription, timeout_s: float) -> dict[str, dict[str, Any] | None] | None:
    try:
        async with asyncio.timeout(timeout_s):
            return await subscription.queue.get()
    except TimeoutError:
        return None


def _status(packet: Packet) -> str:
    try:
        return str(load.read_manifest(packet)["status"])
    except HoldfastError:
        return ""


def _message(kind: str, data: Any, *, id: str = "") -> bytes:
    # JSON has no line end, so one line of data is enough.
    head = f"event: {kind}\n" + (f"id: {id}\n" if id else "")
    return head.encode() + b"data: " + answers.encode(data, limit=_MESSAGE_BYTES) + b"\n\n"
