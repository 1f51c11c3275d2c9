"""holdfast run: run a task under supervision."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.errors import HoldfastError
from holdfast.packet import load
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.parse.task_options import OPTIONS
from holdfast.views.cli.show import out
from holdfast.views.create import from_options, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.views.cli.follow.loop import View

else:
    # The C module: importing `signal` costs half a millisecond for its enums.
    pass

COMMAND = Command(
    name="run",
    summary="Run a task under supervision.",
    description="Give a prompt for an agent, or a command after --. Prints the task's id and follows the "
    "task until it has ended or needs a person; the exit status tells which ('holdfast help exit-codes'). "
    "On a terminal, its output is shown as it comes; elsewhere, see 'holdfast logs'. Stdin is not passed on: "
    "a command reads /dev/null, and piped text is read only with --file -. Ctrl-C only detaches.",
    examples=(
        'holdfast run --agent claude "fix the failing tests"',
        'holdfast run -d --agent codex --worktree "add a --json option to export"',
        "holdfast run -- make test",
        "holdfast run -d --name nightly --deadline 2h -- ./long-job.sh",
    ),
    takes_command=True,
    arguments=(Argument(dest="prompt", metavar="[PROMPT]", required=False),),
    options=(
        Option(flags=("-d", "--detach"), dest="detach", kind="flag", help="Print the id and return at once."),
        Option(
            flags=("-q", "--quiet"),
            dest="quiet",
            kind="flag",
            help="Show one line of progress instead of the task's output.",
        ),
        Option(flags=("--tmux",), dest="tmux", kind="flag", help="Open its tmux window for 'attach'."),
        JSON.evolve(help="Print the final manifest (with -d: the new one) instead of the id."),
        *OPTIONS,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Create the task, start its runner, and follow it unless -d is given."""
    home = Home(paths.ensure_home(paths.home()))
    every_s = None if values["detach"] else _interval_s()
    task = from_options.read(values, talk=out.talk)
    task_id = task.spec.task_id
    try:
        packet = start.begin(home, task, talk=out.talk)
        if values["tmux"] or task.settings.get("tmux") == "always":
            _open_window(packet)
        if values["detach"]:
            out.task_line(task_id, load.read_manifest(packet) if values["json"] else None)
            return 0
        if not values["json"]:
            out.task_line(task_id)
        from holdfast.views.cli.follow import loop, report  # not needed with -d

        view, shows_log = _view(packet, values, every_s)
        manifest = loop.follow_one(packet, view)
    except KeyboardInterrupt:
        _print_detached(home.packet(task_id))
        return 130
    if values["json"]:
        out.task_line(task_id, manifest)
    return report.report(packet, manifest, has_shown_log=shows_log)


def _view(packet: Packet, values: dict[str, Any], every_s: float | None) -> tuple[View, bool]:
    """What to show, and whether that includes the output: only where a person sees it. A pipe gets the id on
    stdout and progress on stderr; the output is in the task's files."""
    import sys

    from holdfast.views.cli.follow import progress

    streams = [stream for stream in (sys.stdout, sys.stderr) if stream.isatty()]
    if values["quiet"] or values["json"] or not streams:
        return progress.view(every_s), False
    from holdfast.views.cli.follow.log_view import OutputView

    return OutputView(packet, stream=streams[0]), True


def _interval_s() -> float | None:
    """The progress interval; read first, so that an invalid one is refused before the task is created."""
    from holdfast.views.cli.follow import progress

    return progress.interval_s()


def _open_window(packet: Packet) -> None:
    """A failure is only a warning: the task does not need the window."""
    from holdfast.views.cli.commands import attach

    try:
        attach.open_window(packet)
    except HoldfastError as error:
        out.talk(f"warning: cannot open a window: {error}")


def _print_detached(packet: Packet) -> None:
    if not os.path.exists(packet.path):
        return
    out.talk(f"detached; {packet.task_id} keeps running")
    commands = {
        "attach": "watch it", "logs -f": "follow its output", "wait": "wait for its end", "stop": "stop it",
    }  # fmt: skip
    out.steps([(f"holdfast {command} {packet.task_id}", does) for command, does in commands.items()])
