"""JSON or JSON lines: a list of items, an object with a list in it, or an item a line."""

from __future__ import annotations

import json

from holdfast.errors import UsageError
from holdfast.queue.engine import WEIGHTS
from holdfast.queue.work import Aside, from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.queue.work import Work


_SHAPE = "a list of objects, or an object a line"


def parse(
    raw: bytes,
    *,
    source: str,
    prefix: str = "",
    weights: Mapping[str, int] = WEIGHTS,
    wrong: list[str] | None = None,
) -> list[Work]:
    """The items that are ready. What is none goes into `wrong`, with its place; without one it raises UsageError."""
    found: list[Work] = []
    for where, data in objects(raw, source, wrong=wrong):
        with Aside(wrong):
            work = from_json(data, source=source, where=where, prefix=prefix, weights=weights)
            found += [work] if work is not None else []
    return found


def objects(raw: bytes, source: str, *, wrong: list[str] | None = None) -> list[tuple[str, Any]]:
    """(place, value) of every item, unchecked."""
    text = raw.decode("utf-8-sig", "replace").strip()
    if not text:
        return []
    try:
        whole: Any = json.loads(text)
    except (ValueError, RecursionError):
        return _by_line(text, source, wrong)
    if isinstance(whole, dict):
        for name in ("items", "issues", "tasks"):
            if isinstance(whole.get(name), list):  # pyright: ignore[reportUnknownMemberType]
                whole = whole[name]  # pyright: ignore[reportUnknownVariableType]
                break
        else:
            return [(source, whole)]
    if not isinstance(whole, list):
        raise UsageError(f"{source}: it holds no items", hint=_SHAPE)
    return [(f"{source}: item {number}", data) for number, data in enumerate(whole, 1)]  # pyright: ignore


def _by_line(text: str, source: str, wrong: list[str] | None) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    missed: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{source}: line {number}"
        with Aside(missed if wrong is not None else None):
            found.append((where, _json(line, where)))
    if missed and not any(isinstance(data, dict) for _, data in found):
        raise UsageError(missed[0], hint=_SHAPE)  # no line of it is an item: these are no JSON lines
    if wrong is not None:
        wrong += missed
    return found


def _json(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no JSON: {error}", hint=_SHAPE) from error
