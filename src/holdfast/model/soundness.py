"""Whether a manifest that was read from disk makes sense: an agent may have replaced it. Pure."""

from __future__ import annotations

from itertools import repeat

from holdfast.model.status import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The state that lists show for a packet that cannot be read; no task has it.
UNREADABLE = "unreadable"
_STATUSES = frozenset(str(status) for status in Status)
_TEXT, _NUMBER, _TABLE = (str,), (int, float), (dict,)
_NONE = type(None)
#: Fields that lists and loops use, with their types. Those not listed may be anything.
_REQUIRED = {"agent": _TEXT}
#: Fields that older manifests may lack, but that are never null.
_NEVER_NULL: dict[str, tuple[type, ...]] = {
    "project_dir": _TEXT,
    "run": _NUMBER,
    "attempt": _NUMBER,
    "retry_count": _NUMBER,
    "total_retries": _NUMBER,
}
_OPTIONAL: dict[str, tuple[type, ...]] = {
    "task_name": _TEXT,
    "goal": _TEXT,
    "status_reason": _TEXT,
    "status_cause": _TEXT,
    "model": _TEXT,
    "stage": _TEXT,
    "session_id": _TEXT,
    "active_s": _NUMBER,
    "pid": _NUMBER,
    "exit_code": _NUMBER,
    "usage": _TABLE,
    "interrupt": _TABLE,
    "progress": _TABLE,
    "runner": _TABLE,
    "heartbeat": _TABLE,
    "sandbox": _TABLE,
    "applied": _TABLE,
    "labels": _TABLE,
    "stopping": _TABLE,
    "ci": _TABLE,
    "stages": (list,),
    "concerns": (list,),
    "denied": (list,),
    "denied_readers": (list,),
    "answers": (list,),
    "notes": (list,),
    "amended": (list,),
    "items": (list,),
    "repairs": (list,),
    "paid_calls": _NUMBER,
    "accept": _NUMBER,
    "asked_s": _NUMBER,
    "waited_s": _NUMBER,
    "journal_bytes": _NUMBER,
    "exit_signal": _NUMBER,
    "permissions": _TEXT,
    "session_name": _TEXT,
    "tmpdir": _TEXT,
    "verdict": _TEXT,
    "waiting_for": _TEXT,
    "parent": _TEXT,
    "last_words": _TEXT,
    "over_budget": _TEXT,
    "output_tail": _TEXT,
    "abandon_reason": _TEXT,
}
#: Tables of plain values, and lists of texts.
_PLAIN_TABLES = (
    "interrupt",
    "progress",
    "runner",
    "heartbeat",
    "sandbox",
    "applied",
    "labels",
    "stopping",
    "ci",
)
_TEXT_LISTS = ("denied_readers", "notes", "items")
#: Lists of tables, with the texts and times that each has, and what else may be in it.
_ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[type, ...]]] = {
    "stages": (("name", "state", "agent"), (), (str, int, float, type(None), dict)),
    "concerns": (("stage", "text"), (), (str, int, float, type(None), list, dict)),
    "denied": (("stage", "tools", "allow"), (), (str,)),
    "answers": (("question", "answer", "how"), ("at",), (str,)),
    "repairs": (("stage", "failed_stage", "reason"), ("at",), (str,)),
}
_TIMES = (
    "finished_at", "begun_at", "wake_at", "last_progress_at", "last_checked_at", "deadline_at",
    "status_updated_at", "abandoned_at", "run_started_at",
)  # fmt: skip
#: Values in the tables above.
_NUMBERS = (int, float, _NONE)
_PLAIN = (str, *_NUMBERS)
#: More than any number of a manifest. Larger ones, and NaN, cannot be rounded to be shown.
_MOST = 1e30


#: The kinds of every field that has some, null included: one look per field of a manifest.
_KINDS: dict[str, tuple[type, ...]] = {
    **{name: (*kinds, _NONE) for name, kinds in _OPTIONAL.items()},
    **dict.fromkeys(_TIMES, (str, _NONE)),
    **_NEVER_NULL,
    **_REQUIRED,
}
#: Of a row: null stands for what a manifest lacks, and a packet that cannot be read has one, too.
_ROW_TIMES = frozenset((*_TIMES, "started_at"))
_ROW_STATUSES = _STATUSES | {UNREADABLE}
_ROW_KINDS: dict[str, frozenset[type]] = {
    **{
        name: frozenset((*kinds, _NONE, *((bool,) if int in kinds else ()))) for name, kinds in _KINDS.items()
    },
    **dict.fromkeys(_TIMES, frozenset((str, _NONE))),
    **dict.fromkeys(("status", "started_at", "agent", "task_id"), frozenset((str,))),
}
_has: Callable[[dict[str, Any], str], bool] = dict.__contains__  # pyright: ignore
_get: Callable[[dict[str, Any], str], Any] = dict.get  # pyright: ignore
_NUMBER_FIELDS = tuple(name for name, kinds in {**_NEVER_NULL, **_OPTIONAL}.items() if kinds is _NUMBER)


