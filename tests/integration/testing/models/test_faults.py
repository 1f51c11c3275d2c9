"""Replies that stall, break off, or take their time."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time

import pytest

from holdfast.testing.models import ModelServer, drop, slow, stall, text, tool
from tests.integration.testing.models.conftest import APIS, LIMIT_S, Got, ask, body, connect, path
from tests.integration.testing.models.reader import said


class Asking:
    """A request in its own thread."""

    def __init__(self, server: ModelServer, api: str, *, stream: bool) -> None:
        self.got: Got | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._ask, args=(server, api, stream), daemon=True)
        self._thread.start()

    def _ask(self, server: ModelServer, api: str, stream: bool) -> None:
        try:
            self.got = ask(server, api, stream=stream)
        except Exception as error:  # looked at by the test
            self.error = error

    def end(self) -> None:
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()


def part(server: ModelServer, api: str, *, stream: bool = True) -> bytes:
    """What arrives before the connection breaks."""
    received = b""
    with connect(server) as connection:
        connection.request("POST", path(api, stream=stream), json.dumps(body(api, stream=stream)))
        try:
            response = connection.getresponse()
            assert response.status == 200
            while chunk := response.read1(65536):
                received += chunk
        except ConnectionResetError:
            return received
        except http.client.IncompleteRead as error:
            return received + error.partial
        # Not chunked: only the length shows that something is missing.
        assert response.length
        return received


def test_a_stall_before_the_headers_ends_when_it_is_released(api: str, stream: bool) -> None:
    with ModelServer([stall(text="at last")]) as server:
        asking = Asking(server, api, stream=stream)
        server.wait_for_stall()
        assert asking.got is None
        server.release()
        asking.end()
        assert asking.got
        assert said(api, asking.got).text == "at last"
        assert server.stalled == 0


def test_a_stall_in_the_stream_comes_after_so_many_pieces(api: str) -> None:
    with ModelServer([stall(2, text="one two three four five six seven eight")]) as server:
        with connect(server) as connection:
            connection.request("POST", path(api, stream=True), json.dumps(body(api, stream=True)))
            response = connection.getresponse()
            server.wait_for_stall()
            received = b""
            while b"two" not in received:
                received += response.read1(65536)
            assert b"three" not in received
            server.release()
            received += response.read()
        assert said(api, Got(200, {"content-type": "text/event-stream"}, received)).text.endswith("eight")
        assert server.wait_for_end(server.requests[0]) == "done"


def test_a_whole_answer_can_stall_in_its_middle(api: str) -> None:
    with ModelServer([stall(3)]) as server, connect(server) as connection:
        connection.request("POST", path(api), json.dumps(body(api)))
        response = connection.getresponse()
        server.wait_for_stall()
        assert response.read1(10)
        server.release()
        response.read()


def test_a_stall_behind_the_last_piece_withholds_the_end(api: str) -> None:
    with ModelServer([text("all of it").slowly(0, pieces=1).stalled(99)]) as server:
        asking = Asking(server, api, stream=True)
        server.wait_for_stall()
        server.release()
        asking.end()
        assert asking.got
        assert said(api, asking.got).text == "all of it"


def test_a_stall_may_have_a_limit() -> None:
    with ModelServer([stall(limit_s=0.05)]) as server:
        assert said("chat", ask(server, "chat")).text


@pytest.mark.parametrize("after", [None, 1])
def test_closing_the_server_ends_a_stall(after: int | None) -> None:
    server = ModelServer([stall(after)])
    asking = Asking(server, "anthropic", stream=True)
    server.wait_for_stall()
    began = time.monotonic()
    server.close()
    asking.end()
    assert time.monotonic() - began < 4
    assert isinstance(asking.error, (ConnectionError, http.client.HTTPException))
    assert server.requests[0].ended == "closed"


def test_a_client_that_leaves_a_stall_is_noticed() -> None:
    with ModelServer([stall(1), text("next")]) as server:
        with connect(server) as connection:
            connection.request("POST", path("chat"), json.dumps(body("chat", stream=True)))
            server.wait_for_stall()
        assert server.wait_for_end(server.requests[0]) == "client left"
        assert said("chat", ask(server, "chat")).text == "next"


def test_a_release_is_for_those_who_stall_now() -> None:
    with ModelServer([stall(text="late")]) as server:
        server.release()
        asking = Asking(server, "chat", stream=False)
        server.wait_for_stall()
        server.release()
        asking.end()


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_drop_in_the_stream_keeps_what_was_sent(api: str, how: str) -> None:
    with ModelServer([drop(2, how="close" if how == "close" else "reset")]) as server:
        received = part(server, api)
        assert server.wait_for_end(server.requests[0]) == "dropped"
    # A reset may overtake what was sent.
    assert b"two" in received or how == "reset"
    assert b"three" not in received


def test_a_reset_is_a_reset_and_a_close_is_a_close() -> None:
    data = json.dumps(body("chat", stream=True)).encode()
    request = f"POST {path('chat')} HTTP/1.1\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
    seen: list[str] = []
    with ModelServer([drop(2), drop(), drop(2, how="close"), drop(how="close")]) as server:
        for _ in range(4):
            with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as connection:
                connection.sendall(request)
                try:
                    while connection.recv(65536):
                        pass
                    seen.append("end")
                except ConnectionResetError:
                    seen.append("reset")
    assert seen == ["reset", "reset", "end", "end"]


def test_a_whole_answer_can_break_off(api: str) -> None:
    with ModelServer([drop(4, how="close")]) as server:
        received = part(server, api, stream=False)
    assert 0 < len(received) < 1000
    with pytest.raises(json.JSONDecodeError):
        json.loads(received)


@pytest.mark.parametrize("api", APIS)
def test_a_drop_before_the_headers(api: str) -> None:
    with ModelServer([drop(), drop(how="close"), text("third time")]) as server:
        for _ in range(2):
            with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
                ask(server, api)
        assert said(api, ask(server, api)).text == "third time"


def test_arguments_of_a_call_can_break_off() -> None:
    with ModelServer([tool("Bash", {"command": "a b c d e f g h i j"}).dropped(2, how="close")]) as server:
        received = part(server, "anthropic")
    assert b"input_json_delta" in received
    assert b"content_block_stop" not in received


def test_a_slow_answer_comes_piece_by_piece(api: str) -> None:
    with ModelServer([slow("one two three", piece_delay_s=0.05, pieces=3)]) as server:
        began = time.monotonic()
        assert said(api, ask(server, api, stream=True)).text == "one two three"
    assert time.monotonic() - began >= 0.1


def test_closing_the_server_ends_a_slow_answer() -> None:
    server = ModelServer([slow(piece_delay_s=60)])
    asking = Asking(server, "chat", stream=True)
    server.wait_for_conversations(1)
    server.close()
    asking.end()
    assert asking.error
