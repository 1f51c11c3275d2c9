"""JSON or JSON lines: a list of items, an object with a list in it, or one item per line."""

from __future__ import annotations

import json

from holdfast.errors import UsageError
from holdfast.queue.engine import WEIGHTS
from holdfast.queue.work_item import CollectErrors, from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.queue.work_item import WorkItem


_SHAPE = "a list of objects, or one object per line"


def parse(
    raw: bytes,
    *,
    source: str,
    prefix: str = "",
    weights: Mapping[str, int] = WEIGHTS,
    wrong: list[str] | None = None,
) -> list[WorkItem]:
    """The ready items. Errors go to `wrong`, with the position; without it, raises UsageError."""
    items: list[WorkItem] = []
    for where, data in objects(raw, source, wrong=wrong):
        with CollectErrors(wrong):
            work = from_json(data, source=source, where=where, prefix=prefix, weights=weights)
            items += [work] if work is not None else []
    return items


def objects(raw: bytes, source: str, *, wrong: list[str] | None = None) -> list[tuple[str, Any]]:
    """The position and value of every item, unchecked."""
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
        raise UsageError(f"{source}: contains no items", hint=_SHAPE)
    return [(f"{source}: item {number}", data) for number, data in enumerate(whole, 1)]  # pyright: ignore


def _by_line(text: str, source: str, wrong: list[str] | None) -> list[tuple[str, Any]]:
    values: list[tuple[str, Any]] = []
    missed: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{source}: line {number}"
        with CollectErrors(missed if wrong is not None else None):
            values.append((where, _json(line, where)))
    if missed and not any(isinstance(data, dict) for _, data in values):
        raise UsageError(missed[0], hint=_SHAPE)  # no line is an item, so this is not JSON lines
    if wrong is not None:
        wrong += missed
    return values


def _json(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is not JSON: {error}", hint=_SHAPE) from error
