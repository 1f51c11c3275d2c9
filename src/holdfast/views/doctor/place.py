"""Questions to the home: is it ours, is there room, do its tasks read."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from shlex import quote

from holdfast import clock, spawn
from holdfast.config import settings, variables
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store import layout
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views import versions
from holdfast.views.doctor.finding import Finding, fail, ok, warn

_LITTLE_BYTES = 1024**3
_TOO_LITTLE_BYTES = 100 * 1024**2
#: A staging directory that is older was left by a killed command; the keeper removes it after an hour.
_STALE_S = 3600.0


def directory(home: Home) -> Finding:
    """It exists, is ours, and nobody else can write into it."""
    path = home.path
    try:
        found = os.stat(path)
    except FileNotFoundError:
        parent = path
        while not os.path.exists(parent):
            parent = os.path.dirname(parent)
        if not os.access(parent, os.W_OK):
            return fail(
                "home",
                f"{path} cannot be made: {parent} is not writable",
                "set HOLDFAST_HOME to a place of your own",
            )
        return ok("home", f"{path} (the first task makes it)")
    except OSError as error:
        return fail("home", f"{path}: {error.strerror}", "set HOLDFAST_HOME to a place of your own")
    trouble = _closed(path, found)
    if trouble is None and os.path.lexists(home.tasks):
        try:
            trouble = _closed(home.tasks, os.stat(home.tasks))
        except OSError as error:
            trouble = fail("home", f"{home.tasks}: {error.strerror}", "a link that leads nowhere? remove it")
    if trouble is not None:
        return trouble
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o055:
        return warn("home", f"other users can look into {path} (mode {mode:04o})", f"chmod 700 {quote(path)}")
    return ok("home", f"{path} (mode {mode:04o})")


def _closed(path: str, found: os.stat_result) -> Finding | None:
    """Why a directory is not ours to work in; None where it is."""
    elsewhere = "set HOLDFAST_HOME to a place of your own"
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        return fail("home", f"{path} is not a directory", elsewhere)
    if found.st_uid != os.geteuid():
        return fail("home", f"{path} belongs to uid {found.st_uid}", elsewhere)
    if mode & 0o022:
        return fail(
            "home", f"other users can write into {path} (mode {mode:04o})", f"chmod 700 {quote(path)}"
        )
    if os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return None
    if mode & 0o700 == 0o700:
        return fail("home", f"{path} is on a file system that cannot be written", elsewhere)
    return fail("home", f"you cannot write into {path} (mode {mode:04o})", f"chmod 700 {quote(path)}")


def disk(home: Home) -> Finding:
    """Room for logs and journals."""
    path = home.path
    while not os.path.exists(path):
        path = os.path.dirname(path)
    found = os.statvfs(path)
    free = found.f_bavail * found.f_frsize
    said = f"{free / 1024**3:.1f} GiB free"
    if free < _TOO_LITTLE_BYTES:
        return fail("disk", said, "free some space; 'holdfast rm' removes tasks that have ended")
    if free < _LITTLE_BYTES or (found.f_files and found.f_favail < 10000):
        return warn(
            "disk", f"{said}, {found.f_favail} inodes", "free some space; 'holdfast rm' removes tasks"
        )
    return ok("disk", said)


def filesystem(home: Home) -> Finding:
    """flock and rename work: they are the ground on which everything stands. Tried with a file of our own."""
    try:
        os.stat(home.path)
    except FileNotFoundError:
        return ok("filesystem", "not tried: there is no home yet")
    except OSError:
        return warn("filesystem", "not tried: the home cannot be looked at", "see 'home' above")
    if not os.access(home.path, os.W_OK):
        return warn("filesystem", "not tried: the home cannot be written", "see 'home' above")
    first = os.path.join(home.path, f".doctor-{os.getpid()}")
    second = first + ".renamed"
    try:
        with open(first, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not locks.is_held(first):
                return fail(
                    "filesystem", f"flock does not hold on {home.path}", "put the home on a local file system"
                )
            os.fsync(file.fileno())
        os.rename(first, second)
        os.mkfifo(first)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "error")
        return fail(
            "filesystem",
            f"{home.path} lacks flock, rename or FIFOs: {error.strerror} ({name})",
            "put the home on a local file system",
        )
    finally:
        for path in (first, second):
            if os.path.lexists(path):
                os.unlink(path)
    return ok("filesystem", "flock, rename and FIFOs work")


def keeper(home: Home) -> Finding:
    """Whether somebody looks after the home, and whether somebody should."""
    owner = locks.owner(home.keeper_lock) if locks.is_held(home.keeper_lock) else None
    seed = locks.owner(home.seed_lock) if locks.is_held(home.seed_lock) else None
    if owner is not None:
        with_seed = f"seed {seed.pid}" if seed is not None else "no seed"
        difference = versions.difference(home)
        if difference:
            return warn("keeper", difference, versions.CURE)
        return ok("keeper", f"process {owner.pid}, {with_seed}")
    if os.path.exists(home.down):
        return warn("keeper", "this home is down", "'holdfast up' lets it work again")
    starts = [at for at in spawn.keeper_starts(home) if clock.now() - at < spawn.STARTS_WINDOW_S]
    if len(starts) >= spawn.STARTS_LIMIT:
        return fail(
            "keeper", f"started {len(starts)} times in ten minutes, and dead", f"look at {home.keeper_log}"
        )
    live = [task_id for task_id in _readable(home) if _is_live(home, task_id)]
    queued = sum(_status(home, task_id) == Status.QUEUED for task_id in _readable(home))
    if queued:
        wait = "1 task waits" if queued == 1 else f"{queued} tasks wait"
        return warn("keeper", f"none runs, and {wait} in the queue", "'holdfast up' starts it")
    if live:
        are = "1 task is" if len(live) == 1 else f"{len(live)} tasks are"
        return warn("keeper", f"none runs, and {are} live", "'holdfast up' starts it")
    return ok("keeper", "none runs, none is needed: the first task starts it")


def service(home: Home) -> Finding:
    """Whether tasks come back after a reboot."""
    from holdfast.views.service import host

    try:
        facts = host.look(home)
    except CorruptFile as error:
        return warn("service", f"{error}", "'holdfast service install' writes it again")
    except HoldfastError as error:
        return warn("service", f"{error}", "see what is said of the home")
    if not facts["is_installed"]:
        return ok("service", "not installed; 'holdfast service install' brings tasks back after a reboot")
    if not facts["has_file"]:
        return warn("service", f"{facts['path']} is gone", "'holdfast service install' writes it again")
    said = f"{facts['unit']} is {facts.get('state', 'unknown')}"
    if facts.get("lingers") is False:
        return warn("service", f"{said}, and ends with your login", "loginctl enable-linger")
    return ok("service", said)


def config() -> Finding:
    """Whether the settings read."""
    try:
        found = settings.load(os.getcwd())
        variables.check_keeper(os.environ)
    except HoldfastError as error:
        return fail("config", f"{error}", error.hint or "correct the file")
    files = sorted({setting.where for setting in found.values()})
    return ok("config", ", ".join(files) if files else "nothing is set")


def staging(home: Home) -> Finding:
    """What commands left that were killed while they made a task."""
    try:
        names = [name for name in os.listdir(home.tasks) if name.startswith(".new-")]
    except OSError:
        names = []
    old = [name for name in names if _age_s(os.path.join(home.tasks, name)) > _STALE_S]
    if old:
        return warn(
            "staging",
            f"half-made tasks are left in {home.tasks}: {len(old)}",
            "'holdfast up': the keeper removes them",
        )
    return ok("staging", "nothing is left over")


def packets(home: Home) -> Finding:
    """Whether every task's journal reads."""
    broken: list[str] = []
    count = 0
    for task_id in _readable(home):
        count += 1
        try:
            load.fold(home.packet(task_id))
        except (HoldfastError, ValueError, KeyError, OSError) as error:
            broken.append(f"{task_id}: {error}")
    if broken:
        more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        return fail(
            "tasks",
            f"{broken[0]}{more}",
            "repair the journal from a backup, or remove the task with 'holdfast rm --force TASK'",
        )
    tasks = f"{count} {'task' if count == 1 else 'tasks'}, every journal reads"
    strays = _strays(home)
    if strays:
        return warn("tasks", f"{tasks}; {strays[0]} is no task", "move it elsewhere: only tasks belong there")
    return ok("tasks", tasks)


def _strays(home: Home) -> list[str]:
    """Plain files and links among the tasks, where an editor or a person left them. Everybody else passes them over."""
    try:
        with os.scandir(home.tasks) as entries:
            return sorted(entry.path for entry in entries if not layout.is_packet(entry))
    except OSError:
        return []


def _readable(home: Home) -> list[str]:
    try:
        return load.task_ids(home)
    except HoldfastError:
        return []


def _status(home: Home, task_id: str) -> str:
    """Empty where it cannot be read."""
    try:
        return str(load.read_manifest(home.packet(task_id))["status"])
    except (HoldfastError, KeyError, ValueError):
        return ""


def _is_live(home: Home, task_id: str) -> bool:
    try:
        return load.is_live(home.packet(task_id), _status(home, task_id))
    except ValueError:
        return False


def _age_s(path: str) -> float:
    try:
        return clock.now() - os.stat(path).st_mtime
    except OSError:
        return 0.0
