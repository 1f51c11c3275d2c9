"""Requests to an ntfy server: publish a message, read a topic as a stream."""

from __future__ import annotations

import http.client
import os
import urllib.parse

from holdfast.errors import NotPossible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

#: The delivery of a notice has 30 s.
LIMIT_S = 15.0
#: The server sends a line every 45 s.
STREAM_LIMIT_S = 150.0


def token(name: str) -> str:
    """The access token in the variable `name`; empty without a name. Raises NotPossible, without the token:
    errors are logged."""
    if not name:
        return ""
    value = os.environ.get(name, "").strip()
    if not value:
        # A keeper that runs as a service has a different environment than a shell.
        raise NotPossible(f"the keeper's environment has no {name}")
    if not value.isascii() or not value.isprintable() or " " in value:
        raise NotPossible(f"{name} is not an access token: it has characters that no token has")
    return value


def publish(server: str, body: bytes, token: str) -> None:
    """Publish a message in JSON. Raises NotPossible."""
    headers = {"Content-Type": "application/json", **_headers(token)}
    connection, answer = _ask(server, "POST", "/", body=body, headers=headers, limit_s=LIMIT_S)
    try:
        answer.read(1024)
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(server, error) from error
    finally:
        connection.close()


def subscribe(server: str, topic: str, *, since: str, token: str) -> tuple[HTTPConnection, HTTPResponse]:
    """Messages of a topic as they come, one JSON object per line: first those after `since`, a message id or
    `all`, that the server still has. The caller closes the connection. Raises NotPossible."""
    path = f"/{topic}/json?since={urllib.parse.quote(since)}"
    return _ask(server, "GET", path, body=None, headers=_headers(token), limit_s=STREAM_LIMIT_S)


def _headers(token: str) -> dict[str, str]:
    return {"User-Agent": "holdfast", **({"Authorization": f"Bearer {token}"} if token else {})}


def _ask(
    server: str, method: str, path: str, *, body: bytes | None, headers: dict[str, str], limit_s: float
) -> tuple[HTTPConnection, HTTPResponse]:
    """Redirects are not followed: token and text are for one host."""
    url = urllib.parse.urlsplit(server)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=limit_s)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException, ValueError) as error:
        connection.close()
        raise _unreachable(server, error) from error
    if not 200 <= answer.status < 300:
        connection.close()
        hint = "is the token right, and may it use the topic?" if answer.status in (401, 403) else ""
        raise NotPossible(f"{url.netloc} answered {answer.status} {answer.reason[:80]}", hint=hint)
    return connection, answer


def _unreachable(server: str, error: Exception) -> NotPossible:
    host = urllib.parse.urlsplit(server).netloc
    return NotPossible(f"{host} cannot be reached: {error or type(error).__name__}")
