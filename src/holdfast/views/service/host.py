"""What supervises processes on this machine: the unit is installed, removed and asked about through systemctl and loginctl, or launchctl."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from holdfast import paths
from holdfast.errors import NotPossible
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.views.service import unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TIMEOUT_S = 30.0


class NoService(NotPossible):
    """There is nothing here that could run a unit."""

    code = "no-service"


def keeper_of(home: Home) -> unit.Keeper:
    """What a unit of this home starts."""
    return unit.Keeper(
        home=home.path,
        is_default=home.path == paths.default_home(),
        python=sys.executable,
        log=home.keeper_log,
    )


def kind() -> str:
    """What supervises processes on this kind of machine."""
    return unit.LAUNCHD if sys.platform == "darwin" else unit.SYSTEMD


def text(keeper: unit.Keeper, of_kind: str) -> str:
    """The unit's text."""
    return unit.launchd(keeper) if of_kind == unit.LAUNCHD else unit.systemd(keeper)


def path(keeper: unit.Keeper, of_kind: str) -> str:
    """Where the unit belongs."""
    if of_kind == unit.LAUNCHD:
        return os.path.join(os.path.expanduser("~/Library/LaunchAgents"), f"{keeper.label}.plist")
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(base, "systemd", "user", keeper.unit_name)


def start_argv(keeper: unit.Keeper, of_kind: str) -> list[str]:
    """What starts the keeper through the unit; whoever needs a keeper runs it, with whatever PATH it has."""
    if of_kind == unit.LAUNCHD:
        return [_program("launchctl"), "kickstart", f"{_domain()}/{keeper.label}"]
    # --no-block: a runner must never wait for the machine's supervisor.
    return [_program("systemctl"), "--user", "start", "--no-block", keeper.unit_name]


def check_present(of_kind: str) -> None:
    """Raises NoService unless a supervisor answers."""
    argv = (
        ["launchctl", "version"] if of_kind == unit.LAUNCHD else ["systemctl", "--user", "show-environment"]
    )
    done = _try(argv)
    if done is None or done.returncode:
        said = _said(done)
        raise NoService(
            f"no {of_kind} answers for this user: {said}",
            hint="'holdfast up' works without it; something else can run 'holdfast up --foreground', and "
            "'holdfast service install --print' shows the unit",
        )


def install(home: Home, of_kind: str) -> list[str]:
    """Write the unit, enable it, let it linger. Returns what a person should know. The caller starts the keeper."""
    keeper = keeper_of(home)
    target = path(keeper, of_kind)
    os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
    atomic.write(target, text(keeper, of_kind).encode("utf-8", "surrogateescape"), durable=True, mode=0o644)
    notes: list[str] = []
    lingers_by_us = False
    if of_kind == unit.LAUNCHD:
        _try(["launchctl", "bootout", f"{_domain()}/{keeper.label}"])
        _do(["launchctl", "bootstrap", _domain(), target])
    else:
        _do(["systemctl", "--user", "daemon-reload"])
        _do(["systemctl", "--user", "enable", keeper.unit_name])
        lingers_by_us, note = _linger(home)
        notes += [note] if note else []
    record = {
        "schema": "holdfast.service/1",
        "kind": of_kind,
        "unit": keeper.label if of_kind == unit.LAUNCHD else keeper.unit_name,
        "path": target,
        "start": start_argv(keeper, of_kind),
        "lingers_by_us": lingers_by_us,
    }
    atomic.write_json(home.service, record, durable=True)
    return notes


def remove(home: Home, record: dict[str, Any]) -> None:
    """Undo `install`: first the record, so that nobody starts the unit while it goes away."""
    atomic.remove(home.service)
    if record.get("kind") == unit.LAUNCHD:
        _try(["launchctl", "bootout", f"{_domain()}/{record['unit']}"])
        atomic.remove(record["path"])
        return
    _try(["systemctl", "--user", "disable", "--now", record["unit"]])
    atomic.remove(record["path"])
    _try(["systemctl", "--user", "reset-failed", record["unit"]])
    _try(["systemctl", "--user", "daemon-reload"])
    if record.get("lingers_by_us") and not _others(os.path.dirname(record["path"])):
        _try(["loginctl", "disable-linger"])


def start(record: dict[str, Any]) -> None:
    """Start the keeper through the unit."""
    _do([str(word) for word in record["start"]])


def look(home: Home) -> dict[str, Any]:
    """What is installed and how it is doing, as JSON shows it."""
    record = atomic.read_json(home.service)
    if record is None:
        return {"schema": "holdfast.service-status/1", "is_installed": False}
    name = str(record.get("unit"))
    facts: dict[str, Any] = {
        "schema": "holdfast.service-status/1",
        "is_installed": True,
        "kind": record.get("kind"),
        "unit": name,
        "path": record.get("path"),
        "has_file": os.path.exists(str(record.get("path"))),
        "start": record.get("start"),
    }
    if record.get("kind") == unit.LAUNCHD:
        done = _try(["launchctl", "print", f"{_domain()}/{name}"])
        return {**facts, "state": "loaded" if done is not None and not done.returncode else "not loaded"}
    facts["state"] = _word(["systemctl", "--user", "is-active", name])
    facts["enabled"] = _word(["systemctl", "--user", "is-enabled", name])
    facts["lingers"] = _word(["loginctl", "show-user", _user(), "--property=Linger", "--value"]) == "yes"
    return facts


def _linger(home: Home) -> tuple[bool, str]:
    """Whether we switched it on, and what went wrong."""
    before = atomic.read_json(home.service) or {}
    if _word(["loginctl", "show-user", _user(), "--property=Linger", "--value"]) == "yes":
        return bool(before.get("lingers_by_us")), ""
    done = _try(["loginctl", "enable-linger"])
    if done is None or done.returncode:
        return False, (
            f"could not make the unit outlive your login ({_said(done)}): 'sudo loginctl enable-linger {_user()}'"
        )
    return True, ""


def _others(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith("holdfast") and name.endswith(".service")]


def _program(name: str) -> str:
    return shutil.which(name) or name


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _word(argv: list[str]) -> str:
    done = _try(argv)
    return (done.stdout.strip() if done is not None else "") or "unknown"


def _do(argv: list[str]) -> None:
    done = _try(argv)
    if done is None or done.returncode:
        raise NotPossible(
            f"'{' '.join(argv)}' failed: {_said(done)}", hint="'holdfast service remove' undoes it"
        )


def _try(argv: list[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _said(done: subprocess.CompletedProcess[str] | None) -> str:
    if done is None:
        return "it is not installed, or does not answer"
    return done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"status {done.returncode}"
