"""The server process: one port, one event loop, threads that read files."""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
import sys
from itertools import count

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.errors import NotPossible
from holdfast.views.web import app
from holdfast.views.web.feed import Feed
from holdfast.views.web.request_filter import HAS_BEARER
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
    """Closes connections beyond a number, and those that send nothing.

    Whoever has no bearer may ask for the page, and then stay connected: such a connection is closed before a
    page of ours is refused.
    """

    #: In the order in which they came.
    _numbers = count()
    #: Negative for one that was refused.
    number = -1

    def connection_made(self, transport: Any) -> None:
        """Count it, and give it a deadline. It may take the place of one without a bearer."""
        if len(self.connections) >= _CONNECTIONS and not self._make_room():
            transport.abort()
            return
        self.number = next(Protocol._numbers)
        super().connection_made(transport)
        self.loop.call_later(_HEAD_S, self._close_if_silent)

    def _make_room(self) -> bool:
        """Close the oldest connection that has sent no bearer, first of those that have asked for nothing;
        False if all of them are of pages."""
        known: Any = self.connections
        others: list[Any] = [each for each in known if not each.has_bearer]
        if not others:
            return False
        oldest = min(others, key=lambda each: (each.cycle is not None, each.number))
        self.connections.discard(oldest)  # at once: the loop tells it later
        oldest.transport.abort()
        return True

    @property
    def has_bearer(self) -> bool:
        """Whether its last request came from a page of ours."""
        # (It is annotated as if it were always there.)
        return self.scope is not None and HAS_BEARER in self.scope.get("state", {})  # pyright: ignore[reportUnnecessaryComparison]

    def connection_lost(self, exc: Exception | None) -> None:
        """One that was refused was never counted."""
        if self.number >= 0:
            super().connection_lost(exc)

    def _close_if_silent(self) -> None:
        # (It is annotated as if it were always there.)
        if self.cycle is None and not self.transport.is_closing():  # pyright: ignore[reportUnnecessaryComparison]
            self.transport.close()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Print the error of a task that is not awaited. The loop itself tries to accept again, also for a port
    that was closed meanwhile."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        global _refused_mono
        if loop.time() >= _refused_mono + _REFUSED_S:
            _refused_mono = loop.time()
            print("warning: too many open files: connections have to wait", file=sys.stderr)
    elif "_start_serving" not in str(context.get("handle")):
        told = f"{type(error).__name__}: {error}" if error is not None else ""
        print(f"error: {context.get('message')}: {told}", file=sys.stderr)


#: When a full table of descriptors was told last, and how often it is told.
_refused_mono, _REFUSED_S = float("-inf"), 60.0


def bind(address: str, port: int | None) -> socket.socket:
    """A socket on the port; without a port on the usual one, or any other if that is taken."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    ports = (port,) if port is not None else (USUAL_PORT, 0)
    for each in ports:
        # The protocol must be named: only then does asyncio turn Nagle's algorithm off for connections, which
        # would delay the body of an answer until the browser confirms its headers, 40 ms later.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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


def serve(
    home: Home,
    listening: socket.socket,
    *,
    has_own_name: bool,
    is_read_only: bool,
    tell: Callable[[str], None],
) -> None:
    """Answer requests until Ctrl-C. `tell` gets the addresses to open, each with a token for one page.

    With `has_own_name`, pages are below a new name: browsers keep workers, storage and caches by name and
    port, and an agent may have had a server on this port. They resolve names below localhost themselves.
    """
    address, port = listening.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    hosts = (f"{shown}:{port}", *([f"localhost:{port}"] if address in ("127.0.0.1", "::1") else []))
    known, feed = Sessions(), Feed(home)
    rules = Rules(hosts=hosts, is_read_only=is_read_only)
    if has_own_name:
        name = f"hf-{secrets.token_hex(8)}.localhost:{port}"
        rules = rules.evolve(hosts=(name,), plain_hosts=hosts)
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
        tell(f"http://{rules.hosts[0]}/#{known.new_token()}")

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            asyncio.get_running_loop().set_exception_handler(_report)
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
