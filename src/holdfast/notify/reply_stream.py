"""The lines of a reply topic: read by a thread, with reconnects. Anyone can write them: none is trusted."""

from __future__ import annotations

import http.client
import json
import os
import queue
import threading

from holdfast import clock
from holdfast.errors import NotPossible
from holdfast.notify import ntfy_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.client import HTTPResponse
    from typing import Any

#: A longer line is not a reply: it is skipped without being kept. A stream without an end of line is closed.
LINE_BYTES, SKIPPED_BYTES = 64 * 1024, 16 * 1024 * 1024
#: Lines that wait to be judged. If there are more, the server waits.
_WAITING = 200
#: Pause between two connections: doubling, with a random part.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


class Stream:
    """Messages of a topic, from all that the server has on. `None` stands for a line that is too long."""

    def __init__(self, server: str, topic: str, token_env: str, *, tell: Callable[[str], None]) -> None:
        """`tell` is called with why there is no connection, and with an empty text when there is one: once
        per change, in the thread."""
        self._server, self._topic, self._token_env = server, topic, token_env
        self._tell = tell
        self._since = "all"
        self._last_error: str | None = None
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue(_WAITING)
        threading.Thread(target=self._read_for_ever, daemon=True).start()

    def next(self, wait_s: float) -> tuple[bool, dict[str, Any] | None]:
        """Whether there was a message within this time, and the message."""
        try:
            return True, self._lines.get(timeout=wait_s)
        except queue.Empty:
            return False, None

    def _read_for_ever(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                self._read()
                pause_s = FIRST_PAUSE_S  # it was connected; a server ends a stream at any time
                error = ""
            except NotPossible as failure:
                error = str(failure) + (f" ({failure.hint})" if failure.hint else "")
                self._tell_change(error)
            clock.sleep(pause_s * (0.75 + os.urandom(1)[0] / 512))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S) if error else FIRST_PAUSE_S

    def _tell_change(self, error: str) -> None:
        if error != self._last_error:
            self._last_error = error
            self._tell(error)

    def _read(self) -> None:
        token = ntfy_server.token(self._token_env)
        connection, answer = ntfy_server.subscribe(self._server, self._topic, since=self._since, token=token)
        self._tell_change("")
        try:
            for line in lines(answer):
                message = parsed(line)
                self._lines.put(message)
                if message is not None and is_id(message.get("id")) and message.get("event") == "message":
                    self._since = str(message["id"])
        except (OSError, http.client.HTTPException, ValueError):
            return  # the connection was lost: the next one continues after the last message
        finally:
            connection.close()


def lines(answer: HTTPResponse) -> Iterator[bytes | None]:
    """The lines of a stream; None for each that is too long. Ends if one does not end."""
    while line := answer.readline(LINE_BYTES + 1):
        if line.endswith(b"\n") or len(line) <= LINE_BYTES:
            yield line
            continue
        skipped = len(line)
        while (rest := answer.readline(LINE_BYTES + 1)) and not rest.endswith(b"\n"):
            skipped += len(rest)
            if skipped > SKIPPED_BYTES:
                return
        yield None


def parsed(line: bytes | None) -> dict[str, Any] | None:
    """The object in a line; None if there is none."""
    try:
        found = json.loads(line) if line is not None else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]


def is_id(text: object) -> bool:
    """Whether a value is the id of a message."""
    return isinstance(text, str) and text.isascii() and text.isalnum() and len(text) <= 64