def is_sound(manifest: dict[str, Any]) -> bool:
    """Whether every reader can use a manifest. Written for speed: a rebuilt index asks it of each task."""
    get, kinds = manifest.get, _KINDS.get
    if not (
        isinstance(get("status"), str)  # a list cannot be looked up
        and manifest["status"] in _STATUSES
        and is_time(get("started_at"))
        and "agent" in manifest
    ):
        return False
    for name, value in manifest.items():
        if not isinstance(value, kinds(name, object)):
            return False
    for name in _TIMES:
        if (value := get(name)) is not None and not is_time(value):
            return False
    for name in _NUMBER_FIELDS:
        if (value := get(name)) and not -_MOST < value < _MOST:
            return False
    for name in _PLAIN_TABLES:
        if (value := get(name)) and not _has_only(value, _PLAIN):
            return False
    for name in _TEXT_LISTS:
        if (value := get(name)) and not all(isinstance(each, str) for each in value):
            return False
    for name, shape in _ROWS.items():
        if (value := get(name)) and not all(_is_row(each, *shape) for each in value):
            return False
    return (
        _has_numbers(get("usage"))
        and (not get("interrupt") or is_time(manifest["interrupt"].get("timestamp")))
        and all(isinstance(each, dict) for each in get("amended") or ())
    )


def are_sound(rows: list[Any], needed: frozenset[str]) -> bool:
    """Whether every reader can use rows of manifests that have the `needed` fields, as `is_sound`; a field
    may be null that a manifest may lack. Column by column, which is much faster than row by row."""
    if not set(map(type, rows)) <= {dict}:
        return False
    for name in needed:
        if not all(map(_has, rows, repeat(name))):
            return False
    times: list[Any] = []
    for name in set[str]().union(*rows) & _ROW_KINDS.keys():
        column = list(map(_get, rows, repeat(name)))
        found = set(map(type, column))
        if not found <= _ROW_KINDS[name]:
            return False
        if found == {_NONE}:
            continue
        if name in _ROW_TIMES:
            times += [value for value in column if value is not None]
        elif not _are_values(name, [value for value in column if value]):
            return False
    if not set(map(len, times)) <= {_TIME_CHARS}:
        return False
    whole = "".join(times)
    return whole.isascii() and whole.encode().translate(_DIGITS) == _ANY_TIME * len(times)


def _are_values(name: str, values: list[Any]) -> bool:
    """Whether the content of a column makes sense, given the right types."""
    if name == "status":
        return _ROW_STATUSES.issuperset(values)
    if name in _NUMBER_FIELDS:
        return all(-_MOST < value < _MOST for value in values)
    if name == "usage":
        return all(map(_has_numbers, values))
    if name in _TEXT_LISTS:
        return all(isinstance(each, str) for value in values for each in value)
    if name in _ROWS:
        return all(_is_row(each, *_ROWS[name]) for value in values for each in value)
    if name == "interrupt" and not all(is_time(value.get("timestamp")) for value in values):
        return False
    return name not in _PLAIN_TABLES or all(_has_only(value, _PLAIN) for value in values)


def _has_only(table: dict[str, Any] | None, kinds: tuple[type, ...]) -> bool:
    if table:
        for value in table.values():
            if not isinstance(value, kinds):
                return False
    return True


def _has_numbers(table: dict[str, Any] | None) -> bool:
    if table:
        for value in table.values():
            if value is not None and not is_number(value):
                return False
    return True


def _is_row(value: Any, texts: tuple[str, ...], times: tuple[str, ...], kinds: tuple[type, ...]) -> bool:
    table: dict[str, Any] = value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    for name in texts:
        if not isinstance(table.get(name), str):
            return False
    return _has_only(table, kinds) and all(is_time(table.get(name)) for name in times)


def is_number(value: object) -> bool:
    """Whether a value is a number that can be shown."""
    return isinstance(value, _NUMBER) and -_MOST < value < _MOST


def is_time(value: object) -> bool:
    """Whether a value is a time as holdfast writes it: `2026-01-31T12:00:00.000Z`."""
    return (
        isinstance(value, str)
        and len(value) == _TIME_CHARS
        and value.isascii()
        and value.encode().translate(_DIGITS) == _ANY_TIME
        and value[:4] >= "1970"
        and "01" <= value[5:7] <= "12"
        and "01" <= value[8:10] <= "31"
        and value[11:13] <= "23"
        and value[14:16] <= "59"
        and value[17:19] <= "59"
    )


#: Of bytes: that of a text takes six times as long.
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
#: A time with these digits replaced.
_ANY_TIME = b"0000-00-00T00:00:00.000Z"
_TIME_CHARS = len(_ANY_TIME)
