"""The settings that the keeper uses: the last valid ones.

A half-saved file must not lift a limit or lose a notice. So the last valid settings are saved in the home and
stay in effect until the file can be read again; `wrong` has the error.
"""

from __future__ import annotations

import os

from holdfast import clock, paths
from holdfast.errors import CorruptFile, HoldfastError, InvalidVariable
from holdfast.keeper.log import log
from holdfast.model.record import Record
from holdfast.notify import own_rules
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.units import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LastGood(Record):
    """The settings of the loop and the notification rules."""

    schema: str = "holdfast.settings/1"
    loop: dict[str, Any] = {}
    #: The `[[notify]]` rules, with their options. None if they were never readable.
    notify: list[dict[str, Any]] | None = None
    #: Why the current settings are ignored; empty if they are in effect.
    wrong: str = ""
    #: Where the error is: `file`, `environment` (of the keeper), or empty.
    wrong_in: str = ""


def read(home: Home) -> LastGood:
    """The effective settings. An error is logged once, and is in `wrong`."""
    try:
        saved = LastGood.from_json(atomic.read_json(home.settings) or {})
    except (CorruptFile, TypeError, ValueError):
        saved = LastGood()
    try:
        current = _settled()
    except (HoldfastError, ValueError) as error:
        where = "environment" if isinstance(error, InvalidVariable) else "file"
        current = saved.evolve(wrong=str(error), wrong_in=where)
        if current.wrong != saved.wrong:
            log(f"invalid settings ignored; previous ones stay in effect: {error}")
    if not current.wrong:
        _note_rules(current.notify or [], are_new=current.notify != saved.notify)
    # Without settings, there is nothing to save.
    if current != saved and (current.wrong or saved != LastGood() or os.path.exists(paths.user_settings())):
        _keep(home, current)
    return current


def _note_rules(rules: list[dict[str, Any]], *, are_new: bool) -> None:
    """Before they are saved in the home: deliveries believe only what is beside the settings."""
    try:
        own_rules.note(rules)
    except (OSError, HoldfastError) as error:
        if are_new:  # not at every step: the directory may be read-only for good
            log(f"cannot note the notification rules: {error}")


def _keep(home: Home, current: LastGood) -> None:
    try:
        atomic.write_json(home.settings, current.to_json(), durable=True)
    except (OSError, HoldfastError) as error:
        log(f"cannot save the settings: {error}")


def _settled() -> LastGood:
    from holdfast.config import settings

    values = {name: each.value for name, each in settings.effective(None, os.environ).items()}
    loop = {
        "slots": int(values["slots"]),
        "max_iterations": int(values["max_iterations"]),
        "iteration_delay_s": clock.parse_duration(str(values["iteration_delay"])),
        "max_failures": int(values["max_failures"]),
        "agents": _pairs(values["agent_limits"]),
        "pools": _pairs(values["pool_limits"]),
        "windows": _texts(values["pool_windows"]),
        "budget_usd": _dollars(values["budget_per_day"]),
        "pool_budgets": {pool: float(text) for pool, text in _texts(values["pool_budgets"]).items()},
        "min_free_memory_bytes": parse_bytes(str(values["min_free_memory"])),
        "min_free_disk_bytes": parse_bytes(str(values["min_free_disk"])),
        "sources": list(values["sources"]),
        "refresh_s": clock.parse_duration(str(values["refresh"])),
        "archive_after_s": _duration(values["archive_after"]),
        "inhibit_sleep": values["inhibit_sleep"] == "on",
    }
    return LastGood(loop=loop, notify=list(values["notify"] or []))


def _duration(text: Any) -> float | None:
    return None if text in (None, "none") else clock.parse_duration(str(text))


def _dollars(text: Any) -> float | None:
    return None if text in (None, "none") else float(text)


def _texts(pairs: list[str]) -> dict[str, str]:
    return {name: text for name, _, text in (pair.partition("=") for pair in pairs)}


def _pairs(texts: list[str]) -> dict[str, int]:
    """`["claude=2"]` as a dict."""
    return {name: int(count) for name, _, count in (text.partition("=") for text in texts)}
