"""holdfast demo: kill agent, runner and keeper of a task, and see what becomes of it."""

from __future__ import annotations

import os
import shlex
import signal

from holdfast.errors import HoldfastError, UsageError
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.views.demo.world import World

#: Whoever sends one of these wants the demo gone, with all that it started.
_STOPS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)

COMMAND = Command(
    name="demo",
    summary="See holdfast hold on: a task whose agent, runner and keeper are killed.",
    description="Runs a scripted agent, which costs nothing, in a home of its own. It kills agent, runner and keeper "
    "with SIGKILL while the agent works, and shows what noticed and healed it, with the measured times. Takes a few "
    "seconds, and leaves no process behind.",
    examples=("holdfast demo", "holdfast demo --home ./demo", "holdfast demo --json"),
    options=(
        Option(
            flags=("--home",),
            dest="home",
            metavar="DIR",
            completes="folder",
            help="An empty directory for its files (default: a new temporary one).",
        ),
        JSON,
    ),
)


class _Stopped(KeyboardInterrupt):
    """A signal came: the demo ends here, and so does what it started."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run(values: dict[str, Any]) -> int:
    """Perform it; anything that does not hold is an error."""
    from holdfast.views.demo.warden import Warden
    from holdfast.views.demo.world import World

    _listen()
    world = World(_folder(values["home"]))
    warden = Warden(world, removes=values["home"] is None)
    say = out.talk if values["json"] else _print
    try:
        warden.begin()
        say(f"The demo works in {world.folder}")
        facts = _perform(world, say)
    except _Stopped as stopped:
        return _clear_up(world, stopped.number, is_ours=values["home"] is None)
    finally:
        warden.dismiss()
    say("  ok  keeper and seed are stopped, no process is left")
    if values["json"]:
        out.data(facts)
    else:
        _tell(world.folder, facts)
    return 0


def _perform(world: World, say: Callable[[str], None]) -> dict[str, Any]:
    """All acts, and what they started is gone, whether they went well or not."""
    from holdfast.views.demo.play import Demo

    try:
        facts = Demo(world, say).run()
    except Exception:
        world.leave()
        raise
    world.leave()
    return facts


def _listen() -> None:
    """Be told of signals, but for those that whoever started us has shut out (nohup, a shell in the background)."""
    for number in _STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, frame: object) -> None:
    # A second Ctrl-C would leave half of the first one's work undone. A handler, as what we start inherits an ignored signal.
    for other in _STOPS:
        if signal.getsignal(other) is _stop:
            signal.signal(other, _not_again)
    raise _Stopped(number)


def _not_again(number: int, frame: object) -> None:
    """Nothing: we are leaving."""


def _clear_up(world: World, number: int, *, is_ours: bool) -> int:
    """End what the demo started, remove a folder that nobody asked for, and say so."""
    try:
        world.leave()
    except HoldfastError as error:
        out.complain(error)
    if is_ours:
        import shutil

        shutil.rmtree(world.folder, ignore_errors=True)
    left = f"; its files are in {world.folder}" if os.path.isdir(world.folder) else ""
    out.talk(f"demo stopped{left}")
    return 128 + number


def _tell(folder: str, facts: dict[str, Any]) -> None:
    print(f"\nIt took {facts['seconds']:.1f} seconds. The files are in {folder}:")
    packet = os.path.join("home", "tasks", facts["task_id"])
    for path, what in (
        (os.path.join("project", "result.txt"), "what the agent wrote"),
        (os.path.join(packet, "events.jsonl"), "every fact, in order"),
        (os.path.join(packet, "outputs", "_summary.md"), "the summary"),
        (os.path.join("home", "keeper.log"), "both keepers"),
    ):
        print(f"  {path}\n      {what}")
    name = _program()
    print("\nTry next:")
    for words, what in (
        ("run -- sh -c 'sleep 9; date'", "and kill what you like"),
        ("ls", "what there is"),
        ("--help", "the rest"),
    ):
        print(f"  {name + ' ' + words:46} {what}".rstrip())
    print(f"  {shlex.join(['rm', '-r', folder]):46} remove these files")


def _program() -> str:
    """What a person types to run us."""
    import shutil
    import sys

    if shutil.which("holdfast"):
        return "holdfast"
    return sys.argv[0] if os.path.basename(sys.argv[0]) == "holdfast" else "python -m holdfast"


def _folder(given: str | None) -> str:
    if given is None:
        import tempfile

        return tempfile.mkdtemp(prefix="holdfast-demo-")
    path = os.path.abspath(given)
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        is_empty = not os.listdir(path)
    except OSError as error:
        raise UsageError(
            f"--home {given}: {error.strerror}", hint="name a directory that you can write"
        ) from error
    if not is_empty:
        raise UsageError(
            f"--home {given} is not empty",
            hint="the demo kills a keeper: it wants a directory for itself",
        )
    return path


def _print(text: str) -> None:
    print(text, flush=True)
