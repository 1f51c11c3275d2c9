"""A work item of somewhere else: an issue, a bead, a file. What a task is made of when the queue takes it in."""

from __future__ import annotations

import os

from holdfast import clock, ids
from holdfast.errors import UsageError
from holdfast.model.record import Record
from holdfast.queue.engine import WEIGHTS, parse_priority

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_REST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
#: Field → other names that sources use for it.
_NAMES = {
    "prompt": ("body", "description", "details"),
    "title": ("name", "task_name"),
    "after": ("depends_on", "dependencies"),
    "project": ("project_dir", "cwd"),
}
#: States of a source's item that somebody works on already, or nobody ever will.
_NOT_READY = frozenset({"closed", "done", "in_progress", "blocked", "completed", "cancelled", "deferred"})


class Work(Record):
    """One work item, checked."""

    #: The task's id: the same for the same item, whenever it is read.
    task_id: str
    #: The id and the place where the source knows it.
    key: str
    title: str
    prompt: str
    priority: int = WEIGHTS["medium"]
    pool: str = "default"
    agent: str | None = None
    model: str | None = None
    project: str | None = None
    command: list[str] | None = None
    #: Task ids.
    after: tuple[str, ...] = ()
    not_before: str | None = None
    #: The project as the source calls it; `{{RIG}}` in the bootstrap.
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
) -> Work | None:
    """The item that a JSON object describes; None when the source says that it is not ready. Raises UsageError."""
    if not isinstance(data, dict):
        raise UsageError(f"{where}: an item is an object, not {type(data).__name__}", hint=EXAMPLE)
    given: dict[str, Any] = data  # pyright: ignore[reportUnknownVariableType]
    if str(given.get("status", "")).lower() in _NOT_READY:
        return None
    title = _text(given, "title", where)
    prompt = _text(given, "prompt", where) or title
    key = str(given.get("id") or "").strip() or title
    if not key:
        raise UsageError(f"{where}: an item needs an id or a title", hint=EXAMPLE)
    try:
        return Work(
            task_id=task_id(key, prefix),
            key=key,
            title=title or key,
            prompt=prompt or key,
            priority=_priority(given.get("priority"), weights),
            pool=_text(given, "pool", where) or "default",
            agent=_text(given, "agent", where) or None,
            model=_text(given, "model", where) or None,
            project=_text(given, "project", where) or None,
            command=_command(given.get("command"), where),
            after=tuple(task_id(name, prefix) for name in _list(given, "after", where)),
            not_before=_time(given.get("not_before")),
            rig=_text(given, "rig", where),
            bootstrap=_text(given, "bootstrap", where) or "default",
            options=_pairs(given, "options", where),
            variables=_pairs(given, "variables", where),
            source=source,
            url=_text(given, "url", where),
        )
    except ValueError as error:
        raise UsageError(f"{where}: {error}", hint=EXAMPLE) from error


#: An item as people write it.
EXAMPLE = 'for example {"id": "issue-123", "title": "Fix the tests", "priority": "high"}'


class Aside:
    """`with Aside(wrong):` around one item: where it is none, the error is put into the list, and the others go on. Without a
    list the error is raised."""

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
    """A task id that is the same for the same key: `gh-123`. What an id cannot hold becomes `-`."""
    kept = "".join(char if char in _REST else "-" for char in f"{prefix}{key}").lstrip("._-")[:64]
    return ids.check_task_id(kept or "item")


def rank(work: Work, order: Sequence[str]) -> int:
    """Where the item's rig or project stands in the setting `project_order`; behind all where it does not."""
    names = {work.rig, work.project, os.path.basename((work.project or "").rstrip("/"))}
    return next((at for at, name in enumerate(order) if name in names), len(order))


def parse_time(text: str, *, now: float) -> str:
    """`2026-01-31T12:00:00Z`, or with `+02:00`, or a date or a time of the clock here, or `+90m` from now; as it stands in files.
    Raises ValueError."""
    text = text.strip()
    if text.startswith("+"):
        return clock.iso(now + clock.parse_duration(text[1:]))
    from datetime import datetime  # dear to load, and few ask for a time

    try:
        return clock.iso(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError):
        raise ValueError(f"not a time: {text!r} (write 2026-01-31T12:00:00Z, or +90m from now)") from None


def _time(value: Any) -> str | None:
    return None if value in (None, "") else parse_time(str(value), now=clock.now())


def _priority(value: Any, weights: Mapping[str, int]) -> int:
    return weights["medium"] if value is None else parse_priority(value, weights)


def _text(given: dict[str, Any], name: str, where: str) -> str:
    for known in (name, *_NAMES.get(name, ())):
        value = given.get(known)
        if value is not None and not isinstance(value, (str, int, float)):
            raise UsageError(f"{where}: {known} is a text, not {type(value).__name__}", hint=EXAMPLE)
        if value not in (None, ""):
            return _plain(str(value), f"{where}: {known}")
    return ""


def _plain(text: str, where: str) -> str:
    """A program that is given a NUL cannot even be started."""
    if "\0" in text:
        raise UsageError(f"{where} holds a NUL character", hint="it can be in no command and in no prompt")
    return text


def _list(given: dict[str, Any], name: str, where: str) -> list[str]:
    for known in (name, *_NAMES.get(name, ())):
        value = given.get(known)
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, list):
            return [str(part) for part in value if isinstance(part, (str, int))]  # pyright: ignore
        if value is not None:
            raise UsageError(f"{where}: {known} is a list of ids", hint=EXAMPLE)
    return []


def _pairs(given: dict[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = given.get(name)
    if value is None:
        return ()
    if not isinstance(value, dict) or not all(isinstance(each, (str, int, float)) for each in value.values()):  # pyright: ignore
        raise UsageError(f"{where}: {name} is an object of texts", hint=EXAMPLE)
    return tuple(_plain(f"{key}={each}", f"{where}: {name}") for key, each in value.items())  # pyright: ignore


def _command(value: Any, where: str) -> list[str] | None:
    if value is None:
        return None
    if isinstance(value, str) and value.strip():
        return ["sh", "-c", _plain(value, f"{where}: command")]
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):  # pyright: ignore
        return [_plain(str(word), f"{where}: command") for word in value]  # pyright: ignore
    raise UsageError(f"{where}: command is a text for the shell, or a list of words", hint=EXAMPLE)
