"""holdfast serve: show tasks in a browser."""

from __future__ import annotations

from holdfast import extras, paths
from holdfast.errors import NotPossible, UsageError
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views import descriptors
from holdfast.views.cli.parse.command_spec import Argument, Command, Option
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="serve",
    summary="Show tasks in a browser.",
    description="Starts a server that only this machine can reach, and prints the address of the board, or "
    "of TASK. An address works once, for one tab, which can open others; Enter prints a new one. Ctrl-C "
    "ends the server; tasks go on. Needs the extra 'web'.",
    examples=(
        "holdfast serve",
        "holdfast serve 20260131-fix",
        "holdfast serve --port 8000 --read-only",
    ),
    arguments=(Argument(dest="task", metavar="[TASK]", required=False, completes="task"),),
    options=(
        Option(flags=("--port",), dest="port", metavar="N", help="The port (8733, or a free one)."),
        Option(
            flags=("--address",),
            dest="address",
            metavar="IP",
            help="Listen on this address instead of 127.0.0.1: read-only, not encrypted.",
        ),
        Option(flags=("--read-only",), dest="read_only", kind="flag", help="Show pages without actions."),
        Option(
            flags=("--allow-actions",),
            dest="allow_actions",
            kind="flag",
            help="Allow actions on another address too.",
        ),
    ),
)

_LOOPBACK = ("127.0.0.1", "::1")
#: The event loop, the watch on the home, a few connections and the files of an answer.
_FILES = 24


def run(values: dict[str, Any]) -> int:
    """Answer requests until Ctrl-C."""
    address, port = values["address"] or _LOOPBACK[0], _port(values["port"])
    if values["read_only"] and values["allow_actions"]:
        raise UsageError("--read-only and --allow-actions exclude each other", hint="give one of them")
    home = Home(paths.ensure_home(paths.home()))
    task_id = load.find(home, values["task"], archived=True).task_id if values["task"] else ""
    try:
        from holdfast.views.web import server
    except ImportError as error:
        raise NotPossible(
            f"the web view is not installed ({error.name} is missing)", hint=extras.how_to_install("web")
        ) from error
    is_local = address in _LOOPBACK
    if not is_local:
        out.talk(f"warning: everybody who reaches {address} can connect, and nothing is encrypted")
    descriptors.need(_FILES, "serve")
    listening = server.bind(address, port)
    is_read_only = values["read_only"] or not (is_local or values["allow_actions"])
    if is_read_only:
        out.talk("read-only: pages can look, and change nothing")
    server.serve(
        home,
        listening,
        has_own_name=values["address"] is None,
        is_read_only=is_read_only,
        tell=lambda address: _tell(address, task_id),
    )
    return 0


def _tell(address: str, task_id: str) -> None:
    # The token is in the fragment, whatever the page.
    print(address.replace("/#", f"/task/{task_id}#") if task_id else address, flush=True)
    out.talk("open this address (it works once; Enter prints another, Ctrl-C ends the server)")


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or not 0 <= int(text[:6]) <= 65535:
        raise UsageError(f"--port {text}: must be a number up to 65535", hint="for example --port 8000")
    return int(text)
