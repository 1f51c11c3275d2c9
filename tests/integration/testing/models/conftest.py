"""A plain client of every API, over real sockets and with a deadline on each of them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.testing.models import ModelServer

LIMIT_S = 10.0
APIS = ("anthropic", "responses", "chat", "gemini")
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS: dict[str, Any] = {
    "anthropic": [{"name": "Bash", "input_schema": SCHEMA}],
    "responses": [{"type": "function", "name": "Bash", "parameters": SCHEMA}],
    "chat": [{"type": "function", "function": {"name": "Bash", "parameters": SCHEMA}}],
    "gemini": [{"functionDeclarations": [{"name": "Bash", "parametersJsonSchema": SCHEMA}]}],
}


def body(api: str, prompt: str = "do it", *, stream: bool = False, tools: bool = True) -> dict[str, Any]:
    """A request as a client with one tool makes it."""
    given: dict[str, Any] = {"tools": TOOLS[api]} if tools else {}
    if api == "gemini":
        return {"contents": [{"role": "user", "parts": [{"text": prompt}]}], **given}
    messages = [{"role": "user", "content": prompt}]
    key = "input" if api == "responses" else "messages"
    given |= {"model": "some-model", key: messages, "stream": stream}
    if api == "chat" and stream:
        given["stream_options"] = {"include_usage": True}
    return given


def path(api: str, *, stream: bool = False) -> str:
    if api == "gemini":
        operation = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/models/some-model:{operation}"
    return {
        "anthropic": "/v1/messages?beta=true",
        "responses": "/v1/responses",
        "chat": "/v1/chat/completions",
    }[api]


@dataclass
class Said:
    """What a client makes of an answer."""

    text: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    stop: str = ""
    usage: tuple[int, int, int] = (0, 0, 0)
    """Input, output, read from the cache."""
    ids: list[str] = field(default_factory=list)


@dataclass
class Got:
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def events(self) -> list[dict[str, Any]]:
        blocks = self.data.decode().split("\n\n")
        lines = [line for block in blocks for line in block.split("\n") if line.startswith("data: ")]
        return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


@contextmanager
def connect(server: ModelServer) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_S)
    try:
        yield connection
    finally:
        connection.close()


def send(server: ModelServer, target: str, value: Any, **headers: str) -> Got:
    """One POST on its own connection."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with connect(server) as connection:
        connection.request("POST", target, data, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        return Got(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


def ask(
    server: ModelServer, api: str, prompt: str = "do it", *, stream: bool = False, tools: bool = True
) -> Got:
    return send(server, path(api, stream=stream), body(api, prompt, stream=stream, tools=tools))


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[True, False], ids=["stream", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return request.param
