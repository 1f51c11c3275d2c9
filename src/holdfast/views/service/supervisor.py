"""Install, remove and inspect the unit through systemctl and loginctl, or launchctl."""

from __future__ import annotations

import os
import subprocess
import sys

from holdfast import paths, program_search
from holdfast.errors import NotPossible
from holdfast.spawn import is_unit_of, start_command
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.views import programs
from holdfast.views.service import unit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TIMEOUT_S = 30.0


class NoService(NotPossible):
    """Neither systemd nor launchd is available."""

    code = "no-service"


def keeper_of(home: Home) -> unit_text.KeeperUnit:
    """What the unit of this home starts."""
    return unit_text.KeeperUnit(
        home=home.path,
        is_default=home.path == paths.default_home(),
        python=sys.executable,
        log=home.keeper_log,
        config=paths.chosen_config(),
    )


def kind() -> str:
    """The supervisor of this platform: systemd or launchd."""
    return unit_text.LAUNCHD if sys.platform == "darwin" else unit_text.SYSTEMD


def text(keeper: unit_text.KeeperUnit, of_kind: str) -> str:
    """The unit's text."""
    return unit_text.launchd(keeper) if of_kind == unit_text.LAUNCHD else unit_text.systemd(keeper)


def path(keeper: unit_text.KeeperUnit, of_kind: str) -> str:
    """Where the unit is installed."""
    if of_kind == unit_text.LAUNCHD:
        return os.path.join(os.path.expanduser("~/Library/LaunchAgents"), f"{keeper.label}.plist")
    return os.path.join(paths.config_base(), "systemd", "user", keeper.unit_name)


def start_argv(keeper: unit_text.KeeperUnit, of_kind: str) -> list[str]:
    """The command that starts the keeper through the unit; absolute, as the caller's PATH is unknown."""
    if of_kind == unit_text.LAUNCHD:
        return [_program("launchctl"), "kickstart", f"{_domain()}/{keeper.label}"]
    # --no-block: a runner must never wait for systemd.
    return [_program("systemctl"), "--user", "start", "--no-block", keeper.unit_name]


def check_present(of_kind: str) -> None:
    """Raises NoService if the supervisor does not answer."""
    if of_kind == unit_text.LAUNCHD:
        argv = ["launchctl", "version"]
    else:
        argv = ["systemctl", "--user", "show-environment"]
    done = _try(argv)
    if done is None or done.returncode:
        raise NoService(
            f"{of_kind} is not available for this user: {_failure(done)}",
            hint="'holdfast up' works without it. Another supervisor can run 'holdfast up --foreground'; "
            "'holdfast service install --print' shows the unit",
        )


def install(home: Home, of_kind: str) -> list[str]:
    """Write and enable the unit, and enable lingering. Returns warnings. The caller starts the keeper."""
    keeper = keeper_of(home)
    target = path(keeper, of_kind)
    os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
    atomic.write(target, text(keeper, of_kind).encode("utf-8", "surrogateescape"), durable=True, mode=0o644)
    warnings: list[str] = []
    lingers_by_us = False
    if of_kind == unit_text.LAUNCHD:
        _try(["launchctl", "bootout", f"{_domain()}/{keeper.label}"])
        _do(["launchctl", "bootstrap", _domain(), target])
    else:
        _do(["systemctl", "--user", "daemon-reload"])
        _do(["systemctl", "--user", "enable", keeper.unit_name])
        lingers_by_us, warning = _enable_linger(home)
        warnings += [warning] if warning else []
    record = {
        "schema": "holdfast.service/1",
        "home": home.path,
        "kind": of_kind,
        "unit": keeper.label if of_kind == unit_text.LAUNCHD else keeper.unit_name,
        "path": target,
        "start": start_argv(keeper, of_kind),
        "lingers_by_us": lingers_by_us,
    }
    atomic.write_json(home.service, record, durable=True)
    return warnings


def remove(home: Home, record: dict[str, Any]) -> None:
    """Undo `install`: the record first, so that nothing starts the unit meanwhile."""
    atomic.remove(home.service)
    if not is_unit_of(home, record):
        return  # a copy of the record: the unit belongs to the original
    if start_command(record) is None:
        raise NotPossible(
            f"{home.service} was not written by holdfast", hint="remove the unit by hand if there is one"
        )
    # Of the record, only the name of the unit counts: an agent can write in the home.
    unit = str(record["unit"])
    of_kind = unit_text.SYSTEMD if unit.endswith(".service") else unit_text.LAUNCHD
    file = unit if of_kind == unit_text.SYSTEMD else f"{unit}.plist"
    target = os.path.join(os.path.dirname(path(keeper_of(home), of_kind)), file)
    if of_kind == unit_text.LAUNCHD:
        _try(["launchctl", "bootout", f"{_domain()}/{unit}"])
        atomic.remove(target)
        return
    _try(["systemctl", "--user", "disable", "--now", unit])
    atomic.remove(target)
    _try(["systemctl", "--user", "reset-failed", unit])
    _try(["systemctl", "--user", "daemon-reload"])
    if record.get("lingers_by_us") and not _other_units(os.path.dirname(target)):
        _try(["loginctl", "disable-linger"])


def start(record: dict[str, Any]) -> None:
    """Start the keeper through the unit."""
    command = start_command(record)
    if command is None:
        raise NotPossible("service.json was not written by holdfast", hint="'holdfast service install'")
    _do(command)


def status(home: Home) -> dict[str, Any]:
    """What is installed and its state, as `service status --json` prints it."""
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
    if start_command(record) is None:
        return {**facts, "state": "unknown"}  # an agent can write the record, also a name that is an option
    if record.get("kind") == unit_text.LAUNCHD:
        done = _try(["launchctl", "print", f"{_domain()}/{name}"])
        return {**facts, "state": "loaded" if done is not None and not done.returncode else "not loaded"}
    facts["state"] = _output(["systemctl", "--user", "is-active", name])
    facts["enabled"] = _output(["systemctl", "--user", "is-enabled", name])
    facts["lingers"] = _lingers()
    return facts


def _lingers() -> bool:
    return _output(["loginctl", "show-user", _user(), "--property=Linger", "--value"]) == "yes"


def _enable_linger(home: Home) -> tuple[bool, str]:
    """Whether holdfast enabled it, now or earlier, and a warning if it could not."""
    before = atomic.read_json(home.service) or {}
    if _lingers():
        return bool(before.get("lingers_by_us")), ""
    done = _try(["loginctl", "enable-linger"])
    if done is None or done.returncode:
        fix = f"run 'sudo loginctl enable-linger {_user()}'"
        return False, f"the unit will stop when you log out, as lingering is off ({_failure(done)}): {fix}"
    return True, ""


def _other_units(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith("holdfast") and name.endswith(".service")]


def _program(name: str) -> str:
    return program_search.find(name) or name


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _output(argv: list[str]) -> str:
    done = _try(argv)
    return (done.stdout.strip() if done is not None else "") or "unknown"


def _do(argv: list[str]) -> None:
    done = _try(argv)
    if done is None or done.returncode:
        raise NotPossible(
            f"'{' '.join(argv)}' failed: {_failure(done)}",
            hint="'holdfast service remove' undoes the install",
        )


def _try(argv: list[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        path = program_search.find(argv[0])
        return programs.run([path, *argv[1:]], timeout_s=_TIMEOUT_S) if path is not None else None
    except (OSError, subprocess.TimeoutExpired):
        return None


def _failure(done: subprocess.CompletedProcess[str] | None) -> str:
    return "not installed, or no answer" if done is None else programs.failure(done)
