"""Thresholds of a new task: a flag beats the environment, that beats the settings, they beat the adapter's default."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import UsageError
from holdfast.model.spec import Limits

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
}


def settle(
    environ: Mapping[str, str],
    flags: Mapping[str, str],
    *,
    stale_s: float | None,
    settings: Mapping[str, tuple[str, str]] | None = None,
) -> Limits:
    """The limits of a task. `flags` are texts by field name, `settings` texts with the place where each was written;
    `stale_s` is the adapter's default.

    Whoever sets the base interval wants silence to be watched: then stale is three times that, also for an agent
    that is left alone by default. Raises UsageError.
    """
    values: dict[str, Any] = {
        field: _number(field, text, where) for field, (text, where) in (settings or {}).items()
    }
    for name, field in VARIABLES.items():
        if environ.get(name):
            values[field] = _number(field, environ[name], name)
    for field, text in flags.items():
        values[field] = _number(field, text, _flag(field))
    if "stale_s" not in values:
        values["stale_s"] = 3 * values["base_interval_s"] if "base_interval_s" in values else stale_s
    return Limits(**values)


#: Fields that are no durations.
_KINDS: dict[str, Callable[[str], float]] = {
    "max_retries": int,
    "output_bytes": int,
    "budget_usd": float,
    "budget_tokens": int,
    "max_turns": int,
}


def _flag(field: str) -> str:
    return "--output-limit" if field == "output_bytes" else "--" + field.removesuffix("_s").replace("_", "-")


def _number(field: str, text: str, where: str) -> float | int | None:
    if text == "none" and field in ("deadline_s", "stale_s"):
        return None
    try:
        value = _KINDS.get(field, clock.parse_duration)(text)
    except ValueError as error:
        raise UsageError(
            f"{where}: {error}", hint=f"for example {where}={'10' if 'max' in field else '30s'}"
        ) from error
    if value < 0 or (value == 0 and field == "base_interval_s"):
        raise UsageError(f"{where} must be more than zero, not {text}")
    return value
