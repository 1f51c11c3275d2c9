"""Whether a manifest that was read from disk makes sense: an agent may have replaced it. Pure."""

from __future__ import annotations

from holdfast.model.status import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The state that lists show for a packet that cannot be read; no task has it.
UNREADABLE = "unreadable"
_STATUSES = frozenset(str(status) for status in Status)
_TEXT, _NUMBER, _TABLE = (str,), (int, float), (dict,)
_NONE = type(None)
#: Fields that lists and loops use, with their types. Those not listed may be anything.
_REQUIRED = {"agent": _TEXT}
_OPTIONAL: dict[str, tuple[type, ...]] = {
    "task_name": _TEXT,
    "goal": _TEXT,
    "status_reason": _TEXT,
    "status_cause": _TEXT,
    "model": _TEXT,
    "stage": _TEXT,
    "project_dir": _TEXT,
    "session_id": _TEXT,
    "attempt": _NUMBER,
    "retry_count": _NUMBER,
    "total_retries": _NUMBER,
    "active_s": _NUMBER,
    "pid": _NUMBER,
    "exit_code": _NUMBER,
    "usage": _TABLE,
    "interrupt": _TABLE,
    "progress": _TABLE,
    "runner": _TABLE,
    "heartbeat": _TABLE,
    "stages": (list,),
    "concerns": (list,),
}
_TIMES = ("finished_at", "begun_at", "wake_at", "last_progress_at", "last_checked_at", "deadline_at")
#: Values in the tables above.
_NUMBERS = (int, float, _NONE)
_PLAIN = (str, *_NUMBERS)


def is_sound(manifest: dict[str, Any]) -> bool:
    """Whether every reader can use a manifest."""
    get = manifest.get
    return (
        isinstance(get("status"), str)  # a list cannot be looked up
        and get("status") in _STATUSES
        and is_time(get("started_at"))
        and all(isinstance(get(name), kinds) for name, kinds in _REQUIRED.items())
        and all((value := get(name)) is None or isinstance(value, kinds) for name, kinds in _OPTIONAL.items())
        and all((value := get(name)) is None or is_time(value) for name in _TIMES)
        and _has_only(get("usage"), _NUMBERS)
        and all(_has_only(get(name), _PLAIN) for name in ("interrupt", "progress", "runner", "heartbeat"))
        and all(_is_concern(each) for each in get("concerns") or ())
    )


def _has_only(table: dict[str, Any] | None, kinds: tuple[type, ...]) -> bool:
    return not table or all(isinstance(value, kinds) for value in table.values())


def _is_concern(value: Any) -> bool:
    table: dict[str, Any] = value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    return all(isinstance(table.get(name), str) for name in ("stage", "text"))


def is_time(value: object) -> bool:
    """Whether a value is a time as holdfast writes it: `2026-01-31T12:00:00.000Z`."""
    return (
        isinstance(value, str)
        and len(value) == 24
        and value.isascii()
        and value.translate(_DIGITS) == "0000-00-00T00:00:00.000Z"
        and value[:4] >= "1970"
        and "01" <= value[5:7] <= "12"
        and "01" <= value[8:10] <= "31"
        and value[11:13] <= "23"
        and value[14:16] <= "59"
        and value[17:19] <= "59"
    )


_DIGITS = str.maketrans("123456789", "000000000")
