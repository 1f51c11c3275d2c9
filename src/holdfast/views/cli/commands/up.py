"""holdfast up: let the keeper of this home work."""

from __future__ import annotations

import os
import sys

from holdfast import clock, paths, start
from holdfast.errors import NotPossible
from holdfast.store import atomic, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views.cli import out
from holdfast.views.cli.spec import JSON, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.process import ProcessIdentity

_START_S = 10.0

COMMAND = Command(
    name="up",
    summary="Start the keeper: it guards every task of this home and brings back what died.",
    description="It is also started by 'run'. What 'up' starts stays until 'down'.",
    examples=("holdfast up", "holdfast up --foreground"),
    options=(
        Option(
            flags=("--foreground",), dest="foreground", kind="flag", help="Be the keeper, in this process."
        ),
        JSON.evolve(help="Print the status of the home, as 'status' does."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Lift `down`, and make sure that a keeper lives."""
    home = Home(paths.ensure_home(paths.home()))
    lift(home)
    if os.environ.get("HOLDFAST_KEEPER") == "off":
        raise NotPossible("HOLDFAST_KEEPER=off: no keeper is wanted here", hint="unset it, then try again")
    if values["foreground"]:
        os.environ["HOLDFAST_ROLE"] = "keeper"
        for name in start.OF_ATTEMPTS:
            os.environ.pop(name, None)
        os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast.keeper"])
    # Whoever is the keeper now, and whoever becomes it after a crash, stays.
    atomic.write_json(home.up, {"schema": "holdfast.up/1", "at": clock.iso_now()}, durable=True)
    start.ensure_keeper(home, by_person=True, for_good=True)
    owner = _await_keeper(home)
    if values["json"]:
        from holdfast.views.cli.commands import status

        out.data(status.look(home))
    else:
        out.talk(f"the keeper of {home.path} runs as process {owner.pid}")
    return 0


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


def lift(home: Home) -> None:
    """Only `up` and `run` remove the flag."""
    if os.path.exists(home.down):
        atomic.remove(home.down)
        atomic.sync_directory(home.path)
