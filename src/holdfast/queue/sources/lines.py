"""JSON or JSON lines: a list of items, an object with a list in it, or an item a line."""

from __future__ import annotations

import json

from holdfast.errors import UsageError
from holdfast.queue.engine import WEIGHTS
from holdfast.queue.work import from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.queue.work import Work


def parse(raw: bytes, *, source: str, prefix: str = "", weights: Mapping[str, int] = WEIGHTS) -> list[Work]:
    """The items that are ready. Raises UsageError with the place of what is none."""
    made = [
        from_json(data, source=source, where=where, prefix=prefix, weights=weights)
        for where, data in objects(raw, source)
    ]
    return [work for work in made if work is not None]


def objects(raw: bytes, source: str) -> list[tuple[str, Any]]:
    """(place, value) of every item, unchecked."""
    text = raw.decode("utf-8-sig", "replace").strip()
    if not text:
        return []
    try:
        whole: Any = json.loads(text)
    except (ValueError, RecursionError):
        return _by_line(text, source)
    if isinstance(whole, dict):
        for name in ("items", "issues", "tasks"):
            if isinstance(whole.get(name), list):  # pyright: ignore[reportUnknownMemberType]
                whole = whole[name]  # pyright: ignore[reportUnknownVariableType]
                break
        else:
            return [(source, whole)]
    if not isinstance(whole, list):
        raise UsageError(f"{source}: it holds no items", hint="a list of objects, or an object a line")
    return [(f"{source}: item {number}", data) for number, data in enumerate(whole, 1)]  # pyright: ignore


def _by_line(text: str, source: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append((f"{source}: line {number}", json.loads(line)))
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"{source}: line {number} is no JSON: {error}", hint="a list of objects, or an object a line"
            ) from error
    return found
