"""Values of a request: the JSON of its body, the numbers of its query. Nothing in them is trusted."""

from __future__ import annotations

import json

from starlette.requests import ClientDisconnect

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from starlette.requests import Request

_TEXT_CHARS = 32 * 1024
#: Digits of a number that fits in 63 bits.
_DIGITS = 18


async def json_object(request: Request) -> dict[str, Any]:
    """The body. Raises UsageError if it is not a JSON object."""
    try:
        body: Any = json.loads(await request.body())
    except (ValueError, RecursionError, ClientDisconnect):
        body = None
    if not isinstance(body, dict):
        raise UsageError("the body is not a JSON object")
    return body  # pyright: ignore[reportUnknownVariableType]


def text(body: dict[str, Any], name: str) -> str:
    """A text of the body. Raises UsageError if it is something else, or too long."""
    value: Any = body.get(name)
    if not isinstance(value, str) or len(value) > _TEXT_CHARS or "\0" in value:
        raise UsageError(f"{name} is not a text of at most {_TEXT_CHARS} characters")
    return value


def parse_number(value: str) -> int | None:
    """A number that is not negative; None if the text is something else."""
    return int(value) if value.isascii() and value.isdecimal() and len(value) <= _DIGITS else None
