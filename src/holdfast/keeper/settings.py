"""The settings as the keeper goes by them: the last that could be read.

A file that an editor has half saved must not lift a limit, nor cost anybody a notice. So what was read last is kept in the
home, and holds until the settings can be read again; `wrong` says why they cannot be.
"""

from __future__ import annotations

import os

from holdfast import clock, paths
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.keeper.log import log
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.units import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LastGood(Record):
    """What the settings say of the loop, and who is told of what."""

    schema: str = "holdfast.settings/1"
    loop: dict[str, Any] = {}
    #: The rules of `[[notify]]`, with their options. None: they could never be read.
    notify: list[dict[str, Any]] | None = None
    #: Why the settings of now are left aside; empty where they hold.
    wrong: str = ""


def read(home: Home) -> LastGood:
    """What holds now. A mistake is told in keeper.log once, and in `wrong`."""
    try:
        kept = LastGood.from_json(atomic.read_json(home.settings) or {})
    except (CorruptFile, TypeError, ValueError):
        kept = LastGood()
    try:
        found = _settled()
    except (HoldfastError, ValueError) as error:
        found = kept.evolve(wrong=str(error))
        if found.wrong != kept.wrong:
            log(f"the settings are left aside, those before hold: {error}")
    # Whoever never set anything has nothing to keep.
    if found != kept and (found.wrong or kept != LastGood() or os.path.exists(paths.user_settings())):
        _keep(home, found)
    return found


def _keep(home: Home, found: LastGood) -> None:
    try:
        atomic.write_json(home.settings, found.to_json(), durable=True)
    except (OSError, HoldfastError) as error:
        log(f"the settings were not kept: {error}")


def _settled() -> LastGood:
    from holdfast.config import settings

    found = {name: each.value for name, each in settings.settle("/", os.environ).items()}
    loop = {
        "slots": int(found["slots"]),
        "max_iterations": int(found["max_iterations"]),
        "iteration_delay_s": clock.parse_duration(str(found["iteration_delay"])),
        "max_failures": int(found["max_failures"]),
        "agents": _pairs(found["agent_limits"]),
        "pools": _pairs(found["pool_limits"]),
        "min_free_memory_bytes": parse_bytes(str(found["min_free_memory"])),
        "min_free_disk_bytes": parse_bytes(str(found["min_free_disk"])),
        "sources": list(found["sources"]),
        "refresh_s": clock.parse_duration(str(found["refresh"])),
        "archive_after_s": _duration(found["archive_after"]),
    }
    return LastGood(loop=loop, notify=list(found["notify"] or []))


def _duration(text: Any) -> float | None:
    return None if text in (None, "none") else clock.parse_duration(str(text))


def _pairs(texts: list[str]) -> dict[str, int]:
    """`["claude=2"]` as a table."""
    return {name: int(count) for name, _, count in (text.partition("=") for text in texts)}
