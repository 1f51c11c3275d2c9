"""Requests in memory and in the log."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.models import ModelServer, last_user_text, read_log, stall, text
from tests.integration.testing.models.conftest import ask, body, connect, path, send


@pytest.fixture
def log(place: Any) -> Path:
    return Path(place.root) / "requests.jsonl"


def test_keys_are_masked() -> None:
    secrets = {
        "Authorization": "Bearer sk-very-secret",
        "x-api-key": "sk-very-secret",
        "X-Goog-Api-Key": "sk-very-secret",
        "api-key": "sk-very-secret",
        "Cookie": "sk-very-secret",
        "X-Auth-Token": "sk-very-secret",
    }
    with ModelServer() as server:
        send(server, "/v1beta/models/m:generateContent?key=sk-very-secret&x=1", body("gemini"), **secrets)
        [request] = server.requests
    assert "sk-very-secret" not in repr(request)
    assert {request.headers[name.lower()] for name in secrets} == {"***"}
    assert request.path == "/v1beta/models/m:generateContent?key=***&x=1"
    assert request.headers["content-type"] == "application/json"


def test_a_request_knows_its_route(api: str) -> None:
    with ModelServer([text("a")]) as server:
        before = time.time()
        ask(server, api, "hello", stream=True)
        [request] = server.requests
        assert server.wait_for_end(request) == "done"
    assert (request.number, request.method, request.api, request.model) == (1, "POST", api, "some-model")
    assert (request.streams, request.is_conversation, request.turn) == (True, True, "turns[0]")
    assert before <= request.at <= time.time()
    assert request.json == body(api, "hello", stream=True)


def test_the_log_holds_what_memory_holds(log: Path) -> None:
    with ModelServer([text("a")], log=log) as server:
        ask(server, "anthropic", "hällo")
        ask(server, "chat", "title", tools=False)
        send(server, path("chat"), b"\xff\x00")
        send(server, path("chat"), b"\xff\x00", **{"Content-Encoding": "br", "Authorization": "secret"})
        expected = server.requests
    assert read_log(log) == expected
    assert last_user_text(read_log(log)[0]) == "hällo"
    assert log.stat().st_mode & 0o777 == 0o600
    assert b"secret" not in log.read_bytes()


def test_the_log_shows_a_request_that_is_not_answered_yet(log: Path) -> None:
    with ModelServer([stall()], log=log) as server, connect(server) as connection:
        connection.request("POST", path("chat"), json.dumps(body("chat")))
        server.wait_for_stall()
        [request] = read_log(log)
        assert (request.ended, last_user_text(request)) == ("", "do it")
        server.close()
    assert [request.ended for request in read_log(log)] == ["closed"]


def test_a_torn_line_of_the_log_is_left_out(log: Path) -> None:
    with ModelServer(log=log) as server:
        ask(server, "chat")
    log.write_bytes(log.read_bytes() + b'{"kind": "requ')
    assert len(read_log(log)) == 1


def test_waiting_in_vain_says_what_came_instead() -> None:
    with ModelServer() as server:
        ask(server, "chat")
        with pytest.raises(TimeoutError, match=r"2 conversation requests; .*/v1/chat/completions after"):
            server.wait_for_conversations(2, within_s=0.01)
        assert len(server.wait_for_conversations(1)) == 1
