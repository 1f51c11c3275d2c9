"""holdfast up: let the keeper of this home work."""

from __future__ import annotations

import os
import signal
import sys

from holdfast import clock, paths, spawn
from holdfast.errors import CorruptFile, NotPossible, UsageError
from holdfast.packet import inbox
from holdfast.store import atomic, audit, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.process import ProcessIdentity

_START_S = 10.0

COMMAND = Command(
    name="up",
    summary="Start the keeper: it guards every task of this home, brings back what died, and works the queue.",
    description="It is also started by 'run', and by 'submit' unless the home is down. What 'up' starts stays until 'down'. In the foreground, Ctrl-C "
    "ends the loop: running tasks of the queue are interrupted with their context kept, and 'resume' goes on.",
    examples=("holdfast up", "holdfast up --slots 4", "holdfast up --foreground --max-iterations 10"),
    options=(
        Option(
            flags=("--foreground",), dest="foreground", kind="flag", help="Be the keeper, in this process."
        ),
        Option(
            flags=("--slots",), dest="slots", metavar="N", help="Tasks of the queue at the same time (1)."
        ),
        Option(
            flags=("--max-iterations",),
            dest="max_iterations",
            metavar="N",
            help="Start so many tasks of the queue and no more (0: no limit).",
        ),
        Option(
            flags=("--iteration-delay",),
            dest="iteration_delay",
            metavar="TIME",
            help="Pause of a slot between two tasks (5s).",
        ),
        JSON.evolve(help="Print the status of the home, as 'status' does."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Lift `down`, and make sure that a keeper lives."""
    _check_settings()
    home = Home(paths.ensure_home(paths.home()))
    asked = {**_loop(values), "project": _here()}
    if values["foreground"]:
        _refuse_second(home)
    spawn.allow_keeper(home)
    if os.environ.get("HOLDFAST_KEEPER") == "off":
        raise NotPossible("HOLDFAST_KEEPER=off: no keeper is wanted here", hint="unset it, then try again")
    # Whoever is the keeper now, and whoever becomes it after a crash, stays, and goes on like this.
    atomic.write_json(
        home.up, {"schema": "holdfast.up/1", "at": clock.iso_now(), "loop": asked}, durable=True
    )
    audit.append(home, {"operation": "home.up", "by": audit.whoami(), "reason": asked["project"]})
    _begin_anew(home)
    if values["foreground"]:
        os.environ["HOLDFAST_ROLE"] = "keeper"
        for name in spawn.ATTEMPT_VARIABLES:
            os.environ.pop(name, None)
        # Until it can answer: what loads in between would show a traceback.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast.keeper", "--foreground"])
    spawn.ensure_keeper(home, by_person=True, for_good=True)
    owner = _await_keeper(home)
    inbox.ring_keeper(home)  # one that lived already goes on by what was asked now
    if values["json"]:
        from holdfast.views.cli.commands import status

        out.data(status.look(home))
    else:
        out.talk(f"the keeper of {home.path} runs as process {owner.pid}")
    return 0


def _check_settings() -> None:
    """Whoever types 'up' is there to mend them. A keeper that is at work goes by the last good ones."""
    from holdfast.config import settings, variables

    settings.settle("/", os.environ)
    variables.check_keeper(os.environ)


def _refuse_second(home: Home) -> None:
    """A keeper in the background makes way; a loop in another foreground is somebody's."""
    if locks.is_held(home.keeper_lock) and locks.role(home.keeper_lock) == "loop":
        owner = locks.owner(home.keeper_lock)
        who = f" (process {owner.pid})" if owner is not None else ""
        raise NotPossible(
            f"a loop works this home in the foreground already{who}",
            hint="end it with Ctrl-C, or 'holdfast down'",
        )


def _loop(values: dict[str, Any]) -> dict[str, Any]:
    """What the flags say about the loop; the settings say the rest."""
    asked: dict[str, Any] = {}
    for name, least in (("slots", 1), ("max_iterations", 0)):
        if values[name] is not None:
            asked[name] = _count(name, values[name], least)
    if values["iteration_delay"] is not None:
        try:
            asked["iteration_delay_s"] = clock.parse_duration(values["iteration_delay"])
        except ValueError as error:
            raise UsageError(
                f"--iteration-delay: {error}", hint="for example --iteration-delay 5s"
            ) from error
    return asked


def _here() -> str:
    """Where what the sources bring is done; nowhere when this directory is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


#: Nobody counts further.
_DIGITS = 9


def _count(name: str, text: str, least: int) -> int:
    if not text.isdecimal() or len(text) > _DIGITS or int(text) < least:
        flag = f"--{name.replace('_', '-')}"
        raise UsageError(f"{flag} {text}: not a whole number from {least} on", hint=f"for example {flag} 4")
    return int(text)


def _begin_anew(home: Home) -> None:
    """Iterations are counted from here."""
    try:
        state = atomic.read_json(home.loop)
    except CorruptFile:
        return
    if state is not None:
        atomic.write_json(home.loop, {**state, "since_up": 0}, durable=False)


def _await_keeper(home: Home) -> ProcessIdentity:
    """The keeper that holds the lock. For a moment after it was taken, its text still names the one before."""
    ends_mono = clock.mono() + _START_S
    while True:
        owner = locks.owner(home.keeper_lock) if locks.is_held(home.keeper_lock) else None
        if owner is not None and process.is_alive(owner):
            return owner
        if clock.mono() > ends_mono:
            raise NotPossible(f"the keeper of {home.path} did not start", hint=f"look at {home.keeper_log}")
        clock.sleep(0.01)
