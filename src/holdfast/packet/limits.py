"""Limits of a new task: flag > environment > settings > default of the adapter."""

from __future__ import annotations

from holdfast import clock, units
from holdfast.errors import UsageError
from holdfast.model.spec import Limits
from holdfast.units import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

#: Environment variable → field.
VARIABLES = {
    "MONITOR_BASE_INTERVAL": "base_interval_s",
    "MONITOR_MAX_INTERVAL": "max_interval_s",
    "MONITOR_GRACE_PERIOD": "grace_s",
    "MONITOR_DEADLINE": "deadline_s",
    "MONITOR_MAX_RETRIES": "max_retries",
    "MONITOR_DISPATCH_WAIT": "dispatch_wait_s",
    "MONITOR_RETRY_CEILING": "retry_ceiling_s",
    "SESSION_TIMEOUT": "timeout_s",
    "STALL_THRESHOLD": "stale_s",
}
#: How often interrupt files are checked; ignored if the base interval is set.
_CHECKS = "INTERRUPT_CHECK_INTERVAL"


def resolve(
    environ: Mapping[str, str],
    flags: Mapping[str, str],
    *,
    stale_s: float | None,
    settings: Mapping[str, tuple[str, str]] | None = None,
) -> Limits:
    """The limits of a task.

    `flags` are texts by field name, `settings` texts with their origin, and `stale_s` is the adapter's
    default. If the base interval is set and `stale_s` is not, `stale_s` is three times the interval, even for
    an agent that is not checked for silence by default. Raises UsageError.
    """
    values: dict[str, Any] = {
        field: _value(field, text, where) for field, (text, where) in (settings or {}).items()
    }
    for name, field in VARIABLES.items():
        if environ.get(name):
            values[field] = _value(field, environ[name], name)
    for field, text in flags.items():
        values[field] = _value(field, text, flag(field), needs_unit=True)
    if "stale_s" not in values:
        values["stale_s"] = 3 * values["base_interval_s"] if "base_interval_s" in values else stale_s
    if environ.get(_CHECKS) and "base_interval_s" not in values:
        values["base_interval_s"] = _value("base_interval_s", environ[_CHECKS], _CHECKS)
    return Limits(**values)


def _whole(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"not an integer: {text[:40]!r}") from None
    if abs(number) > units.LARGEST:
        raise ValueError(f"number too large: {text!r}")
    return number


def _dollars(text: str) -> float:
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        raise ValueError(f"not an amount: {text!r}") from None
    if amount == float("inf"):
        raise ValueError(f"not an amount: {text!r} (for no limit, leave it out)")
    return amount


ON_LIMIT = ("ask", "end")
#: Fields that are not durations.
_KINDS: dict[str, Callable[[str], float]] = {
    "max_retries": _whole,
    "output_bytes": parse_bytes,
    "memory_bytes": parse_bytes,
    "budget_usd": _dollars,
    "budget_tokens": _whole,
    "max_turns": _whole,
}
_EXAMPLES = {
    "output_bytes": "500MiB",
    "memory_bytes": "8GiB",
    "budget_usd": "2.50",
    "budget_tokens": "1500000",
}
#: Fields that may be zero.
_MAY_BE_ZERO = frozenset(
    {
        "max_retries",
        "output_bytes",
        "max_interval_s",
        "grace_s",
        "dispatch_wait_s",
        "linger_s",
        "stop_pause_s",
    }
)
#: Minimum values, with the reason.
_LEAST: dict[str, tuple[float, str]] = {
    "memory_bytes": (4 * 1024**2, "no program starts with less"),
    "base_interval_s": (0.01, "the runner would do nothing but check"),
    "deadline_s": (0.01, "no agent starts that fast"),
    "timeout_s": (0.01, "no agent starts that fast"),
    "stale_s": (0.01, "every agent is silent that long"),
}


def flag(field: str) -> str:
    """The option of a limit."""
    if field in ("output_bytes", "memory_bytes"):
        return f"--{field.removesuffix('_bytes')}-limit"
    return "--" + field.removesuffix("_s").replace("_", "-")


def _example(field: str, where: str) -> str:
    return f"{where}={_EXAMPLES.get(field, '10' if field in _KINDS else '30m')}"


def _value(field: str, text: str, where: str, *, needs_unit: bool = False) -> float | int | str | None:
    if field == "on_limit":
        if text not in ON_LIMIT:
            raise UsageError(f"{where} must be {' or '.join(ON_LIMIT)}, not {text!r}")
        return text
    if text == "none" and field in ("deadline_s", "timeout_s", "stale_s", "memory_bytes"):
        return None
    try:
        kind = _KINDS.get(field)
        value = clock.parse_duration(text, needs_unit=needs_unit) if kind is None else kind(text)
    except ValueError as error:
        raise UsageError(
            f"{where}: {error}",
            hint=f"for example {_example(field, where)}",
        ) from error
    if value != value or value < 0 or (value == 0 and field not in _MAY_BE_ZERO):
        least = "zero or more" if field in _MAY_BE_ZERO else "more than zero"
        raise UsageError(f"{where} must be {least}, not {text}", hint=f"for example {_example(field, where)}")
    if field in _LEAST and value < _LEAST[field][0]:
        least, why = _LEAST[field]
        minimum = units.size_text(int(least)) if field.endswith("_bytes") else f"{least:g}s"
        raise UsageError(
            f"{where} must be at least {minimum}, not {text}: {why}",
            hint=f"for example {_example(field, where)}",
        )
    return value
