"""`webhook`: the notice as JSON in a POST, signed if there is a secret.

The signature is `sha256=` and the hexadecimal HMAC-SHA256 of `<timestamp>.<body>`, so neither can be reused
with the other. Delivery is at least once: receivers can recognize duplicates by `X-Holdfast-Id`.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import urllib.parse

from holdfast import clock
from holdfast.errors import NotPossible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMIT_S = 15.0


def notify(notice: dict[str, Any], rule: dict[str, Any]) -> None:
    """POST the notice; a 2xx status is a delivery. Redirects are not followed: the body is for one host."""
    url = urllib.parse.urlsplit(_url(rule))
    body = json.dumps(notice, ensure_ascii=False).encode("utf-8", "backslashreplace")
    stamp = str(int(clock.now()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "holdfast",
        "X-Holdfast-Event": str(notice.get("event")),
        "X-Holdfast-Id": str(notice.get("id")),
        "X-Holdfast-Timestamp": stamp,
    }
    secret = _secret(rule)
    if secret is not None:
        headers["X-Holdfast-Signature"] = sign(secret, stamp, body)
    if url.hostname is None:
        raise NotPossible("the webhook URL has no host")
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    try:
        connection = kind(url.hostname, url.port, timeout=LIMIT_S)
        try:
            connection.request(
                "POST", (url.path or "/") + (f"?{url.query}" if url.query else ""), body, headers
            )
            answer = connection.getresponse()
            answer.read(1024)
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotPossible(f"{url.hostname} cannot be reached: {error or type(error).__name__}") from error
    if not 200 <= answer.status < 300:
        raise NotPossible(f"{url.hostname} answered {answer.status} {answer.reason}")


def sign(secret: bytes, stamp: str, body: bytes) -> str:
    """The signature, as the receiver computes it."""
    return "sha256=" + hmac.new(secret, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def _url(rule: dict[str, Any]) -> str:
    return rule["url"] if "url" in rule else _variable(rule["url_env"])


def _secret(rule: dict[str, Any]) -> bytes | None:
    if "secret_env" in rule:
        return os.fsencode(_variable(rule["secret_env"]))
    if "secret_file" not in rule:
        return None
    try:
        with open(rule["secret_file"], "rb") as file:
            return file.read().strip()
    except OSError as error:
        raise NotPossible(f"cannot read the secret {rule['secret_file']}: {error.strerror}") from error


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        # A keeper that runs as a service has a different environment than a shell.
        raise NotPossible(f"the keeper's environment has no {name}")
    return value
