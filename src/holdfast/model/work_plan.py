"""The plan of a fan-out: items that become tasks. A user or an agent wrote it (`holdfast.plan/1`). Pure.

Nothing is believed: sizes are limited, ids are short words, scopes are plain paths, and dependencies are
items of the same plan without a cycle.
"""

from __future__ import annotations

import json
import re

from holdfast.model import markdown
from holdfast.model.fan_out import PLANNER
from holdfast.model.record import Record
from holdfast.model.spec import PlanItem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "holdfast.plan/1"
MAX_ITEMS, MAX_PATHS, PROMPT_BYTES = 20, 50, 16 * 1024
ID_CHARS, _TITLE_CHARS, _TEXT_CHARS = 24, 200, 200
_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
#: A path has no wildcards: what it means does not depend on other files.
_PATH = re.compile(r"[^\x00-\x1f\x7f\\*?\[\]!]{1,300}")
_NEEDED, _OPTIONAL = frozenset({"id", "title", "prompt"}), frozenset({"depends_on", "scope"})


class Plan(Record):
    """The items of a plan, or why they cannot be used."""

    goal: str = ""
    items: tuple[PlanItem, ...] = ()
    problems: tuple[str, ...] = ()


def in_report(report: str) -> Plan:
    """The plan in a report: its only block of JSON that names the schema."""
    blocks = [block.text for block in markdown.code_blocks(report) if SCHEMA in block.text]
    if len(blocks) != 1:
        return Plan(problems=(f"it must have one JSON block with the schema {SCHEMA}",))
    try:
        data: object = json.loads(blocks[0])
    except (ValueError, RecursionError) as error:
        return Plan(problems=(f"it is not valid JSON: {str(error)[:_TEXT_CHARS]}",))
    return of(data)


def of(data: object) -> Plan:
    """The plan that this data describes."""
    fields: dict[Any, Any] = data if isinstance(data, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    if fields.get("schema") != SCHEMA:
        return Plan(problems=(f"schema must be {SCHEMA}",))
    problems = [f"unknown field {str(name)[:40]!r}" for name in fields if name not in _FIELDS]
    goal = fields.get("goal", "")
    if not isinstance(goal, str) or len(goal) > _TITLE_CHARS or "\n" in goal:
        problems.append(f"goal must be one line of at most {_TITLE_CHARS} characters")
    listed: Any = fields.get("items")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_ITEMS:  # pyright: ignore
        return Plan(problems=(*problems, f"items must be a list of 1 to {MAX_ITEMS} items"))
    found = [_item(each, f"items[{at}]", problems) for at, each in enumerate(listed)]  # pyright: ignore
    items = tuple(item for item in found if item is not None)
    if len(items) == len(found):
        problems += _disorder(items)
    return Plan(problems=tuple(problems)) if problems else Plan(goal=goal, items=items)


_FIELDS = frozenset({"schema", "goal", "items"})


def _item(data: object, where: str, problems: list[str]) -> PlanItem | None:
    fields: dict[Any, Any] = data if isinstance(data, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    if not _NEEDED <= fields.keys() <= _NEEDED | _OPTIONAL:
        problems.append(f"{where} must have id, title and prompt; depends_on and scope are optional")
        return None
    before = len(problems)
    name, title, prompt = fields["id"], fields["title"], fields["prompt"]
    depends_on: Any = fields.get("depends_on", [])
    scope: Any = fields.get("scope", [])
    if not isinstance(name, str) or not _ID.fullmatch(name) or len(name) > ID_CHARS:
        problems.append(f"{where}.id must have at most {ID_CHARS} lower-case letters, digits and '-'")
    if not isinstance(title, str) or not title.strip() or len(title) > _TITLE_CHARS or "\n" in title:
        problems.append(f"{where}.title must be one line of at most {_TITLE_CHARS} characters")
    if not isinstance(prompt, str) or not prompt.strip() or _size(prompt) > PROMPT_BYTES:
        problems.append(f"{where}.prompt must be text of at most {PROMPT_BYTES} bytes")
    if not isinstance(depends_on, list) or not all(isinstance(each, str) for each in depends_on):  # pyright: ignore
        problems.append(f"{where}.depends_on must be a list of ids")
    if not isinstance(scope, list) or len(scope) > MAX_PATHS:  # pyright: ignore
        problems.append(f"{where}.scope must be a list of at most {MAX_PATHS} paths")
    elif not all(isinstance(path, str) and is_plain(path) for path in scope):  # pyright: ignore
        problems.append(f"{where}.scope must have relative paths without wildcards or '..'")
    if len(problems) > before:
        return None
    lists: Any = {"depends_on": tuple(depends_on), "scope": tuple(scope)}  # pyright: ignore
    return PlanItem(id=name, title=title.strip(), prompt=prompt, **lists)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def is_plain(path: str) -> bool:
    """Whether a path is relative, stays inside, and means only itself."""
    parts = path.removesuffix("/").split("/")
    is_inside = all(part not in ("", ".", "..") for part in parts)
    is_quoted = path.startswith("#") or path != path.strip()
    return bool(_PATH.fullmatch(path)) and is_inside and not is_quoted


def _disorder(items: tuple[PlanItem, ...]) -> list[str]:
    """Ids that are used twice, dependencies on nothing, and cycles."""
    ids = [item.id for item in items]
    problems = [f"the id {PLANNER!r} is reserved"] if PLANNER in ids else []
    problems += [f"the id {name!r} is used twice" for name in sorted({*ids}) if ids.count(name) > 1]
    problems += [
        f"{item.id} depends on {name[:40]!r}, which is no item"
        for item in items
        for name in item.depends_on
        if name not in ids
    ]
    left = {item.id: {*item.depends_on} for item in items}
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    return problems or ([f"depends_on has a cycle: {', '.join(sorted(left))}"] if left else [])
