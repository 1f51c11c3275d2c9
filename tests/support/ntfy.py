"""A server that speaks the part of ntfy's protocol that holdfast uses, as its documentation describes it:
publish (JSON to `/`, a text to `/<topic>`), subscribe (`/<topic>/json`, a JSON object per line, `since=` and
`poll=`), the cache, access tokens, and the limits of a default installation."""

from __future__ import annotations

import base64
import contextlib
import http.client
import http.server
import json
import random
import re
import ssl
import string
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
MESSAGE_BYTES = 4096


class Ntfy(http.server.ThreadingHTTPServer):
    """The server. `messages` is its cache."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self,
        port: int = 0,
        *,
        token: str = "",
        write_token: str = "",
        certificate: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        #: With `token`, everything needs it; `write_token` may publish to `/<topic>` only.
        self.token, self.write_token = token, write_token
        self.messages: list[dict[str, Any]] = []
        #: Statuses of the next requests, before they are looked at.
        self.failures: list[int] = []
        #: Of each request: method, path, headers.
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        #: Raw bytes for the open streams of a topic, which no real server sends.
        self.raw: list[tuple[str, bytes]] = []
        self.keepalive_s = 0.5
        self.changed = threading.Condition()
        self.streams = 0
        self.generation = 0
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def state(self) -> tuple[int, int, int]:
        return len(self.messages), len(self.raw), self.generation

    def close(self) -> None:
        self.drop_streams()
        self.shutdown()
        self.server_close()
        self._thread.join()

    def drop_streams(self) -> None:
        """End all streams, as a restart does."""
        with self.changed:
            self.generation += 1
            self.changed.notify_all()

    def add(self, topic: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Publish a message; it is in the cache, then in the streams."""
        name = "".join(random.choices(string.ascii_letters + string.digits, k=12))
        message = {"id": name, "time": int(time.time()), "event": "message", "topic": topic, **fields}
        with self.changed:
            self.messages.append(message)
            self.changed.notify_all()
        return message

    def inject(self, topic: str, data: bytes) -> None:
        with self.changed:
            self.raw.append((topic, data))
            self.changed.notify_all()

    def of(self, topic: str) -> list[dict[str, Any]]:
        """The messages of a topic."""
        return [message for message in list(self.messages) if message["topic"] == topic]

    def since(self, topic: str, since: str) -> list[dict[str, Any]]:
        """Cached messages after an id or a time. For an id that it does not know, the server sends all."""
        found = self.of(topic)
        if since in ("", "none"):
            return []
        if since.isdecimal() and len(since) != 12:
            return [message for message in found if message["time"] >= int(since)]
        places = [at for at, message in enumerate(found) if message["id"] == since]
        return found[places[0] + 1 :] if places else found

    def handle_error(self, request: Any, client_address: Any) -> None:
        return  # the client was killed


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Ntfy

    def log_message(self, *args: object) -> None:
        return

    def _begin(self) -> bool:
        """Whether the request may go on."""
        self.server.requests.append((self.command, self.path, dict(self.headers)))
        if self.server.failures:
            self._answer(self.server.failures.pop(0), {"error": "as the test wants"})
            return False
        given = self.headers.get("Authorization", "")
        may_write = self.command == "POST" and self.path != "/" and self.server.write_token
        known = [self.server.token, self.server.write_token if may_write else self.server.token]
        if self.server.token and given not in [f"Bearer {each}" for each in known]:
            self._answer(403 if given else 401, {"code": 40301, "error": "forbidden"})
            return False
        return True

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self._begin():
            return
        topic = self.path.lstrip("/")
        try:
            fields = self._published(body) if self.path == "/" else {"topic": topic, **_text(body)}
            topic = fields.pop("topic")
            if not TOPIC.fullmatch(topic) or len(fields["message"].encode()) > MESSAGE_BYTES:
                raise ValueError("topic or message invalid")
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            self._answer(400, {"code": 40024, "http": 400, "error": repr(error)})
            return
        self._answer(200, self.server.add(topic, fields))

    def _published(self, body: bytes) -> dict[str, Any]:
        """A message published as JSON, checked as the server does."""
        assert len(body) <= 2 * MESSAGE_BYTES, "larger than the limit of the server"
        message = json.loads(body)
        known = {"topic", "message", "title", "tags", "priority", "actions", "click"}
        assert set(message) <= known, "a field that the server does not know"
        assert message.get("priority", 3) in range(1, 6)
        assert all(isinstance(tag, str) for tag in message.get("tags", []))
        actions = message.get("actions", [])
        assert len(actions) <= 3, "only 3 actions allowed"
        for action in actions:
            assert action["action"] in ("view", "http")
            assert action["label"]
            assert action["url"].startswith(("http://", "https://"))
            assert all(isinstance(value, str) for value in action.get("headers", {}).values())
            action["id"] = "".join(random.choices(string.ascii_letters, k=10))
        return message

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        topic, _, kind = url.path.lstrip("/").partition("/")
        if not self._begin():
            return
        if not TOPIC.fullmatch(topic) or kind != "json":
            self._answer(404, {"code": 40401, "error": "page not found"})
            return
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with self.server.changed:
            self.server.streams += 1
        try:
            self._stream(topic, asked)
        finally:
            with self.server.changed:
                self.server.streams -= 1

    def _stream(self, topic: str, asked: dict[str, str]) -> None:
        server = self.server
        is_poll = asked.get("poll") == "1"
        with server.changed:
            old = server.since(topic, asked.get("since", "all" if is_poll else ""))
            seen, raw, generation = len(server.messages), len(server.raw), server.generation
        if not is_poll:
            self._event("open", topic)
        for message in old:
            self._chunk(json.dumps(message).encode() + b"\n")
        while not is_poll:
            with server.changed:
                state = (seen, raw, generation)
                is_woken = server.changed.wait_for(
                    lambda state=state: server.state != state, timeout=server.keepalive_s
                )
                new, seen = server.messages[seen:], len(server.messages)
                more, raw = server.raw[raw:], len(server.raw)
                if server.generation != generation:
                    self.close_connection = True
                    self.connection.close()
                    return
            if not is_woken:
                self._event("keepalive", topic)
            for message in new:
                if message["topic"] == topic:
                    self._chunk(json.dumps(message).encode() + b"\n")
            for where, data in more:
                if where == topic:
                    self._chunk(data)
        self._chunk(b"")

    def _event(self, event: str, topic: str) -> None:
        message = {"id": "x" * 12, "time": int(time.time()), "event": event, "topic": topic}
        self._chunk(json.dumps(message).encode() + b"\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def _text(body: bytes) -> dict[str, str]:
    """A body as a message; what is not UTF-8 is encoded."""
    try:
        return {"message": body.decode() or "triggered"}
    except UnicodeDecodeError:
        return {"message": base64.b64encode(body).decode(), "encoding": "base64"}


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[Ntfy]:
    server = Ntfy(**options)
    try:
        yield server
    finally:
        server.close()


def press(message: dict[str, Any], label: str) -> int:
    """Press a button, as the app does: send what the action says. Returns the status of the answer."""
    (action,) = [each for each in message["actions"] if each["label"] == label]
    assert (action["action"], action["method"], action["clear"]) == ("http", "POST", True)
    return send(action["url"], action["body"].encode(), action.get("headers", {}))


def send(url: str, body: bytes, headers: dict[str, str] | None = None) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    try:
        connection.request("POST", parts.path, body, headers or {})
        return connection.getresponse().status
    finally:
        connection.close()
