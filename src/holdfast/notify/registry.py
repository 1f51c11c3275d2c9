"""Notifiers by name. A module is imported when it is used; third parties plug in by entry point.

A notifier is a function `notify(notice, rule)`: `notice` is the event (docs/reference/notifications.md),
`rule` the table in the settings. It returns once the notice is delivered, and raises otherwise.
"""

from __future__ import annotations

import importlib

from holdfast import plugins
from holdfast.config import notices
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Notifier = Callable[[dict[str, Any], dict[str, Any]], None]

#: Name → module with a function `notify`.
BUILT_IN = {name: f"holdfast.notify.{name}" for name in notices.NOTIFIERS}


def notifier(name: str) -> Notifier:
    """The notifier with this name. Raises UsageError with the existing names."""
    module = BUILT_IN.get(name)
    if module is not None:
        return importlib.import_module(module).notify
    for entry in plugins.find(plugins.NOTIFIERS, name):
        return entry.load()
    raise UsageError(
        f"no notifier {name!r}", hint=f"built-in notifiers: {', '.join(BUILT_IN)}; others come as plug-ins"
    )
