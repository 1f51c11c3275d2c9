"""A real `holdfast serve` for a test, and raw requests to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.waiting import eventually


class Served:
    """A running server: its port, the token of the printed address, and requests."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        self.base, self.token = address.split("/#")
        self.host = self.base.removeprefix("http://")
        self.port = int(self.host.rpartition(":")[2])
        self._bearer = ""

    def raw(self, data: bytes, *, within_s: float = 10.0) -> bytes:
        """Send bytes, and read until the server closes the connection or has sent an answer."""
        with socket.create_connection(("127.0.0.1", self.port), within_s) as connection:
            connection.sendall(data)
            found = b""
            while part := connection.recv(65536):
                found += part
                if b"\r\n\r\n" in found and (b"content-length: 0" in found or _is_whole(found)):
                    break
        return found

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        """A request as a page sends it; a header of None is left out. Returns status, headers and body."""
        sent: dict[str, str | None] = {"Host": self.host, "Sec-Fetch-Site": "same-origin"}
        if self._bearer:
            sent["Authorization"] = f"Bearer {self._bearer}"
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        if method == "POST":
            sent |= {"Origin": self.base, "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            if data is not None and "Content-Length" not in sent:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def get(self, path: str, **headers: str | None) -> Any:
        """The data of a page; asserts that it was answered."""
        status, _, body = self.ask("GET", path, **headers)
        assert status == 200, (status, body)
        return json.loads(body)

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        status, _, data = self.ask("POST", path, body)
        return status, json.loads(data)

    def enter(self) -> Served:
        """Exchange the token for a bearer, which all later requests have."""
        status, body = self.post("/api/session", {"token": self.token})
        assert status == 200, body
        self._bearer = body["bearer"]
        return self

    @property
    def bearer(self) -> str:
        return self._bearer

    @contextmanager
    def stream(self, path: str, **headers: str) -> Iterator[Iterator[tuple[str, str, Any]]]:
        """An open stream, as kind, id and data of its messages."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {"Authorization": f"Bearer {self._bearer}", "Host": self.host}
        connection.request(
            "GET", path, headers={**sent, **{k.replace("_", "-"): v for k, v in headers.items()}}
        )
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        try:
            yield _messages(answer)
        finally:
            connection.close()
            answer.close()

    def stop(self) -> str:
        """End it; what it wrote to stderr."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=20)
        return errors


def _messages(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    kind = id = ""
    while line := answer.readline().decode():
        name, _, value = line.rstrip("\n").partition(": ")
        if name == "event":
            kind, id = value, ""
        elif name == "id":
            id = value
        elif name == "data":
            yield kind, id, json.loads(value)


def _is_whole(found: bytes) -> bool:
    head, _, body = found.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    return False


@contextmanager
def serving(*args: str, env: dict[str, str] | None = None) -> Iterator[Served]:
    """`holdfast serve --port 0 ARGS…`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "serve", "--port", "0", *args],
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    if not address:
        raise AssertionError(process.communicate(timeout=20))
    served = Served(process, address)
    try:
        yield served
    finally:
        errors = served.stop()
        assert "Traceback" not in errors, errors


def wait_until_closed(connection: socket.socket, within_s: float = 20.0) -> None:
    """Wait until the other side has closed a connection."""
    connection.settimeout(0.2)

    def is_closed() -> bool:
        try:
            return connection.recv(1) == b""
        except ConnectionError:
            return True

    eventually(is_closed, within_s, "the server closes the connection")
