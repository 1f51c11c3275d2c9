"""Notification rules in the settings (`[[notify]]`): reading and checking. Nothing is sent here.

[[notify]]
on = ["interrupted", "failed"]
to = "command"
argv = ["notify-me"]
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The events of a rule; `all` stands for all of them.
EVENTS = (
    "interrupted",
    "failed",
    "completed",
    "abandoned",
    "killed",
    "quality_gate",
    "home_interrupt",
    "waiting",
    "queue_empty",
)
#: Built-in notifiers and their options: name → (kind, whether it is required).
NOTIFIERS: dict[str, dict[str, tuple[str, bool]]] = {
    "command": {"argv": ("argv", True)},
    "webhook": {
        "url": ("text", False),
        "url_env": ("text", False),
        "secret_env": ("text", False),
        "secret_file": ("file", False),
    },
    "openclaw": {"program": ("text", False)},
    "gt": {"recipient": ("text", False), "program": ("text", False)},
    "desktop": {},
    "apprise": {"urls": ("argv", False), "url_env": ("text", False)},
}
#: The keys that every rule can have.
_COMMON = ("on", "to", "name", "projects")
ENTRY_POINTS = "holdfast.notifiers"


def check(value: Any, path: str) -> list[dict[str, Any]]:
    """The checked rules of a file. Raises ValueError.

    Only the user's settings can have them: an agent can write the project's settings, and a rule runs
    programs outside the agent's sandbox.
    """
    if os.path.basename(os.path.dirname(path)) == ".holdfast":
        raise ValueError(
            "must be in the user's settings, not the project's, which an agent can change; "
            "'projects' limits a rule to some projects"
        )
    if not isinstance(value, list):
        raise ValueError("must be [[notify]] tables")
    return [_rule(item, number, path) for number, item in enumerate(value, 1)]  # pyright: ignore


def _rule(item: Any, number: int, path: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise ValueError("must be [[notify]] tables")
    table: dict[str, Any] = item  # pyright: ignore[reportUnknownVariableType]
    where = f"rule {number}"
    to = table.get("to")
    if not isinstance(to, str) or not to:
        raise ValueError(f"{where} has no 'to'; known: {', '.join(NOTIFIERS)}")
    rule: dict[str, Any] = {"to": to, "on": _events(table.get("on"), where)}
    if "name" in table:
        rule["name"] = _text(table["name"], f"{where}: name")
    if "projects" in table:
        folders = _argv(table["projects"], f"{where}: projects")
        rule["projects"] = [_beside(folder, path) for folder in folders]
    return {**rule, **_options(to, table, where=where, path=path)}


def _events(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not value:
        raise ValueError(f'{where} has no \'on\', a list of events such as ["interrupted", "failed"]')
    names = [str(name) for name in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for name in names:
        if name not in (*EVENTS, "all"):
            raise ValueError(f"{where}: on: unknown event {name!r}; known: {', '.join(EVENTS)}, all")
    return names


def _options(to: str, table: dict[str, Any], *, where: str, path: str) -> dict[str, Any]:
    known = NOTIFIERS.get(to)
    values = {name: value for name, value in table.items() if name not in _COMMON}
    if known is None:
        if not is_plugin(to):
            raise ValueError(f"{where}: unknown notifier {to!r}; known: {', '.join(NOTIFIERS)}")
        return values  # the plug-in checks them
    for name in values:
        if name not in known:
            allowed = ", ".join([*_COMMON, *known])
            raise ValueError(f"{where}: {to} has no option {name!r}; allowed: {allowed}")
    for name, (_, is_required) in known.items():
        if is_required and name not in values:
            raise ValueError(f"{where}: {to} needs '{name}'")
    options = {
        name: _KINDS[known[name][0]](value, f"{where}: {name}", path) for name, value in values.items()
    }
    _check_together(to, options, where)
    return options


def _check_together(to: str, options: dict[str, Any], where: str) -> None:
    if to == "webhook":
        if ("url" in options) == ("url_env" in options):
            raise ValueError(f"{where}: webhook needs one of 'url' and 'url_env'")
        if "url" in options and not options["url"].startswith(("http://", "https://")):
            raise ValueError(f"{where}: url: must start with https:// or http://")
        if "secret_env" in options and "secret_file" in options:
            raise ValueError(f"{where}: webhook takes one of 'secret_env' and 'secret_file'")
    if to == "apprise" and ("urls" in options) == ("url_env" in options):
        raise ValueError(f"{where}: apprise needs one of 'urls' and 'url_env'")


def is_plugin(name: str) -> bool:
    """Whether a plug-in provides this notifier."""
    allowed = os.environ.get("HOLDFAST_PLUGINS")
    if allowed is not None and name not in allowed.split(","):
        return False
    # Only for unknown names: reading entry points takes as long as a whole command.
    from importlib.metadata import entry_points

    return bool(tuple(entry_points(group=ENTRY_POINTS, name=name)))


def _text(value: Any, where: str, path: str = "") -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{where}: must be a string")
    return value


def _argv(value: Any, where: str, path: str = "") -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):  # pyright: ignore
        raise ValueError(f"{where}: must be a list of strings, not empty")
    return [str(word) for word in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _file(value: Any, where: str, path: str) -> str:
    return _beside(_text(value, where), path)


def _beside(text: str, path: str) -> str:
    """A relative path is relative to the settings file."""
    return os.path.normpath(os.path.join(os.path.dirname(path), os.path.expanduser(text)))


_KINDS = {"text": _text, "argv": _argv, "file": _file}
