"""`apprise`: every service that the Apprise library supports."""

from __future__ import annotations

import importlib
import os

from holdfast import extras
from holdfast.errors import NotPossible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KINDS = {
    "completed": "success",
    "interrupted": "warning",
    "home_interrupt": "warning",
    "quality_gate": "warning",
}


def notify(notice: dict[str, Any], rule: dict[str, Any]) -> None:
    """Notify each address."""
    try:
        apprise: Any = importlib.import_module("apprise")
    except ImportError as error:
        raise NotPossible(f"Apprise is not installed: {extras.how_to_install('notify')}") from error
    addresses = rule.get("urls") or os.environ.get(rule.get("url_env", ""), "").split()
    if not addresses:
        raise NotPossible(f"the keeper's environment has no {rule.get('url_env')}")
    target = apprise.Apprise()
    for address in addresses:
        if not target.add(address):
            # Not the address: it contains a key.
            raise NotPossible("Apprise does not support one of the addresses")
    title = f"holdfast: {notice.get('task_id') or 'all tasks'}"
    kind = _KINDS.get(str(notice.get("event")), "failure")
    if not target.notify(body=notice["text"], title=title, notify_type=kind):
        raise NotPossible("Apprise could not deliver to every address")
