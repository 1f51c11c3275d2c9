"""What pages may ask of a task. Each function waits for the answer of its runner: call it in a thread.

There is no command to execute, no terminal, and no way to choose `full` permissions: a page is used by a
person alone, but a mistake in it must not give away the machine.
"""

from __future__ import annotations

from holdfast import spawn
from holdfast.errors import HoldfastError, NotFound
from holdfast.views import requests
from holdfast.views.web import endpoints
from holdfast.views.web.body import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.store.layout import Home, Packet

    Act = Callable[[Packet, dict[str, Any]], dict[str, Any]]

# The server has threads, which a forked runner may not have, and lives long.
spawn.is_guest = True


def on_task(home: Home, task_id: str, verb: str, body: dict[str, Any]) -> dict[str, Any]:
    """Do what a page asks of a task. Raises NotFound, UsageError, RequestRefused, …"""
    act = VERBS.get(verb)
    if act is None:
        raise NotFound(f"no action {verb}")
    packet = endpoints.packet_of(home, task_id, archived=False)
    return {"task_id": task_id, "notes": [], **act(packet, body)}


def _stop(packet: Packet, body: dict[str, Any]) -> dict[str, Any]:
    args: dict[str, Any] = {"now": True} if body.get("now") is True else {}
    sent, ended = requests.stop_all([packet], {**_message(body, "reason"), **args})
    _raise_first(sent.failed)
    return {"has_ended": bool(ended)}


def _retry(packet: Packet, body: dict[str, Any]) -> dict[str, Any]:
    from holdfast.views.create import again

    notes: list[str] = []
    # Only a message: permissions and limits stay as they are.
    args = again.args_of(packet, _message(body, "message"))
    requests.send_request(packet, "retry", args)
    again.list_again(packet, talk=notes.append)
    return {"notes": notes}


def _request(verb: str, field: str) -> Act:
    """A request with an optional text, which is called `field` in it."""

    def act(packet: Packet, body: dict[str, Any]) -> dict[str, Any]:
        requests.send_request(packet, verb, _message(body, field))
        return {}

    return act


#: All that a page may ask for.
VERBS: dict[str, Act] = {
    "stop": _stop,
    "interrupt": _request("interrupt", "reason"),
    "resume": _request("resume", "message"),
    "approve": _request("approve", "message"),
    "reject": _request("reject", "reason"),
    "retry": _retry,
}


def _message(body: dict[str, Any], field: str) -> dict[str, Any]:
    return {field: text(body, "message")} if body.get("message") else {}


def _raise_first(failed: list[tuple[Packet, HoldfastError]]) -> None:
    for _, error in failed:
        raise error
