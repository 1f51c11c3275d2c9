"""Checks of what supervises tasks: settings, keeper, service."""

from __future__ import annotations

import os

from holdfast import spawn
from holdfast.config import settings, variables
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store import lock as locks
from holdfast.store import lock_owner, pulse
from holdfast.store.layout import Home
from holdfast.views import keeper_version
from holdfast.views.doctor.finding import Finding, fail, ok, warn
from holdfast.views.doctor.home import readable_ids
from holdfast.views.facts import home_status
from holdfast.views.text import keeper_settings


def config() -> Finding:
    """The settings are valid."""
    try:
        values = settings.load(os.getcwd())
        variables.check_keeper(os.environ)
    except HoldfastError as error:
        return fail("config", f"{error}", error.hint or "correct the file")
    files = sorted({setting.where for setting in values.values()})
    return ok("config", ", ".join(files) if files else "no settings files")


def keeper(home: Home) -> Finding:
    """A keeper is running, if one is needed."""
    owner = lock_owner.owner(home.keeper_lock) if locks.is_held(home.keeper_lock) else None
    seed = lock_owner.owner(home.seed_lock) if locks.is_held(home.seed_lock) else None
    if owner is not None:
        if pulse.is_stopped(owner):
            return warn("keeper", f"process {owner.pid} is stopped by a signal", "'holdfast up' wakes it")
        mismatch = keeper_version.mismatch(home)
        if mismatch:
            return warn("keeper", mismatch, keeper_version.FIX)
        if mismatch := keeper_settings.mismatch(home):
            return warn("keeper", mismatch, keeper_settings.FIX)
        if found := home_status.faults(home):
            return warn("keeper", "; ".join(found), f"see {home.keeper_log}")
        return ok("keeper", f"process {owner.pid}, {f'seed {seed.pid}' if seed is not None else 'no seed'}")
    if os.path.exists(home.down):
        return warn("keeper", "this home is down", "'holdfast up' starts the keeper")
    failures = spawn.keeper_failures(home)
    if failures >= spawn.FAILURES_SHOWN:
        return fail("keeper", f"not running, after {failures} failed starts", f"see {home.keeper_log}")
    task_ids = readable_ids(home)
    live = sum(_is_live(home, task_id) for task_id in task_ids)
    queued = sum(_status(home, task_id) == Status.QUEUED for task_id in task_ids)
    if live or queued:
        needed = ((live, "live"), (queued, "queued"))
        tasks = " and ".join(_are(count, word) for count, word in needed if count)
        return warn("keeper", f"not running, but {tasks}", "'holdfast up' starts it")
    return ok("keeper", "not running and not needed; the first task starts it")


def _are(count: int, what: str) -> str:
    return f"1 task is {what}" if count == 1 else f"{count} tasks are {what}"


def service(home: Home) -> Finding:
    """Whether tasks come back after a reboot."""
    from holdfast.views.service import supervisor

    try:
        facts = supervisor.status(home)
    except CorruptFile as error:
        has_home = os.path.isdir(home.path)
        fix = "'holdfast service install' rewrites it" if has_home else "see 'home' above"
        return warn("service", f"{error}", fix)
    except HoldfastError as error:
        return warn("service", f"{error}", "see 'home' above")
    if not facts["is_installed"]:
        return ok("service", "not installed; 'holdfast service install' brings tasks back after a reboot")
    if not facts["has_file"]:
        return warn("service", f"{facts['path']} is missing", "'holdfast service install' rewrites it")
    message = f"{facts['unit']} is {facts.get('state', 'unknown')}"
    if facts.get("lingers") is False:
        return warn("service", f"{message}, but stops when you log out", "loginctl enable-linger")
    return ok("service", message)


def _status(home: Home, task_id: str) -> str:
    """Empty if unreadable."""
    try:
        return str(load.read_manifest(home.packet(task_id))["status"])
    except (HoldfastError, KeyError, ValueError):
        return ""


def _is_live(home: Home, task_id: str) -> bool:
    try:
        return load.is_live(home.packet(task_id), _status(home, task_id))
    except ValueError:
        return False
