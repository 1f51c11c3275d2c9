"""Resources: summary, findings and gate evidence of a task."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import HoldfastError
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.mcp import protocol, tools
from holdfast.views.mcp.protocol import RpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PREFIX = "holdfast://task/"
_KINDS = {
    "summary": ("text/markdown", "what the task did and how it ended"),
    "findings": ("text/markdown", "what reviewers and verifiers reported"),
    "gate": ("application/json", "gate results with their evidence"),
}
_MAX_BYTES = 1 << 20


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a method whose name begins with `resources/`. Raises RpcError."""
    if method == "resources/list":
        return {"resources": _listing()}
    if method == "resources/templates/list":
        return {
            "resourceTemplates": [
                {
                    "uriTemplate": f"{_PREFIX}{{task}}/{kind}",
                    "name": kind,
                    "description": about,
                    "mimeType": mime,
                }
                for kind, (mime, about) in _KINDS.items()
            ]
        }
    if method == "resources/read":
        return {"contents": [_read(params.get("uri"))]}
    raise RpcError(protocol.NO_METHOD, f"no method {method}")


def _listing() -> list[dict[str, Any]]:
    """The summaries of the tasks that `ls` lists."""
    from holdfast.views.facts import task_list

    try:
        rows = task_list.tasks(Home(paths.home()), everything=False, state=None)
    except HoldfastError as error:
        raise RpcError(protocol.INTERNAL, str(error)) from error
    return [
        {
            "uri": f"{_PREFIX}{row['task_id']}/summary",
            "name": f"{row['task_id']} summary",
            "description": f"{row['status']}: {row['task_name']}",
            "mimeType": "text/markdown",
        }
        for row in rows
    ]


def _read(uri: object) -> dict[str, Any]:
    name, _, kind = str(uri).removeprefix(_PREFIX).rpartition("/")
    if not isinstance(uri, str) or not uri.startswith(_PREFIX) or kind not in _KINDS or "/" in name:
        raise RpcError(protocol.NO_RESOURCE, f"no resource {uri}", {"uri": str(uri)})
    try:
        packet = load.find(Home(paths.home()), name, archived=True)
        text: str = tools.shown(packet, kind, {"bytes": _MAX_BYTES}, most=_MAX_BYTES)["text"]
    except HoldfastError as error:
        raise RpcError(protocol.NO_RESOURCE, str(error), {"uri": uri, "code": error.code}) from error
    return {"uri": uri, "mimeType": _KINDS[kind][0], "text": text}
