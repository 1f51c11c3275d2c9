"""Clients as they are: keep-alive, compression, chunks, half requests, garbage."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import zlib
from importlib import import_module

import pytest

from holdfast.testing.models import ModelServer, last_user_text, text
from tests.integration.testing.models.conftest import APIS, LIMIT_S, ask, body, connect, path, send
from tests.integration.testing.models.reader import said
from tests.support.waiting import eventually


def talk(server: ModelServer, *parts: bytes) -> bytes:
    """Send raw bytes, and read until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as connection:
        received = b""
        try:
            for part in parts:
                connection.sendall(part)
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                received += chunk
        except TimeoutError:
            raise
        except OSError:
            pass  # it had enough
    return received


def test_one_connection_carries_many_requests(api: str) -> None:
    with ModelServer([text("a").times(4)]) as server, connect(server) as connection:
        for stream in (True, False, True, False):
            connection.request("POST", path(api, stream=stream), json.dumps(body(api, stream=stream)))
            response = connection.getresponse()
            assert response.status == 200
            assert response.read()
        # http.client would have opened a new one without telling.
        assert connection.sock is not None
        assert len(server.requests) == 4


def test_head_and_get_are_answered() -> None:
    with ModelServer() as server, connect(server) as connection:
        for method, target, status in (
            ("HEAD", "/", 200),
            ("GET", "/", 200),
            ("GET", "/nowhere", 404),
            ("HEAD", "/nowhere", 404),
            ("OPTIONS", "/", 404),
            ("POST", "/api/event_logging/batch", 404),
        ):
            connection.request(method, target)
            response = connection.getresponse()
            assert response.status == status
            assert bool(response.read()) == (method != "HEAD")


@pytest.mark.parametrize("target", ["/v1/models", "/v1beta/models?key=x"])
def test_models_are_listed(target: str) -> None:
    with ModelServer() as server, connect(server) as connection:
        connection.request("GET", target)
        listed = json.loads(connection.getresponse().read())
        if "v1beta" in target:
            assert listed["models"][0]["name"] == "models/scripted-model"
        else:
            assert listed["data"][0]["id"] == "scripted-model"
            assert listed["has_more"] is False
        connection.request("GET", target.replace("models", "models/scripted-model"))
        assert "scripted-model" in connection.getresponse().read().decode()
        connection.request("GET", target.replace("models", "models/other"))
        response = connection.getresponse()
        response.read()
        assert response.status == 404


def test_compressed_bodies_are_read() -> None:
    plain = json.dumps(body("chat", "squeezed")).encode()
    bare = zlib.compressobj(wbits=-15)
    forms = {
        "gzip": gzip.compress(plain),
        "deflate": zlib.compress(plain),
        "Deflate": bare.compress(plain) + bare.flush(),
        "gzip, gzip": gzip.compress(gzip.compress(plain)),
        "identity": plain,
    }
    with ModelServer([text("a").times(len(forms))]) as server:
        for encoding, data in forms.items():
            assert send(server, path("chat"), data, **{"Content-Encoding": encoding}).status == 200
            request = server.requests[-1]
            assert (last_user_text(request), request.raw, request.body) == ("squeezed", data, plain)


@pytest.mark.parametrize(("encoding", "status"), [("br", 415), ("gzip", 400), ("zstd", 415)])
def test_what_cannot_be_decompressed_is_refused_politely(api: str, encoding: str, status: int) -> None:
    if encoding == "zstd":
        try:
            import_module("compression.zstd")
        except ImportError:
            pass
        else:
            status = 400
    with ModelServer([text("a")]) as server, connect(server) as connection:
        for content_encoding, expected in ((encoding, status), ("identity", 200)):
            data = b"\x28\xb5\x2f\xfd" if expected != 200 else json.dumps(body(api)).encode()
            connection.request("POST", path(api), data, {"Content-Encoding": content_encoding})
            response = connection.getresponse()
            assert (response.status, bool(json.loads(response.read()).get("error"))) == (
                expected,
                expected != 200,
            )
        assert server.requests[0].raw == b"\x28\xb5\x2f\xfd"


def test_a_chunked_request_is_read() -> None:
    data = json.dumps(body("chat", "in chunks")).encode()
    with ModelServer() as server, connect(server) as connection:
        connection.request("POST", path("chat"), iter([data[:10], data[10:]]), encode_chunked=True)
        assert connection.getresponse().status == 200
        assert last_user_text(server.requests[0]) == "in chunks"


def test_a_client_that_expects_100_continue_gets_it() -> None:
    data = json.dumps(body("chat")).encode()
    head = (
        f"POST {path('chat')} HTTP/1.1\r\nHost: x\r\n"
        f"Content-Length: {len(data)}\r\nExpect: 100-continue\r\n\r\n"
    )
    with (
        ModelServer() as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as connection,
    ):
        connection.sendall(head.encode())
        assert connection.recv(1024) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(data)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"\r\n\r\n",
        b"POST",
        b"",
        b"POST /v1/messages HTTP/9.9\r\n\r\n",
        b"BREW / HTTP/1.1\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nContent-Length: 100\r\n\r\n{half",
        b"POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 500 + b"\r\n",
        b"POST //[x HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_garbage_harms_only_its_sender(garbage: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer([text("still here")]) as server:
        answer = talk(server, garbage)
        assert b"200 OK" not in answer
        assert said("chat", ask(server, "chat")).text == "still here"
    assert capfd.readouterr() == ("", "")


def test_a_body_that_is_no_json_object_is_refused(api: str) -> None:
    with ModelServer([text("a")]) as server:
        for junk in (b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b"null"):
            got = send(server, path(api), junk)
            assert (got.status, got.json["error"]["message"]) == (400, "the body is not a JSON object")
            assert server.requests[-1].raw == junk
        assert server.script.turns_left == 1


@pytest.mark.parametrize("api", APIS)
def test_clients_that_leave_in_the_middle_do_no_harm(api: str) -> None:
    with ModelServer([text("x" * 1_000_000).times(3), text("next")]) as server:
        for _ in range(3):
            with connect(server) as connection:
                connection.request("POST", path(api, stream=True), json.dumps(body(api, stream=True)))
                connection.getresponse().read1(100)
        assert said(api, ask(server, api)).text == "next"
        eventually(lambda: all(request.ended for request in server.requests))


def test_http_1_0_gets_no_chunks() -> None:
    data = json.dumps(body("chat", stream=True)).encode()
    head = f"POST {path('chat')} HTTP/1.0\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    with ModelServer([text("old")]) as server:
        answer = talk(server, head, data)
    assert b"chunked" not in answer
    assert answer.endswith(b"data: [DONE]\n\n")


def test_many_clients_at_once() -> None:
    statuses: list[int] = []
    with ModelServer() as server:
        threads = [
            threading.Thread(target=lambda: statuses.append(ask(server, "chat", stream=True).status))
            for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        assert [request.number for request in server.requests] == list(range(1, 21))
    assert statuses == [200] * 20


def test_a_closed_server_leaves_no_thread_and_no_port() -> None:
    before = threading.active_count()
    server = ModelServer()
    with connect(server) as idle:
        idle.request("HEAD", "/")
        idle.getresponse().read()
        server.close()
        server.close()
    eventually(lambda: threading.active_count() == before)
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_S).connect()


def test_a_taken_port_is_an_error() -> None:
    with ModelServer() as server, pytest.raises(OSError, match="in use"):
        ModelServer(port=server.port)
