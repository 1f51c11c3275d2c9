"""`ntfy`: a message on a phone, with buttons if the task waits for approval.

A button publishes a signed reply to a secret topic of the same server, which the keeper reads
(reply_listener.py). Nothing connects to this machine.
"""

from __future__ import annotations

import json
import os

from holdfast import clock, paths
from holdfast.config.notices import is_topic
from holdfast.errors import NotPossible
from holdfast.notify import ntfy_server, replies
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Event → priority (5 rings, 3 is the default, 2 makes no sound) and tag, which the app shows as an emoji.
_SHOWN = {
    "interrupted": (4, "raising_hand"),
    "home_interrupt": (5, "rotating_light"),
    "failed": (4, "x"),
    "abandoned": (4, "no_entry"),
    "quality_gate": (3, "construction"),
    "completed": (3, "white_check_mark"),
    "killed": (2, "stop_sign"),
    "waiting": (2, "hourglass"),
    "queue_empty": (2, "zzz"),
    "budget_spent": (4, "moneybag"),
}
_OTHER = (3, "bell")
#: A server takes messages of 4096 bytes, and 8192 bytes of JSON.
_MESSAGE_BYTES, _TITLE_BYTES = 2000, 200


def notify(notice: dict[str, Any], rule: dict[str, Any]) -> None:
    """Publish the notice; a 2xx status is a delivery."""
    server, token = rule["server"], ntfy_server.token(rule.get("token_env", ""))
    priority, tag = _SHOWN.get(str(notice.get("event")), _OTHER)
    message: dict[str, Any] = {
        "topic": _topic(rule),
        "title": _fitted(f"holdfast: {notice.get('task_id') or 'all tasks'}", _TITLE_BYTES),
        "message": _fitted(str(notice.get("text") or ""), _MESSAGE_BYTES),
        "priority": priority,
        "tags": [tag],
    }
    actions: list[dict[str, Any]] = []
    if replies.asks(notice, rule):
        buttons = _buttons(notice, rule)
        if buttons is None:
            return  # it arrived before, and was answered
        actions += buttons
    if "open_url" in rule and notice.get("packet"):
        # The page asks for its own token, which is never in a notice.
        message["click"] = f"{rule['open_url']}/task/{notice.get('task_id')}"
        actions.append({"action": "view", "label": "Open", "url": message["click"]})
    if actions:
        message["actions"] = actions
    ntfy_server.publish(server, json.dumps(message, ensure_ascii=False).encode(), token)


def _topic(rule: dict[str, Any]) -> str:
    if "topic" in rule:
        return rule["topic"]
    topic = os.environ.get(rule["topic_env"], "").strip()
    if not is_topic(topic):
        raise NotPossible(
            f"the keeper's environment has no topic in {rule['topic_env']}",
            hint="1 to 64 of the characters A-Z a-z 0-9 - _",
        )
    return topic


def _buttons(notice: dict[str, Any], rule: dict[str, Any]) -> list[dict[str, Any]] | None:
    """A button for each verb that the rule allows; None if one of them was used already."""
    home = Home(paths.home())  # not what the notice says: an agent can write one
    key = replies.key(home, create=True)
    assert key is not None
    token = ntfy_server.token(rule.get("reply_token_env", ""))
    expires = int(clock.now() + replies.within_s(rule))
    awaited = replies.expect(home, notice, rule, expires)
    if awaited is None:
        return None
    # Without a token for it, a button has none: everybody who reads the topic sees it.
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if token else {}
    return [
        {
            "action": "http",
            "label": verb.capitalize(),
            "url": f"{rule['server']}/{replies.topic(key)}",
            "method": "POST",
            "body": replies.button(key, awaited, verb, expires),
            "clear": True,
            **headers,
        }
        for verb in replies.allowed(rule)
    ]


def _fitted(text: str, limit: int) -> str:
    """The text without control characters, in at most `limit` bytes."""
    text = "".join(char if char.isprintable() or char == "\n" else " " for char in text)
    data = text.encode()
    return text if len(data) <= limit else data[: limit - 3].decode(errors="ignore") + "…"
