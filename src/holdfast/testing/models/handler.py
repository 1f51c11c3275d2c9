"""One connection: reads requests, and sends the answers with the delays and faults of their turns."""

from __future__ import annotations

import socket
import struct
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from holdfast.testing.models import answer, body

if TYPE_CHECKING:
    from holdfast.testing.models.answer import Answer
    from holdfast.testing.models.desk import Desk
    from holdfast.testing.models.record import ModelRequest
    from holdfast.testing.models.turns import Fault

#: Errors of a client that has disconnected.
GONE = (ConnectionError, TimeoutError, BrokenPipeError)


class Dropped(Exception):
    """Raised to end the connection, as the turn demands."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


class Handler(BaseHTTPRequestHandler):
    """Reads HTTP/1.1 with keep-alive, chunks, compression and `Expect: 100-continue`."""

    protocol_version = "HTTP/1.1"
    server_version = "holdfast-models"
    sys_version = ""
    disable_nagle_algorithm = True
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"
    desk: Desk

    def do_any(self) -> None:
        desk = self.desk
        try:
            raw = body.read(self.rfile, self.headers)
            try:
                plain = body.decompressed(raw, self.headers.get("Content-Encoding", ""))
            except body.BadBody as error:
                request = self._take(raw, b"")
                ready = answer.refused(request.codec, error.status, str(error))
            else:
                request = self._take(raw, plain)
                ready = desk.answer(request)
        except body.BadBody as error:
            self.close_connection = True
            self.send_error(error.status, str(error))
            return
        except GONE:
            self.close_connection = True
            return
        how = "done"
        try:
            self._send(ready)
        except Dropped as dropped:
            how = "closed" if dropped.how == "closed" else "dropped"
            self._hang_up(dropped.how)
        except GONE:
            how = "closed" if desk.is_closed else "client left"
            self.close_connection = True
        desk.finish(request, how)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_any  # noqa: N815 - named by the base class

    def _take(self, raw: bytes, plain: bytes) -> ModelRequest:
        headers = list(self.headers.items())
        return self.desk.take(method=self.command, path=self.path, headers=headers, raw=raw, body=plain)

    def _send(self, ready: Answer) -> None:
        self._pause(ready.head_delay_s)
        fault = ready.fault
        if fault and fault.after is None:
            self._fail(fault)
            fault = None
        is_chunked = ready.length is None and self.request_version != "HTTP/1.0"
        self.send_response_only(ready.status, _reason(ready.status))
        self.send_header("Content-Type", ready.content_type)
        for name, value in ready.headers.items():
            self.send_header(name, value)
        if ready.length is not None:
            self.send_header("Content-Length", str(ready.length))
        elif is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.close_connection = True
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        sent = 0
        for event in ready.events:
            if (
                fault
                and fault.after is not None
                and ((event.is_piece and sent >= fault.after) or event.is_end)
            ):
                self._fail(fault)
                fault = None
            if event.is_piece:
                self._pause(ready.piece_delay_s)
                sent += 1
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event.data), event.data) if is_chunked else event.data)
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _fail(self, fault: Fault) -> None:
        if fault.kind == "drop":
            raise Dropped(fault.how)
        if not self.desk.stall(self.connection, fault.limit_s):
            raise Dropped("closed")

    def _pause(self, delay_s: float) -> None:
        if delay_s and self.desk.closed.wait(delay_s):
            raise Dropped("closed")

    def _hang_up(self, how: str) -> None:
        self.close_connection = True
        if how == "reset":
            # With this option, close sends RST. The server itself would call shutdown first, which sends FIN.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        else:
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Print nothing: requests are recorded."""


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else "Status"
