"""The model server: a loopback port that speaks every API and gives scripted answers."""

from __future__ import annotations

import selectors
import socket
import socketserver
import threading
from typing import TYPE_CHECKING, Any, Self

from holdfast.testing.models import settings
from holdfast.testing.models.desk import Desk
from holdfast.testing.models.handler import Handler
from holdfast.testing.models.record import Log
from holdfast.testing.models.script import Script

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from holdfast.testing.models.record import ModelRequest
    from holdfast.testing.models.script import Rule
    from holdfast.testing.models.settings import Agent, Setup
    from holdfast.testing.models.turns import Turn

HOST = "127.0.0.1"
_END_S = 5.0


class _Listener(socketserver.ThreadingTCPServer):
    """Keeps track of its connections, so that closing the server closes them."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, handler: type[Handler]) -> None:
        self.open: set[Any] = set()
        self.changed = threading.Condition()
        super().__init__((HOST, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.changed:
            self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self.changed:
            self.open.discard(request)
            self.changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect or send garbage."""


class ModelServer:
    """Serves from construction to `close`, in threads of this process.

    `script` is a list of turns, a function from request to turn, or a `Script`, which has more options.
    """

    def __init__(
        self,
        script: Sequence[Turn] | Callable[[ModelRequest], Turn] | Script = (),
        *,
        rules: Sequence[Rule] = (),
        port: int = 0,
        log: str | os.PathLike[str] | None = None,
    ) -> None:
        self.script = script if isinstance(script, Script) else Script(script, rules=rules)
        self._log = Log(log) if log is not None else None
        self._desk = Desk(self.script, self._log)
        try:
            self._listener = _Listener(port, type("Handler", (Handler,), {"desk": self._desk}))
        except OSError:
            if self._log:
                self._log.close()
            raise
        self.port: int = self._listener.server_address[1]
        self._wake, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, name="model-server", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The URL without a path. OpenAI clients need `/v1` after it."""
        return f"http://{HOST}:{self.port}"

    @property
    def requests(self) -> list[ModelRequest]:
        """All requests so far, in order."""
        return list(self._desk.requests)

    def conversations(self) -> list[ModelRequest]:
        """The requests that ask a model for an answer, without side requests."""
        return [request for request in self.requests if request.is_conversation]

    @property
    def errors(self) -> list[str]:
        """Errors of the script itself: a function that raised, a tool that the client does not offer."""
        return list(self._desk.errors)

    @property
    def stalled(self) -> int:
        """How many replies are stalled now."""
        return self._desk.stalled

    def release(self) -> None:
        """Let all stalled replies continue."""
        self._desk.release()

    def wait_for_conversations(self, count: int, within_s: float = 10.0) -> list[ModelRequest]:
        """Wait for `count` conversation requests and return them. Raises TimeoutError."""
        self._await(lambda: len(self.conversations()) >= count, f"{count} conversation requests", within_s)
        return self.conversations()

    def wait_for_stall(self, count: int = 1, within_s: float = 10.0) -> None:
        """Wait until `count` replies are stalled. Raises TimeoutError."""
        self._await(lambda: self.stalled >= count, f"{count} stalled replies", within_s)

    def wait_for_end(self, request: ModelRequest, within_s: float = 10.0) -> str:
        """Wait until a request was answered and return how it ended. Raises TimeoutError."""
        self._await(lambda: request.ended != "", f"the end of request {request.number}", within_s)
        return request.ended

    def setup(self, agent: Agent, *, model: str | None = None) -> Setup:
        """Settings with which a CLI talks to this server."""
        return settings.setup(agent, self.url, model=model)

    def env(
        self, agent: Agent, home: str | Path | None = None, *, model: str | None = None
    ) -> dict[str, str]:
        """The environment of a CLI. With `home`, its files are written there and HOME is set."""
        wanted = self.setup(agent, model=model)
        return wanted.env if home is None else wanted.write_to(home)

    def close(self) -> None:
        """Cut off stalled replies, close connections, end threads."""
        if self._desk.is_closed:
            return
        self._desk.close()
        self._waker.send(b"x")
        self._thread.join(_END_S)
        listener = self._listener
        with listener.changed:
            for connection in listener.open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the client closed it first
            listener.changed.wait_for(lambda: not listener.open, _END_S)
        listener.server_close()
        self._wake.close()
        self._waker.close()
        if self._log:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        # Not serve_forever, which polls twice a second.
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            while not self._desk.is_closed:
                if any(key.fileobj is self._listener for key, _ in selector.select()):
                    self._listener.handle_request()

    def _await(self, fn: Callable[[], bool], what: str, within_s: float) -> None:
        if not self._desk.wait(fn, within_s):
            seen = [f"{r.method} {r.path} {r.turn or r.route.operation} {r.ended}" for r in self.requests]
            raise TimeoutError(f"not within {within_s:g} s: {what}; requests: {seen or 'none'}")
