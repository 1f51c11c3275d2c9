"""Values of options as people write them; what cannot be read is an error that names the option."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import UsageError
from holdfast.units import parse_bytes

#: Nobody counts further.
_DIGITS = 18


def duration(text: str | None, option: str, example: str = "7d") -> float | None:
    """`90s`, `7d` → seconds."""
    if text is None:
        return None
    try:
        return clock.parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint=f"for example {option} {example}") from error


def whole_number(text: str | None, option: str) -> int | None:
    """A whole number from 0 on."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{option}: not a whole number: {text!r}", hint=f"for example {option} 10")
    if len(text) > _DIGITS:
        raise UsageError(f"{option}: a number of {len(text)} digits", hint=f"for example {option} 10")
    return int(text)


def size(text: str | None, option: str) -> int | None:
    """`10GB` → bytes."""
    if text is None:
        return None
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint=f"for example {option} 10GB") from error


def only_one(values: dict[str, object], *names: str) -> str | None:
    """Which of some flags was given; two are an error."""
    found = [name for name in names if values[name]]
    if len(found) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in found[:2])
        raise UsageError(f"{first} and {second} were given", hint="give one of them")
    return found[0] if found else None
