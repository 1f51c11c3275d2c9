"""holdfast service: let systemd or launchd look after the keeper."""

from __future__ import annotations

import os
import signal
import sys

from holdfast import clock, paths, spawn
from holdfast.errors import NotFound, Unanswered, UsageError
from holdfast.store import atomic, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out
from holdfast.views.service import host, unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_START_S = 10.0

COMMAND = Command(
    name="service",
    summary="Install the keeper as a service, so that tasks come back after a reboot.",
    description="A systemd user unit (launchd on macOS) for the keeper of this home. Stopping or restarting the unit "
    "stops the keeper only: tasks work on. 'status' exits 3 when none is installed.",
    examples=(
        "holdfast service install",
        "holdfast service install --print",
        "holdfast service status --json",
        "holdfast service remove",
    ),
    arguments=(
        Argument(dest="action", metavar="install|remove|status", choices=("install", "remove", "status")),
    ),
    options=(
        Option(flags=("--print",), dest="print", kind="flag", help="Print the unit and change nothing."),
        Option(
            flags=("--kind",),
            dest="kind",
            choices=(unit.SYSTEMD, unit.LAUNCHD),
            help="For --print: the unit of another kind of machine.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """One of the three."""
    if values["print"]:
        home = Home(paths.home())
        return _print(home, values["kind"] or host.kind(), as_json=values["json"])
    if values["kind"]:
        raise UsageError("--kind goes with --print", hint="a unit can be installed for this machine only")
    return {"install": _install, "remove": _remove, "status": _status}[values["action"]](values)


def _print(home: Home, of_kind: str, *, as_json: bool) -> int:
    keeper = host.keeper_of(home)
    text = host.text(keeper, of_kind)
    if as_json:
        path = host.path(keeper, of_kind)
        out.data({"schema": "holdfast.service-unit/1", "kind": of_kind, "path": path, "text": text})
    else:
        sys.stdout.write(text)
    return 0


def _install(values: dict[str, Any]) -> int:
    of_kind = host.kind()
    host.check_present(of_kind)
    home = Home(paths.ensure_home(paths.home()))
    notes = host.install(home, of_kind)
    record = atomic.read_json(home.service) or {}
    spawn.allow_keeper(home)
    _dismiss(home)
    host.start(record)
    ends_mono = clock.mono() + _START_S
    while not locks.is_held(home.keeper_lock):
        if clock.mono() > ends_mono:
            raise NotFound(
                f"{record['unit']} is installed, but no keeper came up",
                hint=f"'systemctl --user status {record['unit']}' says why",
            )
        clock.sleep(0.02)
    for note in notes:
        out.talk(f"warning: {note}")
    return _tell(values, host.look(home), f"installed {record['path']}")


def _dismiss(home: Home) -> None:
    """A keeper that was started without the unit would keep the unit's own out. This very one is sent away, and not the next:
    a runner may have started that through the unit meanwhile."""
    owner = locks.owner(home.keeper_lock) if locks.is_held(home.keeper_lock) else None
    ends_mono = clock.mono() + _START_S
    while owner is not None and process.is_alive(owner):
        if clock.mono() > ends_mono:
            raise Unanswered(f"keeper {owner.pid} did not leave within {_START_S:.0f}s", hint="try again")
        os.kill(owner.pid, signal.SIGTERM)
        os.kill(owner.pid, signal.SIGCONT)
        clock.sleep(0.05)


def _remove(values: dict[str, Any]) -> int:
    home = Home(paths.home())
    record = atomic.read_json(home.service)
    if record is None:
        raise NotFound(
            f"no service is installed for {home.path}", hint="'holdfast service install' installs one"
        )
    host.remove(home, record)
    return _tell(values, host.look(home), f"removed {record['path']}; tasks go on")


def _status(values: dict[str, Any]) -> int:
    facts = host.look(Home(paths.home()))
    if values["json"]:
        out.data(facts)
    elif facts["is_installed"]:
        for name in ("unit", "path", "state", "enabled", "lingers"):
            if name in facts:
                out.fact(name, _words(facts[name]), at=9)
        if not facts["has_file"]:
            out.talk("warning: the unit's file is gone; 'holdfast service install' writes it again")
    else:
        print("not installed")
    return 0 if facts["is_installed"] else 3


def _tell(values: dict[str, Any], facts: dict[str, Any], sentence: str) -> int:
    if values["json"]:
        out.data(facts)
    else:
        out.talk(sentence)
    return 0


def _words(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
