"""Notification rules in the settings (`[[notify]]`): reading and checking. Nothing is sent here.

[[notify]]
on = ["interrupted", "failed"]
to = "command"
argv = ["notify-me"]
"""

from __future__ import annotations

import os

from holdfast import clock, plugins

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
    "budget_spent",
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
    "ntfy": {
        "server": ("server", True),
        "topic": ("topic", False),
        "topic_env": ("text", False),
        "token_env": ("text", False),
        "open_url": ("server", False),
        "allow": ("verbs", False),
        "reply_within": ("duration", False),
        "reply_token_env": ("text", False),
    },
}
#: What a button of a notice may answer; without `allow`, a rule has the default.
REPLY_VERBS, DEFAULT_VERBS = ("approve", "reject"), ("reject",)
#: How long a button works. ntfy keeps messages for 12 hours unless its settings say otherwise.
REPLY_WITHIN = "12h"
_TOPIC_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
#: The keys that every rule can have.
_COMMON = ("on", "to", "name", "projects")


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
    if to == "ntfy" and ("topic" in options) == ("topic_env" in options):
        raise ValueError(f"{where}: ntfy needs one of 'topic' and 'topic_env'")
    if to == "apprise" and ("urls" in options) == ("url_env" in options):
        raise ValueError(f"{where}: apprise needs one of 'urls' and 'url_env'")


def is_plugin(name: str) -> bool:
    """Whether a plug-in provides this notifier."""
    return bool(plugins.find(plugins.NOTIFIERS, name))


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


def is_topic(text: str) -> bool:
    """Whether a text can be the name of a topic."""
    return 0 < len(text) <= 64 and _TOPIC_CHARS.issuperset(text)


def _topic(value: Any, where: str, path: str) -> str:
    text = _text(value, where)
    if not is_topic(text):
        raise ValueError(f"{where}: must be 1 to 64 of the characters A-Z a-z 0-9 - _")
    return text


def _server(value: Any, where: str, path: str) -> str:
    """`https://host:port`: requests go to this host, and nothing in it is secret."""
    from urllib.parse import urlsplit  # only these rules need it

    text = _text(value, where).rstrip("/")
    try:
        parts = urlsplit(text)
        is_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, is_host = None, False
    if parts is None or not is_host or text != f"{parts.scheme}://{parts.netloc}" or "@" in text:
        raise ValueError(f"{where}: must be https://HOST or http://HOST, perhaps with :PORT")
    if parts.scheme not in ("https", "http") or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(f"{where}: must start with https:// or http://, and have no special characters")
    return text


def _verbs(value: Any, where: str, path: str) -> list[str]:
    if not isinstance(value, list) or not all(verb in REPLY_VERBS for verb in value):  # pyright: ignore
        raise ValueError(f"{where}: must be a list of {' and '.join(REPLY_VERBS)}; [] allows nothing")
    return [verb for verb in REPLY_VERBS if verb in value]


def _duration(value: Any, where: str, path: str) -> str:
    text = _text(value, where)
    try:
        seconds = clock.parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    if not 60 <= seconds <= 7 * 86400:
        raise ValueError(f"{where}: must be from 1m to 7d")
    return text


_KINDS = {
    "text": _text,
    "argv": _argv,
    "file": _file,
    "topic": _topic,
    "server": _server,
    "verbs": _verbs,
    "duration": _duration,
}
