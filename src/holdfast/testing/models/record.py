"""What the server was sent: requests in memory and, where a file is given, line by line on disk."""

from __future__ import annotations

import base64
import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.testing.agent.kinds import as_object
from holdfast.testing.models import routes
from holdfast.testing.models.shapes import string

if TYPE_CHECKING:
    from holdfast.testing.models.wire import Api

SCHEMA = "holdfast.model-log/1"
MASK = "***"
_SECRET_HEADER = re.compile(r"authorization|cookie|token$|key$|secret", re.IGNORECASE)
_SECRET_QUERY = re.compile(r"(?<=[?&])((?:api_)?key|token)=[^&]*", re.IGNORECASE)


@dataclass(kw_only=True)
class ModelRequest:
    """One request. Keys in headers and in the path are masked; the body is as it was sent."""

    number: int
    """1 for the first request of the server."""
    at: float
    """Seconds since the epoch."""
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes
    """The body as it came over the wire, without transfer encoding."""
    body: bytes
    """The body, decompressed; empty where that was not possible."""
    json: dict[str, Any] | None
    """The body where it is a JSON object."""
    is_side: bool = False
    """A request for a title, a summary or the like, which takes no turn of the script."""
    turn: str = ""
    """Which turn was the answer: `turns[2]`, `rules[0]`, `after`, `side`, `function`; else empty."""
    ended: str = ""
    """How it went: `done`, `dropped`, `client left`, `closed`; empty while it is being answered."""

    @property
    def route(self) -> routes.Route:
        """What its method and path ask for."""
        return routes.find(self.method, self.path)

    @property
    def api(self) -> routes.ApiName | None:
        """Whose API it is; None for another path."""
        return self.route.api

    @property
    def codec(self) -> Api | None:
        """How that API is read and written."""
        return routes.APIS[self.api] if self.api else None

    @property
    def is_conversation(self) -> bool:
        """Asks a model for an answer, and is no side request."""
        return self.route.operation == "generate" and not self.is_side

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self.route.model or string((self.json or {}).get("model"))

    @property
    def streams(self) -> bool:
        """Whether the answer is to be streamed."""
        streams = self.route.streams
        return (self.json or {}).get("stream") is True if streams is None else streams


def new_request(
    *,
    number: int,
    at: float,
    method: str,
    path: str,
    headers: list[tuple[str, str]],
    raw: bytes,
    body: bytes,
) -> ModelRequest:
    """A request as it is recorded."""
    return ModelRequest(
        number=number,
        at=at,
        method=method,
        path=_SECRET_QUERY.sub(rf"\1={MASK}", path),
        headers={name.lower(): MASK if _SECRET_HEADER.search(name) else value for name, value in headers},
        raw=raw,
        body=body,
        json=parse(body),
    )


def parse(body: bytes) -> dict[str, Any] | None:
    """A body as a JSON object; None where it is none."""
    try:
        return as_object(json.loads(body))
    except (ValueError, RecursionError):
        return None


class Log:
    """The JSONL file: a line when a request has come in, a second one when it has been answered."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Prompts are private, and a body may hold more than anyone thought.
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def began(self, request: ModelRequest) -> None:
        """A request has come in."""
        line: dict[str, Any] = {"schema": SCHEMA, "kind": "request"}
        for name in ("number", "at", "method", "path", "headers", "is_side"):
            line[name] = getattr(request, name)
        for name, data in (("raw", request.raw), ("body", request.body)):
            if name == "body" or data != request.body:
                line |= _bytes_out(name, data)
        self._write(line)

    def ended(self, request: ModelRequest) -> None:
        """It has been answered."""
        line = {"kind": "end", "number": request.number, "turn": request.turn, "ended": request.ended}
        self._write(line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _write(self, line: dict[str, Any]) -> None:
        data = memoryview(json.dumps(line).encode() + b"\n")
        while data:
            data = data[os.write(self._fd, data) :]


def read_log(path: str | os.PathLike[str]) -> list[ModelRequest]:
    """The requests in a log file, in the order in which they came; a torn last line is left out."""
    found: dict[int, ModelRequest] = {}
    with open(path, "rb") as file:
        for text in file:
            line = parse(text)
            if line is None:
                continue
            number: int = line["number"]
            if line["kind"] == "end":
                found[number].turn, found[number].ended = line["turn"], line["ended"]
                continue
            body = _bytes_in("body", line)
            names = ("number", "at", "method", "path", "headers", "is_side")
            fields = {name: line[name] for name in names}
            raw = _bytes_in("raw", line) if line.keys() & {"raw", "raw_base64"} else body
            found[number] = ModelRequest(**fields, raw=raw, body=body, json=parse(body))
    return list(found.values())


def _bytes_out(name: str, data: bytes) -> dict[str, str]:
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _bytes_in(name: str, line: dict[str, Any]) -> bytes:
    if f"{name}_base64" in line:
        return base64.b64decode(line[f"{name}_base64"])
    return line[name].encode()
