"""holdfast service: run the keeper under systemd or launchd."""

from __future__ import annotations

import signal
import sys

from holdfast import clock, paths, spawn
from holdfast.errors import NotFound, Unanswered, UsageError
from holdfast.store import atomic, lock_holders, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Action, Argument, Command, Option, actions_help
from holdfast.views.cli.show import out
from holdfast.views.service import supervisor, unit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_START_S = 10.0

_ACTIONS = (
    Action(
        name="install",
        summary="install and start the unit",
        description="Writes a systemd user unit (launchd on macOS) for the keeper of this home, and starts "
        "it. 'loginctl enable-linger' lets it start at boot, without a login.",
        examples=("holdfast service install", "holdfast service install --print"),
        options=("print", "kind", "json"),
    ),
    Action(
        name="remove",
        summary="stop and remove the unit; tasks keep running",
        examples=("holdfast service remove",),
    ),
    Action(
        name="status",
        summary="show the unit and its keeper; exits 3 if there is none",
        examples=("holdfast service status --json",),
    ),
)

COMMAND = Command(
    name="service",
    summary="Install the keeper as a service; tasks survive a reboot.",
    description="Installs a systemd user unit (launchd on macOS) for the keeper of this home. Stopping or "
    "restarting the unit affects only the keeper: tasks keep running. 'status' exits 3 if no service is "
    "installed.\n\n" + actions_help(_ACTIONS),
    examples=(
        "holdfast service install",
        "holdfast service install --print",
        "holdfast service status --json",
        "holdfast service remove",
    ),
    arguments=(
        Argument(dest="action", metavar="install|remove|status", choices=("install", "remove", "status")),
    ),
    actions=_ACTIONS,
    options=(
        Option(flags=("--print",), dest="print", kind="flag", help="Print the unit without installing it."),
        Option(
            flags=("--kind",),
            dest="kind",
            choices=(unit_text.SYSTEMD, unit_text.LAUNCHD),
            help="For --print: kind of unit.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Run the action."""
    if values["print"]:
        home = Home(paths.home())
        return _print(home, values["kind"] or supervisor.kind(), as_json=values["json"])
    if values["kind"]:
        raise UsageError("--kind needs --print", hint="only a unit for this machine can be installed")
    return {"install": _install, "remove": _remove, "status": _status}[values["action"]](values)


def _print(home: Home, of_kind: str, *, as_json: bool) -> int:
    keeper = supervisor.keeper_of(home)
    text = supervisor.text(keeper, of_kind)
    if as_json:
        path = supervisor.path(keeper, of_kind)
        out.data({"schema": "holdfast.service-unit/1", "kind": of_kind, "path": path, "text": text})
    else:
        sys.stdout.write(text)
    return 0


def _install(values: dict[str, Any]) -> int:
    of_kind = supervisor.kind()
    supervisor.check_present(of_kind)
    home = Home(paths.ensure_home(paths.home()))
    notes = supervisor.install(home, of_kind)
    record = atomic.read_json(home.service) or {}
    spawn.allow_keeper(home)
    _stop_keeper(home)
    supervisor.start(record)
    ends_mono = clock.mono() + _START_S
    while not locks.is_held(home.keeper_lock):
        if clock.mono() > ends_mono:
            raise NotFound(
                f"{record['unit']} is installed, but the keeper did not start",
                hint=f"'systemctl --user status {record['unit']}' shows why",
            )
        clock.sleep(0.02)
    for note in notes:
        out.talk(f"warning: {note}")
    return _print_result(values, supervisor.status(home), f"installed {record['path']}")


def _stop_keeper(home: Home) -> None:
    """Stop a keeper that was started without the unit, as it would block the unit's.

    Only this process: its successor may already be one that a runner started through the unit.
    """
    owner = lock_holders.holder(home.keeper_lock) if locks.is_held(home.keeper_lock) else None
    ends_mono = clock.mono() + _START_S
    while owner is not None and process.is_alive(owner):
        if clock.mono() > ends_mono:
            raise Unanswered(f"keeper {owner.pid} did not exit within {_START_S:.0f}s", hint="try again")
        process.send(owner, signal.SIGTERM)
        process.send(owner, signal.SIGCONT)
        clock.sleep(0.05)


def _remove(values: dict[str, Any]) -> int:
    home = Home(paths.home())
    record = atomic.read_json(home.service)
    if record is None:
        raise NotFound(
            f"no service is installed for {home.path}", hint="install it with 'holdfast service install'"
        )
    supervisor.remove(home, record)
    return _print_result(values, supervisor.status(home), f"removed {record['path']}; tasks keep running")


def _status(values: dict[str, Any]) -> int:
    facts = supervisor.status(Home(paths.home()))
    if values["json"]:
        out.data(facts)
    elif facts["is_installed"]:
        for name in ("unit", "path", "state", "enabled", "lingers"):
            if name in facts:
                out.fact(name, _text(facts[name]), at=9)
        if not facts["has_file"]:
            out.talk("warning: the unit's file is missing; 'holdfast service install' rewrites it")
    else:
        print("not installed")
    return 0 if facts["is_installed"] else 3


def _print_result(values: dict[str, Any], facts: dict[str, Any], sentence: str) -> int:
    if values["json"]:
        out.data(facts)
    else:
        out.talk(sentence)
    return 0


def _text(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
