"""Checking the values of settings, by kind."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.config.keys import KEYS, Key
from holdfast.errors import InvalidVariable, UsageError
from holdfast.units import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


#: Words of other programs, and the settings for the same.
_ELSEWHERE = {
    "workers": "slots",
    "parallel": "slots",
    "jobs": "slots",
    "concurrency": "slots",
    "retries": "max_retries",
    "budget": "budget_per_day",
    "window": "pool_windows",
    "windows": "pool_windows",
    "budgets": "pool_budgets",
    "limits": "pool_limits",
    "notifications": "notify",
    "hang_timeout": "stale",
    "environment": "env",
}


def check(path: str, name: str, value: Any) -> Any:
    """The checked value of a setting in the file at `path`. Raises UsageError."""
    key = KEYS.get(name)
    if key is None:
        from difflib import get_close_matches

        here = _ELSEWHERE.get(name)
        near = [here] if here else get_close_matches(name, KEYS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(
            f"{path}: unknown setting {name!r}", hint=f"{hint}'holdfast config --help' lists all settings"
        )
    try:
        return _CHECKS[key.kind](key, value, path)
    except ValueError as error:
        raise UsageError(f"{path}: {name}: {error}", hint=f"for example: {_example(name, key)}") from error


def check_variable(key: Key, text: str) -> Any:
    """The checked value of a setting in the environment. Raises InvalidVariable."""
    value: Any = int(text) if key.kind == "count" and _is_whole(text) else text
    try:
        return _CHECKS[key.kind](key, value, "")
    except ValueError as error:
        example = f"{key.variable}={key.default or '10m'}"
        hint = f"for example {example}, or unset it"
        raise InvalidVariable(f"{key.variable}: {error}", hint=hint) from error


def _is_whole(text: str) -> bool:
    return len(text) < 12 and text.strip().removeprefix("-").isdecimal()


def _duration(key: Key, value: Any, path: str) -> str:
    if value == "none" and key.may_be_none:
        return "none"
    text = _plain_number(value)
    if text is None:
        if not isinstance(value, str):
            raise ValueError(f'must be a duration such as "90s", or a number of seconds, not {_type(value)}')
        text = value
    clock.parse_duration(text)
    return text


def _count(key: Key, value: Any, path: str) -> int:
    if type(value) is not int or value < key.least:
        raise ValueError(f"must be an integer of {key.least} or more, not {value!r}")
    return value


def _bytes(key: Key, value: Any, path: str) -> int | str:
    if value == "none" and key.may_be_none:
        return "none"
    if type(value) is int and value >= 0:
        return value
    if not isinstance(value, str):
        raise ValueError(f'must be a size such as "500MiB", or a number of bytes, not {_type(value)}')
    parse_bytes(value)
    return value


def _text(key: Key, value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"must be a string, not {_type(value)}")
    return value


def _choice(key: Key, value: Any, path: str) -> str:
    if value not in key.choices:
        raise ValueError(f"must be one of {', '.join(key.choices)}, not {value!r}")
    return value


def _network(key: Key, value: Any, path: str) -> str:
    """`on`, `off`, or hosts, which are checked where a sandbox is made."""
    return _text(key, value, path) if isinstance(value, str) else ",".join(_names(key, value, path))


def _several(key: Key, value: Any, path: str) -> list[str]:
    return [_choice(key, name, path) for name in dict.fromkeys(_names(key, value, path))]


def _flag(key: Key, value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_type(value)}")
    return value


def _names(key: Key, value: Any, path: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):  # pyright: ignore
        raise ValueError("must be a list of strings")
    return [str(name) for name in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _pairs(key: Key, value: Any, path: str) -> list[str]:
    pairs = _names(key, value, path)
    for pair in pairs:
        name, equals, count = pair.partition("=")
        if not name or not equals or not count.isdigit():
            raise ValueError(f"must be a list of NAME=COUNT, not {pair!r}")
    return pairs


def _windows(key: Key, value: Any, path: str) -> list[str]:
    pairs = _names(key, value, path)
    for pair in pairs:
        name, equals, window = pair.partition("=")
        if not name or not equals or clock.parse_window(window) is None:
            raise ValueError(f"must be a list of POOL=HH:MM-HH:MM, not {pair!r}")
    return pairs


def _amount(key: Key, value: Any, path: str) -> str:
    if value == "none" and key.may_be_none:
        return "none"
    text = _plain_number(value) or (value.removeprefix("$") if isinstance(value, str) else "")
    if not _is_amount(text):
        raise ValueError(f"must be an amount in dollars such as 20 or 2.50, not {value!r}")
    return text


def _amounts(key: Key, value: Any, path: str) -> list[str]:
    pairs = _names(key, value, path)
    for pair in pairs:
        name, equals, amount = pair.partition("=")
        if not name or not equals or not _is_amount(amount):
            raise ValueError(f"must be a list of NAME=DOLLARS, not {pair!r}")
    return pairs


def _is_amount(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal() and text.isascii() and len(text) < 12


def _rules(key: Key, value: Any, path: str) -> list[dict[str, Any]]:
    # Loaded late: few users set it.
    from holdfast.config import notices

    return notices.check(value, path)


def _file(key: Key, value: Any, path: str) -> str:
    """A relative path is relative to the settings file."""
    text = os.path.expanduser(_text(key, value, path))
    return os.path.join(os.path.dirname(path), text)


_CHECKS = {
    "duration": _duration,
    "count": _count,
    "bytes": _bytes,
    "text": _text,
    "choice": _choice,
    "network": _network,
    "choices": _several,
    "flag": _flag,
    "names": _names,
    "commands": _names,
    "pairs": _pairs,
    "windows": _windows,
    "amount": _amount,
    "amounts": _amounts,
    "file": _file,
    "rules": _rules,
}


def _plain_number(value: Any) -> str | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:g}" if is_number and 0 <= value < 1e12 else None


def _type(value: object) -> str:
    for kind, name in ((bool, "a boolean"), (list, "a list"), (dict, "a table"), (str, "a string")):
        if isinstance(value, kind):
            return name
    return repr(value)


def _example(name: str, key: Key) -> str:
    examples = {
        "duration": '"90s"',
        "count": "10",
        "bytes": '"500MiB"',
        "text": '"scripted"',
        "choice": f'"{key.choices[0]}"' if key.choices else "",
        "network": '["api.anthropic.com", "*.pypi.org"]',
        "choices": f'["{key.choices[0]}"]' if key.choices else "",
        "flag": "true",
        "names": '["DATABASE_URL"]',
        "commands": '["make test"]',
        "pairs": '["claude=2"]',
        "windows": '["nightly=22:00-06:00"]',
        "amount": "20",
        "amounts": '["nightly=5"]',
        "file": '"~/.config/holdfast/env"',
        "rules": 'notify = [{ on = ["failed"], to = "desktop" }]',
    }
    example = examples[key.kind]
    return example if key.kind == "rules" else f"{name} = {example}"
