"""Received requests: kept in memory, and logged to a JSONL file if one is given."""

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
    """The decompressed body; empty if it could not be decompressed."""
    json: dict[str, Any] | None
    """The body if it is a JSON object, otherwise None."""
    is_side: bool = False
    """Whether it asks for a title, a summary or the like; such a request takes no turn of the script."""
    turn: str = ""
    """The turn that answered it: `turns[2]`, `rules[0]`, `after`, `side`, `function`; empty if none did."""
    ended: str = ""
    """How it ended: `done`, `dropped`, `client left`, `closed`; empty while it is being answered."""

    @property
    def route(self) -> routes.Route:
        """The route of its method and path."""
        return routes.find(self.method, self.path)

    @property
    def api(self) -> routes.ApiName | None:
        """The API of its path; None for an unknown path."""
        return self.route.api

    @property
    def codec(self) -> Api | None:
        """The module that reads and writes that API."""
        return routes.APIS[self.api] if self.api else None

    @property
    def is_conversation(self) -> bool:
        """Whether it asks a model for an answer and is not a side request."""
        return self.route.operation == "generate" and not self.is_side

    @property
    def model(self) -> str:
        """The requested model."""
        return self.route.model or string((self.json or {}).get("model"))

    @property
    def streams(self) -> bool:
        """Whether the client wants a stream."""
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
    """A request with its secrets masked."""
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
    """The body as a JSON object; None if it is not one."""
    try:
        return as_object(json.loads(body))
    except (ValueError, RecursionError):
        return None


class Log:
    """The log: one JSON line when a request arrives, and a second one when it was answered."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Private, because prompts are.
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def began(self, request: ModelRequest) -> None:
        """Log a request that arrived."""
        line: dict[str, Any] = {"schema": SCHEMA, "kind": "request"}
        for name in ("number", "at", "method", "path", "headers", "is_side"):
            line[name] = getattr(request, name)
        for name, data in (("raw", request.raw), ("body", request.body)):
            if name == "body" or data != request.body:
                line |= _bytes_out(name, data)
        self._write(line)

    def ended(self, request: ModelRequest) -> None:
        """Log how a request ended."""
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
    """The requests in a log file, in order of arrival; a torn last line is ignored."""
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
