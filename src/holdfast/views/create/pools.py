"""The pools of a home: those of the settings, of queued tasks, and paused ones."""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.queue.engine import ALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.queue.local import LocalQueue

DEFAULT = "default"
#: The settings that name pools.
_NAMING = ("pool_limits", "pool_windows", "pool_budgets")


def configured() -> list[str]:
    """The pools that the user's settings name."""
    import os

    from holdfast.config import settings

    values = settings.effective(None, os.environ)
    pairs = [text for name in _NAMING for text in values[name].value or ()]
    return list(dict.fromkeys(text.partition("=")[0] for text in pairs))


def known(queue: LocalQueue) -> list[str]:
    """All pools, the default one first."""
    names = [*configured(), *(item.pool for item in queue.items()), *queue.paused()]
    return list(dict.fromkeys([DEFAULT, *(name for name in names if name != ALL)]))


def check(name: str, queue: LocalQueue) -> None:
    """Raise NotFound for a pool that no setting and no task names."""
    pools = known(queue)
    if name not in pools:
        raise _no_such(name, pools)


def check_new(name: str) -> None:
    """Refuse a new task's pool if the settings name pools, but not this one: its limit would not hold."""
    pools = configured()
    if pools and name not in (DEFAULT, *pools):
        raise _no_such(name, [DEFAULT, *pools])


def _no_such(name: str, pools: list[str]) -> NotFound:
    from holdfast.views.text import suggest  # for a mistake only

    similar = suggest.did_you_mean(name, tuple(pools))
    return NotFound(
        f"there is no pool {name!r}",
        hint=f"{similar} " * bool(similar)
        + f"the pools are {', '.join(pools)}; pool_limits in the settings adds one",
    )
