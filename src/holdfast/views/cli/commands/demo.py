"""holdfast demo: kill agent, runner and keeper of a task, and see what becomes of it."""

from __future__ import annotations

import os

from holdfast.errors import UsageError
from holdfast.views.cli import out
from holdfast.views.cli.spec import JSON, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


def run(values: dict[str, Any]) -> int:
    """Perform it; anything that does not hold is an error."""
    from holdfast.views.demo.play import Demo
    from holdfast.views.demo.world import World

    world = World(_folder(values["home"]))
    say = out.talk if values["json"] else _print
    try:
        facts = Demo(world, say).run()
    finally:
        world.leave()
    say("  ok  keeper and seed are stopped, no process is left")
    if values["json"]:
        out.data(facts)
    else:
        _tell(world.folder, facts)
    return 0


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
    print(f"  {'rm -r ' + folder:46} remove these files")


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
