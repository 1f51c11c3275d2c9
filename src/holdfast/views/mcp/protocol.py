"""Messages of the Model Context Protocol: versions, errors, and the fields that a version adds to results."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Versions that begin with `initialize`, the newest last; and those whose requests carry their version.
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = ("2026-07-28",)
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
NO_RESOURCE, NO_VERSION = -32002, -32022
_PREFIX = "io.modelcontextprotocol/"


class RpcError(Exception):
    """A request that is answered with an error of the protocol, not with the result of a tool."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            self.body["data"] = data


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is an object, otherwise an empty one: what is missing in it is then reported."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def negotiated_version(asked: object) -> str:
    """The version for a client that asks for one in `initialize`."""
    return asked if isinstance(asked, str) and asked in HANDSHAKE else HANDSHAKE[-1]


def carries_version(params: dict[str, Any]) -> bool:
    """Whether a request names its version, as every request does from 2026-07-28 on."""
    return f"{_PREFIX}protocolVersion" in as_object(params.get("_meta"))


def check_version(params: dict[str, Any]) -> None:
    """Raise RpcError if a request carries a version that is not one of ours."""
    if not carries_version(params):
        return
    meta = as_object(params.get("_meta"))
    version = meta[f"{_PREFIX}protocolVersion"]
    if not isinstance(version, str) or f"{_PREFIX}clientCapabilities" not in meta:
        raise RpcError(
            INVALID_PARAMS, f"_meta needs {_PREFIX}protocolVersion and {_PREFIX}clientCapabilities"
        )
    if version not in MODERN:
        data = {"supported": [*MODERN, *reversed(HANDSHAKE)], "requested": version}
        raise RpcError(NO_VERSION, f"unsupported protocol version {version}", data)


def with_version_fields(result: dict[str, Any], method: str, server: dict[str, str]) -> dict[str, Any]:
    """A result with the fields that it has from 2026-07-28 on. Lists of tools never change."""
    meta = {**as_object(result.get("_meta")), f"{_PREFIX}serverInfo": server}
    added: dict[str, Any] = {"resultType": "complete", "_meta": meta}
    if method != "tools/call":
        is_fixed = method in ("tools/list", "server/discover")
        added |= {"ttlMs": 3_600_000 if is_fixed else 0, "cacheScope": "private"}
    return result | added


def progress_token(params: dict[str, Any]) -> str | int | None:
    """What the client wants progress under; None if it does not."""
    token = as_object(params.get("_meta")).get("progressToken")
    return token if isinstance(token, (str, int)) else None
