"""holdfast attach: watch a task live, in a tmux window if tmux is installed."""

from __future__ import annotations

import os
import sys

from holdfast import own_python, paths, program_search
from holdfast.model.status import ENDS, Status, exit_status
from holdfast.packet import load
from holdfast.store.layout import Home, Packet
from holdfast.views import option_values, tmux
from holdfast.views.cli.follow import loop
from holdfast.views.cli.follow.log_view import AttachView
from holdfast.views.cli.parse.command_spec import TASK, Command, Option
from holdfast.views.cli.show import out
from holdfast.views.settle import SettleCheck
from holdfast.views.text import fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.views.cli.follow.loop import Until

_LINES = 40

COMMAND = Command(
    name="attach",
    summary="Watch a task live. Detaching does not affect the task.",
    description="Follows the log until the task has ended or needs a person; the exit status tells which. "
    "In a terminal with tmux installed, the view is the tmux session 'holdfast-TASK' on a private socket: "
    "detach with Ctrl-b d. With --no-tmux, without tmux or inside it, the view is in this terminal: detach "
    "with Ctrl-C.",
    examples=("holdfast attach 20260131-fix", "holdfast attach 20260131-fix --no-tmux -n 200"),
    arguments=(TASK,),
    options=(
        Option(flags=("--no-tmux",), dest="no_tmux", kind="flag", help="Show it in this terminal."),
        Option(
            flags=("-n", "--lines"),
            dest="lines",
            metavar="N",
            help=f"Start with the last N lines ({_LINES}).",
        ),
        Option(
            flags=("--stay",),
            dest="stay",
            kind="flag",
            help="Stay attached while the task waits for a person.",
        ),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Show the task; the exit status is that of the task."""
    packet = load.find(Home(paths.home()), values["task"])
    lines = _lines(values["lines"])
    held = _HeldCheck(packet.home)
    until = _has_ended if values["stay"] else held.is_over
    if not values["no_tmux"] and _is_live(packet, until) and _wants_tmux(packet):
        return _in_tmux(packet)
    try:
        manifest = loop.follow_one(
            packet,
            AttachView(packet, lines=lines),
            until=until,
            stays=values["stay"],
        )
    except KeyboardInterrupt:
        out.talk(f"detached; 'holdfast attach {packet.task_id}' re-attaches")
        return 130
    if held.why:
        out.talk(fit_text.printable(held.why))
        return exit_status(manifest)
    from holdfast.views.cli.follow import report  # not needed if one detaches

    return report.report(packet, manifest, has_shown_log=True)


class _HeldCheck:
    """Whether a task is not followed any further, also because the queue will never start it."""

    def __init__(self, home: Home) -> None:
        #: Why it is held in the queue, and what to type; empty if it is not.
        self.why = ""
        self._is_settled = SettleCheck(home, self._note)

    def is_over(self, packet: Packet, manifest: dict[str, Any]) -> bool:
        """For the task with this manifest."""
        self.why = ""
        # Of a queued task only: SettleCheck reads all items of a fan-out.
        check = self._is_settled if manifest["status"] == Status.QUEUED else load.is_settled
        return check(packet, manifest)

    def _note(self, why: str) -> None:
        self.why = why


def _has_ended(packet: Packet, manifest: dict[str, Any]) -> bool:
    return manifest["status"] in ENDS and load.is_settled(packet, manifest)


def open_window(packet: Packet) -> None:
    """Open the task's window, detached. Raises TmuxError."""
    # env: the tmux server passes on its own environment, which may come from an older command.
    view = own_python.command("holdfast", "attach", "--no-tmux", "--stay", packet.task_id)
    names = ("HOME", "XDG_CONFIG_HOME", "PATH")
    where = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    tmux.Server(packet.home).open(
        packet.task_id,
        [program_search.find("env") or "/usr/bin/env", f"HOLDFAST_HOME={packet.home.path}", *where, *view],
    )


def _in_tmux(packet: Packet) -> int:
    server = tmux.Server(packet.home)
    open_window(packet)
    server.attach(packet.task_id)
    manifest = load.read_manifest(packet)
    status = Status(manifest["status"])
    if status in ENDS or status is Status.INTERRUPTED:
        out.talk(f"{packet.task_id} is {status}")
        return exit_status(manifest)
    out.talk(f"detached; 'holdfast attach {packet.task_id}' re-attaches")
    return 0


def _is_live(packet: Packet, until: Until) -> bool:
    manifest = load.read_manifest(packet)
    status = Status(manifest["status"])
    return status not in ENDS and status is not Status.INTERRUPTED and not until(packet, manifest)


def _wants_tmux(packet: Packet) -> bool:
    """Whether this is a terminal that tmux can draw on, and the setting `tmux` allows it."""
    has_screen = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if not has_screen or tmux.program() is None:
        return False
    from holdfast.config import settings

    setting = settings.load(load.read_manifest(packet).get("project_dir") or os.getcwd()).get("tmux")
    mode = setting.value if setting is not None else "auto"
    # Nested tmux only on request.
    return mode == "always" or (mode == "auto" and "TMUX" not in os.environ)


def _lines(text: str | None) -> int:
    count = option_values.whole_number(text, "--lines")
    return _LINES if count is None else count
