"""Values of options: durations, numbers and sizes. An invalid value is an error that names the option."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import UsageError
from holdfast.units import parse_bytes

#: More digits are refused: they would overflow what the number is used for.
_DIGITS = 18


def duration(text: str | None, option: str, example: str = "7d") -> float | None:
    """`90s`, `7d` → seconds."""
    if text is None:
        return None
    try:
        return clock.parse_duration(text, needs_unit=True)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint=f"for example {option} {example}") from error


def whole_number(text: str | None, option: str) -> int | None:
    """A whole number, 0 or more."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{option}: not a whole number: {text!r}", hint=f"for example {option} 10")
    if len(text) > _DIGITS:
        raise UsageError(f"{option}: too large ({len(text)} digits)", hint=f"for example {option} 10")
    return int(text)


def size(text: str | None, option: str) -> int | None:
    """`10GB` → bytes."""
    if text is None:
        return None
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint=f"for example {option} 10GB") from error


def labels(texts: list[str]) -> dict[str, str]:
    """The values of `--label`."""
    if not texts:
        return {}
    from holdfast.model import labels

    try:
        return labels.parse(texts)
    except ValueError as error:
        raise UsageError(f"--label: {error}", hint="for example --label team=web") from error


def only_one(values: dict[str, object], *names: str) -> str | None:
    """The one of some flags that was given, or None. Raises UsageError for two."""
    given = [name for name in names if values[name]]
    if len(given) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in given[:2])
        raise UsageError(f"{first} and {second} exclude each other", hint="give one of them")
    return given[0] if given else None
