"""Changes of the home for all open pages: one thread waits for them, while there is a page.

`subscribe` in the event loop gives a queue; a row of every task that changes is put into each. A page that
does not read fast enough loses its subscription, and connects again.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.views.facts import task_list
from holdfast.views.facts.changes import Changes
from holdfast.views.facts.queue_places import QueuePlaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Home

#: Pause after each batch of changes, which limits how often pages are told.
_BATCH_S = 0.1
#: The longest wait for a change of a task. After it, the queue is looked at; without a page, the thread ends.
_WAIT_S = 2.0
#: Batches that a slow page may have waiting.
_QUEUED = 64


class Subscription:
    """The changes for one page."""

    def __init__(self) -> None:
        #: Rows by task; None for a task that is gone. An empty dict: this subscription was dropped.
        self.queue: asyncio.Queue[dict[str, dict[str, Any] | None]] = asyncio.Queue(_QUEUED)


class Feed:
    """Used in the event loop; only `_watch` runs in the thread."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._subscriptions: set[Subscription] = set()
        self._thread: threading.Thread | None = None

    async def subscribe(self) -> Subscription:
        """Changes from here on."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        if self._thread is None:
            loop, ready = asyncio.get_running_loop(), asyncio.Event()
            self._thread = threading.Thread(target=self._watch, args=(loop, ready), daemon=True)
            self._thread.start()
            await ready.wait()
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """No more changes."""
        self._subscriptions.discard(subscription)

    def end_all(self) -> None:
        """Let every page go: the server ends."""
        for subscription in list(self._subscriptions):
            self._drop(subscription)

    def _watch(self, loop: asyncio.AbstractEventLoop, ready: asyncio.Event) -> None:
        changes, places = Changes(self._home), QueuePlaces(self._home)
        places.read()
        try:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server ends
                loop.call_soon_threadsafe(ready.set)
                while self._subscriptions:
                    if changed := changes.wait(_WAIT_S) | places.moved():
                        rows = {task_id: _row(self._home, task_id, places) for task_id in changed}
                        loop.call_soon_threadsafe(self._publish, rows)
                        clock.sleep(_BATCH_S)
                loop.call_soon_threadsafe(self._ended, loop)
        finally:
            changes.close()

    def _ended(self, loop: asyncio.AbstractEventLoop) -> None:
        self._thread = None
        if self._subscriptions:  # one came meanwhile
            self._thread = threading.Thread(target=self._watch, args=(loop, asyncio.Event()), daemon=True)
            self._thread.start()
            for subscription in list(self._subscriptions):
                self._drop(subscription)  # what changed in between is not known: it begins anew

    def _publish(self, rows: dict[str, dict[str, Any] | None]) -> None:
        for subscription in list(self._subscriptions):
            if subscription.queue.full():
                self._drop(subscription)
            else:
                subscription.queue.put_nowait(rows)

    def _drop(self, subscription: Subscription) -> None:
        self.unsubscribe(subscription)
        while not subscription.queue.empty():
            subscription.queue.get_nowait()
        subscription.queue.put_nowait({})


def _row(home: Home, task_id: str, places: QueuePlaces) -> dict[str, Any] | None:
    try:
        row = task_list.one(home, task_id)
        places.put(row)
        return task_list.shown(home, row)
    except (HoldfastError, OSError, KeyError):
        return None
