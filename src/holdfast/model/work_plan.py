"""The items of a plan that an agent wrote: one JSON block in its report, `holdfast.plan/1`. Pure.

Nothing is believed: sizes are limited, ids are short words, and paths are plain. Whether the paths are in the
scope of the task is for its gate to say.
"""

from __future__ import annotations

import json
import re

from holdfast.model import markdown
from holdfast.model.record import Record

SCHEMA = "holdfast.plan/1"
MOST_ITEMS, MOST_PATHS, REQUEST_BYTES = 20, 50, 16 * 1024
_GOAL_CHARS = 300
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
#: A path has no wildcards, so that it can be compared with the scope of the task.
_PATH = re.compile(r"[^\x00-\x1f\x7f\\*?\[\]!]{1,300}")
_FIELDS = frozenset({"id", "goal", "request", "paths"})


class Item(Record):
    """One item of a plan."""

    id: str
    goal: str
    request: str
    #: Files, and directories with a final slash, that it may change.
    paths: tuple[str, ...]


class Plan(Record):
    """The items of a report, or why they cannot be used."""

    items: tuple[Item, ...] = ()
    problems: tuple[str, ...] = ()


def read(report: str) -> Plan:
    """The plan of a report."""
    blocks = [block.text for block in markdown.code_blocks(report) if SCHEMA in block.text]
    if len(blocks) != 1:
        return Plan(problems=(f"the report must have one JSON block with the schema {SCHEMA}",))
    try:
        data: object = json.loads(blocks[0])
    except (ValueError, RecursionError) as error:
        return Plan(problems=(f"the plan is not valid JSON: {str(error)[:200]}",))
    listed: object = data.get("items") if isinstance(data, dict) else None  # pyright: ignore
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_ITEMS:  # pyright: ignore
        return Plan(problems=(f"the plan must have 1 to {MOST_ITEMS} items",))
    problems: list[str] = []
    items = [_item(each, f"items[{at}]", problems) for at, each in enumerate(listed)]  # pyright: ignore
    ids = [item.id for item in items if item is not None]
    problems += [f"the id {name!r} is used twice" for name in sorted({*ids}) if ids.count(name) > 1]
    if problems:
        return Plan(problems=tuple(problems))
    return Plan(items=tuple(item for item in items if item is not None))


def _item(data: object, where: str, problems: list[str]) -> Item | None:
    if not isinstance(data, dict) or set(data) != _FIELDS:  # pyright: ignore
        problems.append(f"{where} must have exactly the fields {', '.join(sorted(_FIELDS))}")
        return None
    fields: dict[str, object] = data  # pyright: ignore
    name, goal, request, paths = (fields[key] for key in ("id", "goal", "request", "paths"))
    before = len(problems)
    if not isinstance(name, str) or not _ID.fullmatch(name):
        problems.append(f"{where}.id must have at most 31 lower-case letters, digits and '-'")
    if not isinstance(goal, str) or not goal.strip() or len(goal) > _GOAL_CHARS or "\n" in goal:
        problems.append(f"{where}.goal must be one line of at most {_GOAL_CHARS} characters")
    if not isinstance(request, str) or not request.strip() or not _fits(request):
        problems.append(f"{where}.request must be text of at most {REQUEST_BYTES} bytes")
    if not isinstance(paths, list) or not 1 <= len(paths) <= MOST_PATHS:  # pyright: ignore
        problems.append(f"{where}.paths must have 1 to {MOST_PATHS} paths")
    elif not all(isinstance(path, str) and is_plain(path) for path in paths):  # pyright: ignore
        problems.append(f"{where}.paths must be relative paths without wildcards or '..'")
    if len(problems) > before:
        return None
    return Item(id=str(name), goal=str(goal), request=str(request), paths=tuple(paths))  # pyright: ignore


def _fits(text: str) -> bool:
    return len(text.encode("utf-8", "surrogatepass")) <= REQUEST_BYTES


def is_plain(path: str) -> bool:
    """Whether a path is relative, stays inside, and means only itself."""
    parts = path.removesuffix("/").split("/")
    is_inside = all(part not in ("", ".", "..") for part in parts)
    return (
        bool(_PATH.fullmatch(path)) and is_inside and not path.startswith(("#", " ")) and path == path.strip()
    )
