"""Whether the caller may run this command. The table is `verbs.FOR_AGENTS`."""

from __future__ import annotations

from holdfast.views.cli.verbs import FOR_AGENTS, HOME, PERSON, START

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check(verb: str, values: dict[str, Any]) -> None:
    """Raises ForPersons if an agent runs what only a person may run, whatever the task.

    What depends on the task (`OTHERS`, `STARTED`) is checked where the task is known, by `asker.check`.
    """
    rule = rule_of(verb, values)
    if rule not in (HOME, PERSON):
        return
    from holdfast import paths
    from holdfast.packet import asker
    from holdfast.store.layout import Home

    what = f"run 'holdfast {verb}'"
    asker.require_person(what, home=Home(paths.home()) if rule == HOME else None)


def rule_of(verb: str, values: dict[str, Any]) -> str:
    """What an agent may do with this command line."""
    rows = FOR_AGENTS[verb]
    rule = rows if isinstance(rows, str) else next(rule for when, rule in rows if _fits(when, values))
    return PERSON if rule == START and values.get("trust_project") else rule


def _fits(when: str, values: dict[str, Any]) -> bool:
    """Whether a condition of the table holds: an option, an option with a value, or an action."""
    if not when:
        return True
    if not when.startswith("--"):
        return values["action"] == when
    name, has_value, value = when.removeprefix("--").partition("=")
    given = values[name.replace("-", "_")]
    return given == value if has_value else bool(given)
