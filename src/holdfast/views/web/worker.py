"""One action of a page, in a process of its own: JSON in, JSON out.

The server has threads, and what starts a runner forks (`runner_process`), which needs a process with one. So
each action is executed: `python -m holdfast.views.web.worker`, with the request on stdin.
"""

from __future__ import annotations

import json
import sys

from holdfast import paths
from holdfast.errors import HoldfastError, UsageError
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views import requests
from holdfast.views.web import actions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> int:
    """Read the request, act, and print the result."""
    notes: list[str] = []
    try:
        result = _act(json.load(sys.stdin), notes)
    except HoldfastError as error:
        result = {
            "error": str(error),
            "code": error.code,
            "hint": error.hint,
            "details": list(error.details),
            "exit_status": error.exit_status,
        }
    print(json.dumps({"notes": notes, **result}))
    return 0


def _act(request: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    verb: str = request["verb"]
    if verb == "new":
        return _new(request["fields"], notes, is_check=bool(request.get("check")))
    packet = load.find(Home(paths.home()), request["task"])
    if packet.task_id != request["task"]:
        raise UsageError("not a task id")
    args = request["args"]
    if verb == "stop":
        sent, ended = requests.stop_all([packet], args)
        for _, error in sent.failed:
            raise error
        return {"task_id": packet.task_id, "has_ended": bool(ended)}
    requests.send_request(packet, verb, args)
    return {"task_id": packet.task_id}


def _new(fields: dict[str, Any], notes: list[str], *, is_check: bool) -> dict[str, Any]:
    from holdfast.views.create import from_options, start

    options = actions.options(fields)
    command = actions.command_line(fields)
    if is_check:
        from_options.read(options.values(), talk=notes.append)
        return {"command": command}
    if fields.get("is_queued"):
        packet = start.submit(options, talk=notes.append)
    else:
        packet = start.run(options, talk=notes.append)
    return {"task_id": packet.task_id, "command": command}


if __name__ == "__main__":
    sys.exit(main())
