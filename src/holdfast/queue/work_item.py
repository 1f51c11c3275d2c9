"""A work item of a source: an issue, a bead, a file. The queue makes a task from it."""

from __future__ import annotations

import os

from holdfast import clock, ids, quick_json
from holdfast.errors import UsageError
from holdfast.model.permissions import PROFILES
from holdfast.model.record import Record
from holdfast.queue.engine import WEIGHTS, parse_priority

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_REST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
#: Field → other names that sources use.
_NAMES = {
    "prompt": ("body", "description", "details"),
    "title": ("name", "task_name"),
    "after": ("depends_on", "dependencies"),
    "project": ("project_dir", "cwd"),
}
#: Bootstraps that are no file: ours, and none.
BOOTSTRAPS = ("default", "none")
#: States of items that are being worked on, or are not to be worked on.
_NOT_READY = frozenset({"closed", "done", "in_progress", "blocked", "completed", "cancelled", "deferred"})


class WorkItem(Record):
    """One work item, checked."""

    #: The task id: always the same for the same item.
    task_id: str
    #: The id that the source uses.
    key: str
    title: str
    prompt: str
    priority: int = WEIGHTS["medium"]
    pool: str = "default"
    agent: str | None = None
    model: str | None = None
    permissions: str | None = None
    project: str | None = None
    command: list[str] | None = None
    #: Commands that must pass on a clean checkout of the work.
    accept: tuple[str, ...] = ()
    #: Task ids.
    after: tuple[str, ...] = ()
    not_before: str | None = None
    #: The source's name of the project; `{{RIG}}` in the bootstrap.
    rig: str = ""
    #: A template for the agent's system prompt: a file, `default` or `none`.
    bootstrap: str = "default"
    #: Options of the agent, and variables of the bootstrap, as KEY=VALUE.
    options: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    source: str = ""
    url: str = ""


def from_json(
    data: Any, *, source: str, where: str, prefix: str = "", weights: Mapping[str, int] = WEIGHTS
) -> WorkItem | None:
    """The item in a JSON object; None if the source says that it is not ready. Raises UsageError."""
    if not isinstance(data, dict):
        raise UsageError(f"{where}: an item must be an object, not {type(data).__name__}", hint=EXAMPLE)
    fields: dict[str, Any] = data  # pyright: ignore[reportUnknownVariableType]
    try:
        quick_json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UsageError(f"{where}: a text is not valid Unicode", hint=EXAMPLE) from None
    if str(fields.get("status", "")).lower() in _NOT_READY:
        return None
    title = _text(fields, "title", where)
    prompt = _text(fields, "prompt", where) or title
    key = str(fields.get("id") or "").strip() or title
    if not key:
        raise UsageError(f"{where}: an item needs an id or a title", hint=EXAMPLE)
    try:
        return WorkItem(
            task_id=task_id(key, prefix),
            key=key,
            title=title or key,
            prompt=prompt or key,
            priority=_priority(fields.get("priority"), weights),
            pool=_text(fields, "pool", where) or "default",
            agent=_text(fields, "agent", where) or None,
            model=_text(fields, "model", where) or None,
            permissions=_permissions(fields, where),
            project=_text(fields, "project", where) or None,
            command=_command(fields.get("command"), where),
            accept=_accept(fields.get("accept"), where),
            after=tuple(task_id(name, prefix) for name in _list(fields, "after", where)),
            not_before=_time(fields.get("not_before")),
            rig=_text(fields, "rig", where),
            bootstrap=_text(fields, "bootstrap", where) or "default",
            options=_pairs(fields, "options", where),
            variables=_pairs(fields, "variables", where),
            source=source,
            url=_text(fields, "url", where),
        )
    except ValueError as error:
        raise UsageError(f"{where}: {error}", hint=EXAMPLE) from error


#: An example for hints.
EXAMPLE = 'for example {"id": "issue-123", "title": "Fix the tests", "priority": "high"}'


class CollectErrors:
    """`with CollectErrors(wrong):` around one item: a UsageError is added to the list.

    Without a list, it is raised.
    """

    def __init__(self, wrong: list[str] | None) -> None:
        self._wrong = wrong

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if self._wrong is None or not isinstance(error, UsageError):
            return False
        self._wrong.append(str(error))
        return True


