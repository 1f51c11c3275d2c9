"""The server process: one port, one event loop, threads that read files."""

from __future__ import annotations

import asyncio
import socket
import sys
from itertools import count

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.errors import NotPossible
from holdfast.views.web import app
from holdfast.views.web.feed import Feed
from holdfast.views.web.security import Rules
from holdfast.views.web.sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.store.layout import Home

#: The port that is tried first.
USUAL_PORT = 8733
#: Connections at the same time, and how long one may take to send a request.
_CONNECTIONS, _HEAD_S = 256, 10.0


class Protocol(H11Protocol):
    """Closes connections beyond a number, and those that send nothing."""

    #: In the order in which they came.
    _numbers = count()
    number = 0

    def connection_made(self, transport: Any) -> None:
        """Count it, and give it a deadline. It may take the place of one that has sent nothing so far."""
        if len(self.connections) >= _CONNECTIONS and not self._make_room():
            transport.abort()
            return
        self.number = next(Protocol._numbers)
        super().connection_made(transport)
        self.loop.call_later(_HEAD_S, self._close_if_silent)

    def _make_room(self) -> bool:
        """Close the oldest connection that is silent; False if all of them have asked for something."""
        known: Any = self.connections
        silent: list[Any] = [each for each in known if each.cycle is None]
        if not silent:
            return False
        oldest = min(silent, key=lambda each: each.number)
        self.connections.discard(oldest)  # at once: the loop tells it later
        oldest.transport.abort()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """One that was refused was never counted."""
        if self in self.connections:
            super().connection_lost(exc)

    def _close_if_silent(self) -> None:
        # (It is annotated as if it were always there.)
        if self.cycle is None and not self.transport.is_closing():  # pyright: ignore[reportUnnecessaryComparison]
            self.transport.close()


def bind(address: str, port: int | None) -> socket.socket:
    """A socket on the port; without a port on the usual one, or any other if that is taken."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    ports = (port,) if port is not None else (USUAL_PORT, 0)
    for each in ports:
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((address, each))
        except OSError as error:
            listening.close()
            if each == ports[-1]:
                raise NotPossible(
                    f"cannot listen on {address}, port {each}: {error.strerror}",
                    hint="choose another one: 'holdfast serve --port PORT'",
                ) from error
            continue
        return listening
    raise AssertionError


def serve(home: Home, listening: socket.socket, *, is_read_only: bool, tell: Callable[[str], None]) -> None:
    """Answer requests until Ctrl-C. `tell` gets the addresses to open, each with a token for one page."""
    address, port = listening.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    hosts = [f"{shown}:{port}"]
    if address in ("127.0.0.1", "::1"):
        hosts.append(f"localhost:{port}")
    known, feed = Sessions(), Feed(home)
    rules = Rules(hosts=tuple(hosts), is_read_only=is_read_only)
    config = uvicorn.Config(
        app.make(home, feed, rules=rules, known=known),
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # what goes wrong in a request is answered, and told by the application
        access_log=False,  # nothing of a request is written down
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=16 * 1024,
    )

    def tell_address() -> None:
        tell(f"http://{hosts[0]}/#{known.new_token()}")

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            tell_address()
            if sys.stdin is not None and sys.stdin.isatty():
                asyncio.get_running_loop().add_reader(0, _on_enter)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            feed.end_all()  # streams would be waited for
            await super().shutdown(sockets)

    def _on_enter() -> None:
        if sys.stdin.readline():
            tell_address()
        else:
            asyncio.get_running_loop().remove_reader(0)

    try:
        Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # uvicorn has ended properly, and raises the signal again
