"""holdfast run: start a task."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.errors import HoldfastError
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.spawn import allow_keeper, ensure_keeper, start_runner
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.create import from_command_line, new_task
from holdfast.views.cli.create.task_options import OPTIONS
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any

    from holdfast.views.cli.create.new_task import NewTask
else:
    # In C: the other one gives names to its numbers, for half a millisecond.
    import _signal as signal

COMMAND = Command(
    name="run",
    summary="Run a task and do not let go of it.",
    description="Give a prompt for an agent, or a command behind --. It prints the task's id and follows the task until it "
    "has ended or needs a person; the exit status says how (see 'holdfast help exit-codes'). What the task prints is in "
    "its files ('holdfast logs'). It gets no input: what stands behind a pipe is for --file - only, and a command reads "
    "/dev/null. Ctrl-C detaches: the task lives on.",
    examples=(
        "holdfast run -- make test",
        'holdfast run --agent scripted -o scenario=demo.json "try it"',
        "holdfast run -d -- make test",
        "holdfast run -d --name nightly --deadline 2h -- ./long-job.sh",
    ),
    takes_command=True,
    arguments=(Argument(dest="prompt", metavar="[PROMPT]", required=False),),
    options=(
        *OPTIONS,
        Option(flags=("-d", "--detach"), dest="detach", kind="flag", help="Print the id and return at once."),
        Option(
            flags=("--tmux",), dest="tmux", kind="flag", help="Open its tmux window at once, for 'attach'."
        ),
        JSON.evolve(help="Print the manifest (at the end, or with -d the new one) instead of the id."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Make the task, start its runner, and follow it unless told not to."""
    home = Home(paths.ensure_home(paths.home()))
    every_s = None if values["detach"] else _interval_s()
    task = from_command_line.read(values)
    task_id = task.spec.task_id
    try:
        packet = _begin(home, task)
        if values["tmux"] or task.settings.get("tmux") == "always":
            _open_window(packet)
        if values["detach"]:
            out.task_line(task_id, load.read_manifest(packet) if values["json"] else None)
            return 0
        if not values["json"]:
            out.task_line(task_id)
        from holdfast.views.cli.follow import follower  # loaded for those who stay

        manifest = follower.follow(packet, every_s)
    except KeyboardInterrupt:
        _say_goodbye(home.packet(task_id))
        return 130
    if values["json"]:
        out.task_line(task_id, manifest)
    return follower.report(packet, manifest)


def _interval_s() -> float | None:
    """Read before the task is made: what is wrong with it is refused, and nothing has changed."""
    from holdfast.views.cli.follow import follower

    return follower.interval_s()


def _begin(home: Home, task: NewTask) -> Packet:
    """A task that exists has a runner: Ctrl-C waits until both do. What cannot be made leaves a home that is down as it is."""
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        packet = new_task.create(home, task, status=Status.SPAWNING)
        allow_keeper(home)
        start_runner(packet)
        _ensure_keeper(home)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    return packet


def _ensure_keeper(home: Home) -> None:
    """The task runs already: what keeps the keeper from starting is told, and no more."""
    try:
        ensure_keeper(home, by_person=True)
    except (OSError, HoldfastError) as error:
        out.talk(f"warning: no keeper was started: {error}")


def _open_window(packet: Packet) -> None:
    """The task does not need it, so it fails in words only."""
    from holdfast.views.cli.commands import attach

    try:
        attach.open_window(packet)
    except HoldfastError as error:
        out.talk(f"warning: no window: {error}")


def _say_goodbye(packet: Packet) -> None:
    if not os.path.exists(packet.path):
        return
    out.talk(f"detached; {packet.task_id} goes on. To come back:")
    for command, meaning in (
        ("attach", "watch it"),
        ("logs -f", "its output"),
        ("wait", "until it has ended"),
    ):
        out.step(f"holdfast {command} {packet.task_id}", meaning)
    out.step(f"holdfast stop {packet.task_id}", "end it")