def task_id(key: str, prefix: str = "") -> str:
    """A task id that is always the same for a key, such as `gh-123`. Invalid characters become `-`."""
    name = "".join(char if char in _REST else "-" for char in f"{prefix}{key}").lstrip("._-")[:64]
    return ids.check_task_id(name or "item")


def rank(work: WorkItem, order: Sequence[str]) -> int:
    """The position of the item's rig or project in the setting `project_order`; last if it is not there."""
    names = {work.rig, work.project, os.path.basename((work.project or "").rstrip("/"))}
    return next((at for at, name in enumerate(order) if name in names), len(order))


def parse_time(text: str, *, now: float) -> str:
    """Parse `2026-01-31T12:00:00Z`, with an offset such as `+02:00`, a local date or time, the next `22:00`,
    or `+90m` from now.

    Returns it in the format used in files. Raises ValueError.
    """
    text = text.strip()
    at = clock.next_local(text, now)
    if at is not None:
        return clock.iso(at)
    if text.startswith("+"):
        return clock.iso(now + clock.parse_duration(text[1:], needs_unit=True))
    from datetime import datetime  # slow to import, and rarely needed

    try:
        return clock.iso(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError):
        raise ValueError(f"not a time: {text!r} (write 22:00, 2026-01-31 22:00, or +90m from now)") from None


def _permissions(fields: dict[str, Any], where: str) -> str | None:
    profile = _text(fields, "permissions", where) or None
    if profile is not None and profile not in PROFILES:
        raise UsageError(f"{where}: permissions must be one of {', '.join(PROFILES)}", hint=EXAMPLE)
    return profile


def _time(value: Any) -> str | None:
    return None if value in (None, "") else parse_time(str(value), now=clock.now())


def _priority(value: Any, weights: Mapping[str, int]) -> int:
    return weights["medium"] if value is None else parse_priority(value, weights)


def _text(fields: dict[str, Any], name: str, where: str) -> str:
    for known in (name, *_NAMES.get(name, ())):
        value = fields.get(known)
        if value is not None and not isinstance(value, (str, int, float)):
            raise UsageError(f"{where}: {known} must be a string, not {type(value).__name__}", hint=EXAMPLE)
        if value not in (None, ""):
            return _plain(str(value), f"{where}: {known}")
    return ""


def _plain(text: str, where: str) -> str:
    """Refuse NUL, which cannot be passed to a program."""
    if "\0" in text:
        raise UsageError(f"{where} contains a NUL character", hint="commands and prompts cannot contain it")
    return text


def _list(fields: dict[str, Any], name: str, where: str) -> list[str]:
    for known in (name, *_NAMES.get(name, ())):
        value = fields.get(known)
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, list):
            return [str(part) for part in value if isinstance(part, (str, int))]  # pyright: ignore
        if value is not None:
            raise UsageError(f"{where}: {known} must be a list of ids", hint=EXAMPLE)
    return []


def _pairs(fields: dict[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = fields.get(name)
    if value is None:
        return ()
    if not isinstance(value, dict) or not all(isinstance(each, (str, int, float)) for each in value.values()):  # pyright: ignore
        raise UsageError(f"{where}: {name} must be an object of strings", hint=EXAMPLE)
    return tuple(_plain(f"{key}={each}", f"{where}: {name}") for key, each in value.items())  # pyright: ignore


def _command(value: Any, where: str) -> list[str] | None:
    if value is None:
        return None
    if isinstance(value, str) and value.strip():
        return ["sh", "-c", _plain(value, f"{where}: command")]
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):  # pyright: ignore
        return [_plain(str(word), f"{where}: command") for word in value]  # pyright: ignore
    raise UsageError(f"{where}: command must be a string for the shell, or a list of strings", hint=EXAMPLE)


def _accept(value: Any, where: str) -> tuple[str, ...]:
    listed: Any = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(listed, list) or not all(isinstance(text, str) and text.strip() for text in listed):  # pyright: ignore
        raise UsageError(f"{where}: accept must be a command line, or a list of them", hint=EXAMPLE)
    return tuple(_plain(str(text), f"{where}: accept") for text in listed)  # pyright: ignore
