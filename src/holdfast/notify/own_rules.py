"""Whether a rule is one of the user's."""

from __future__ import annotations

from holdfast.errors import HoldfastError, NotPossible
from holdfast.store import trust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check(rule: dict[str, Any]) -> None:
    """A rule can run a command, and an agent can write in the outbox: it must be one of the user's rules.

    While the settings cannot be read, the previous rules stay in effect.
    """
    from holdfast.config import settings

    try:
        is_mine = rule in settings.notify_rules()
    except HoldfastError:
        if not trust.is_rule(rule):
            raise
        return
    if not is_mine:
        raise NotPossible("your settings have no such rule (any more)", hint="'holdfast config show'")
