"""Environment variables of the keeper."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.config.check import check_variable
from holdfast.config.keys import KEYS, Key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: It cannot be set in a file.
_IDLE = Key(kind="duration", default="60s", variable="HOLDFAST_KEEPER_IDLE", about="")


def check_keeper(environ: Mapping[str, str]) -> None:
    """Check the variables before a keeper is started. Raises UsageError."""
    for key in KEYS.values():
        if key.variable in paths.KEEPER_VARIABLES and environ.get(key.variable):
            check_variable(key, environ[key.variable])
    keeper_idle_s(environ)


def keeper_idle_s(environ: Mapping[str, str]) -> float | None:
    """How long an idle keeper stays; None if not set. Raises UsageError."""
    text = environ.get(_IDLE.variable)
    return clock.parse_duration(check_variable(_IDLE, text)) if text else None
