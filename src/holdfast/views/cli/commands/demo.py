"""holdfast demo: kill a task's agent, runner and keeper, and time the recovery."""

from __future__ import annotations

import os
import shlex
import signal

from holdfast import extras
from holdfast.errors import HoldfastError, UsageError
from holdfast.store import foreign
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.views.demo.world import DemoWorld

#: Signals that stop the demo, after it has cleaned up.
_STOPS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)

COMMAND = Command(
    name="demo",
    summary="Run a short demo: kill a task's processes and time the recovery.",
    description="Runs a scripted agent, which costs nothing, in a separate home. Kills agent, runner and "
    "keeper with SIGKILL while the agent works, and shows how each is noticed and recovered, with measured "
    "times. Takes a few seconds and leaves no process behind.",
    examples=("holdfast demo", "holdfast demo --home ./demo", "holdfast demo --json"),
    options=(
        Option(
            flags=("--home",),
            dest="home",
            metavar="DIR",
            completes="folder",
            help="Empty directory for its files (default: temporary).",
        ),
        JSON,
    ),
)


class _Stopped(KeyboardInterrupt):
    """A signal stopped the demo."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run(values: dict[str, Any]) -> int:
    """Run the demo; a claim that does not hold is an error."""
    from holdfast.views.demo.cleanup_guard import CleanupGuard
    from holdfast.views.demo.world import DemoWorld

    _install_handlers()
    world = DemoWorld(_folder(values["home"]))
    is_temporary = values["home"] is None
    guard = CleanupGuard(world, removes_folder=is_temporary)
    say = out.talk if values["json"] else _print
    try:
        guard.begin()
        say(f"The demo runs in {world.folder}")
        facts = _perform(world, say)
    except _Stopped as stopped:
        return _clean_up(world, stopped.number, is_temporary=is_temporary)
    finally:
        guard.dismiss()
    say("  ok  keeper and seed are stopped, no process is left")
    if values["json"]:
        out.data(facts)
    else:
        _print_next_steps(world.folder, facts)
    return 0


def _perform(world: DemoWorld, say: Callable[[str], None]) -> dict[str, Any]:
    """Run all acts, then stop what they started, also after an error."""
    from holdfast.views.demo.acts import Demo

    try:
        facts = Demo(world, say).run()
    except Exception:
        world.leave()
        raise
    world.leave()
    return facts


def _install_handlers() -> None:
    """Handle the stop signals, except those the caller ignores (nohup, a background job)."""
    for number in _STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, frame: object) -> None:
    # A second Ctrl-C must not interrupt the cleanup. Not SIG_IGN: child processes would inherit that.
    for other in _STOPS:
        if signal.getsignal(other) is _stop:
            signal.signal(other, _ignore)
    raise _Stopped(number)


def _ignore(number: int, frame: object) -> None:
    """Already stopping."""


def _clean_up(world: DemoWorld, number: int, *, is_temporary: bool) -> int:
    """Stop what the demo started, and remove a temporary folder. Returns the exit status."""
    try:
        world.leave()
    except HoldfastError as error:
        out.complain(error)
    if is_temporary:
        import shutil

        shutil.rmtree(world.folder, ignore_errors=True)
    files = f"; its files are in {world.folder}" if os.path.isdir(world.folder) else ""
    out.talk(f"demo stopped{files}")
    return 128 + number


def _print_next_steps(folder: str, facts: dict[str, Any]) -> None:
    print(f"\nIt took {facts['seconds']:.1f} seconds. The files are in {folder}:")
    home = Home("home")
    packet = home.packet(facts["task_id"])
    for path, meaning in (
        (os.path.join("project", "result.txt"), "what the agent wrote"),
        (packet.journal, "the journal"),
        (packet.summary, "the summary"),
        (home.keeper_log, "the log of both keepers"),
    ):
        print(f"  {path}\n      {meaning}")
    program = _program()
    print("\nTry next:")
    for words, meaning in (
        ("run -- sh -c 'sleep 9; date'", "(kill any of its processes)"),
        ("ls", "(list tasks)"),
        ("--help", "(list all verbs)"),
    ):
        print(f"  {program + ' ' + words:46} {meaning}".rstrip())
    print(f"  {shlex.join(['rm', '-r', folder]):46} (remove these files)")
    home_path = shlex.quote(os.path.join(folder, "home"))
    print("\nSee what happened to this task in a browser:")
    if not _has_web():
        print(f"  {extras.how_to_install('web')}")
    print(f"  HOLDFAST_HOME={home_path} \\\n      {program} serve {facts['task_id']}")


def _has_web() -> bool:
    """Whether what `serve` needs is installed."""
    from importlib.util import find_spec

    return find_spec("starlette") is not None and find_spec("uvicorn") is not None


def _program() -> str:
    """The command that runs holdfast here."""
    import shutil
    import sys

    if shutil.which("holdfast"):
        return "holdfast"
    return sys.argv[0] if os.path.basename(sys.argv[0]) == "holdfast" else "python -m holdfast"


def _folder(chosen: str | None) -> str:
    if chosen is None:
        import tempfile

        return tempfile.mkdtemp(prefix="holdfast-demo-")
    foreign.refuse_way_out(chosen)
    path = os.path.abspath(chosen)
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        is_empty = not os.listdir(path)
    except OSError as error:
        raise UsageError(f"--home {chosen}: {error.strerror}", hint="give a writable directory") from error
    if not is_empty:
        raise UsageError(f"--home {chosen} is not empty", hint="the demo needs an empty directory")
    return path


def _print(text: str) -> None:
    print(text, flush=True)
