"""Checks of the home: permissions, disk, file system, tasks."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from shlex import quote

from holdfast import clock, paths
from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS
from holdfast.packet import load
from holdfast.store import admitted, home_records, layout
from holdfast.store import lock as locks
from holdfast.store.layout import NEW_PREFIX, Home, Packet
from holdfast.views.doctor import mounts
from holdfast.views.doctor.finding import Finding, fail, ok, warn
from holdfast.views.text import amounts

_LOW_BYTES = 1024**3
_TOO_LOW_BYTES = 100 * 1024**2
_LOW_INODES = 10000
#: The keeper removes staging directories after this time.
_STALE_S = 3600.0
#: How many unreadable tasks are named.
_NAMED = 10
_OWN_DIRECTORY = "set HOLDFAST_HOME to a directory of yours"


def directory(home: Home) -> Finding:
    """The home belongs to the user, and nobody else can write to it."""
    path = home.path
    try:
        state = os.stat(path)
    except FileNotFoundError:
        parent = _existing(path)
        if not os.access(parent, os.W_OK):
            return fail("home", f"cannot create {path}: {parent} is not writable", _OWN_DIRECTORY)
        return ok("home", f"{path} (created with the first task)")
    except OSError as error:
        return fail("home", f"{path}: {error.strerror}", _OWN_DIRECTORY)
    problem = _access_problem(path, state)
    if problem is None and os.path.islink(home.tasks):
        fix = "remove the link, which an agent may have made; give the directory of the tasks its name again"
        return fail("home", f"{home.tasks} is a symbolic link, which is not followed", fix)
    if problem is None and os.path.lexists(home.tasks):
        try:
            problem = _access_problem(home.tasks, os.stat(home.tasks))
        except OSError as error:
            problem = fail("home", f"{home.tasks}: {error.strerror}", _OWN_DIRECTORY)
    if problem is not None:
        return problem
    mode = stat.S_IMODE(state.st_mode)
    if mode & 0o055:
        return warn("home", f"other users can read {path} (mode {mode:04o})", f"chmod 700 {quote(path)}")
    return ok("home", f"{path} (mode {mode:04o})")


def _access_problem(path: str, state: os.stat_result) -> Finding | None:
    """Why a directory cannot be used; None if it can."""
    mode = stat.S_IMODE(state.st_mode)
    if not stat.S_ISDIR(state.st_mode):
        return fail("home", f"{path} is not a directory", _OWN_DIRECTORY)
    if state.st_uid != os.geteuid():
        return fail("home", f"{path} belongs to uid {state.st_uid}", _OWN_DIRECTORY)
    if mode & 0o022:
        return fail("home", f"other users can write to {path} (mode {mode:04o})", f"chmod 700 {quote(path)}")
    if os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return None
    if mode & 0o700 == 0o700:
        return fail("home", f"{path} is on a read-only file system", _OWN_DIRECTORY)
    return fail("home", f"you cannot write to {path} (mode {mode:04o})", f"chmod 700 {quote(path)}")


def records(home: Home) -> Finding:
    """What vouches for tasks is where agents do not write."""
    place = layout.records_of(home.path)
    if place == home.path:
        return warn(
            "records",
            f"in the home, because {paths.trust_dir()} cannot be written: an agent without a sandbox can "
            "forge a task",
            "make that directory writable; then 'holdfast resume --adopt' continues unfinished tasks",
        )
    if problem := home_records.write_problem(place):
        return fail("records", problem, "make it a directory of yours, mode 0700, that can be written")
    unknown = [task_id for task_id in readable_ids(home) if _is_unknown(home.packet(task_id))]
    if unknown:
        names = ", ".join(unknown[:_NAMED]) + (", …" if len(unknown) > _NAMED else "")
        return warn(
            "records",
            f"{place} has no record of {amounts.plural(len(unknown), 'unfinished task')}, so the keeper does "
            f"not run them: {names}",
            "use the XDG_CONFIG_HOME (or HOME) with which they were created; if the settings were lost, "
            "'holdfast resume --adopt --all' shows what they would run, and asks",
        )
    return ok("records", place if os.path.isdir(place) else "made with the first task")


def _is_unknown(packet: Packet) -> bool:
    """Whether it is a task that would be run, if a command had created it."""
    try:
        is_left = load.read_manifest(packet)["status"] not in ENDS and not locks.is_held(packet.runner_lock)
    except (HoldfastError, KeyError):
        return False  # reported elsewhere
    return is_left and not admitted.is_admitted(packet)


def disk(home: Home) -> Finding:
    """Free space for logs and journals."""
    state = os.statvfs(_existing(home.path))
    free_bytes = state.f_bavail * state.f_frsize
    message = f"{free_bytes / 1024**3:.1f} GiB free"
    fix = "free some space; 'holdfast prune' removes old tasks"
    if free_bytes < _TOO_LOW_BYTES:
        return fail("disk", message, fix)
    if free_bytes < _LOW_BYTES or (state.f_files and state.f_favail < _LOW_INODES):
        return warn("disk", f"{message}, {state.f_favail} inodes", fix)
    return ok("disk", message)


def filesystem(home: Home) -> Finding:
    """flock, rename and FIFOs work, on which everything relies. Tested with a temporary file."""
    try:
        os.stat(home.path)
    except FileNotFoundError:
        return ok("filesystem", "not tested: the home does not exist yet")
    except OSError:
        return warn("filesystem", "not tested: cannot access the home", "see 'home' above")
    if not os.access(home.path, os.W_OK):
        return warn("filesystem", "not tested: cannot write to the home", "see 'home' above")
    first = os.path.join(home.path, f".doctor-{os.getpid()}")
    second = first + ".renamed"
    try:
        with open(first, "xb") as file:  # never through a link
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not locks.is_held(first):
                return fail(
                    "filesystem", f"flock has no effect in {home.path}", "put the home on a local file system"
                )
            os.fsync(file.fileno())
        os.rename(first, second)
        os.mkfifo(first)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "error")
        return fail(
            "filesystem",
            f"{home.path} does not support flock, rename or FIFOs: {error.strerror} ({name})",
            "put the home on a local file system",
        )
    finally:
        for path in (first, second):
            if os.path.lexists(path):
                os.unlink(path)
    kind = mounts.kind_of(home.path)
    if mounts.is_unreliable(kind):
        return warn(
            "filesystem",
            f"flock, rename and FIFOs work, but {home.path} is on {kind}: locks of other machines may not be "
            "seen, and may be lost with the connection",
            "put the home on a local file system",
        )
    return ok("filesystem", f"flock, rename and FIFOs work{f' ({kind})' if kind else ''}")


def staging(home: Home) -> Finding:
    """Half-created tasks, left by commands that were killed."""
    try:
        names = [name for name in os.listdir(home.tasks) if name.startswith(NEW_PREFIX)]
    except OSError:
        names = []
    old = [name for name in names if _age_s(os.path.join(home.tasks, name)) > _STALE_S]
    if old:
        return warn(
            "staging",
            f"leftover temporary directories in {home.tasks}: {len(old)}",
            "'holdfast up': the keeper removes them",
        )
    return ok("staging", "no leftover temporary files")


def tasks(home: Home) -> Finding:
    """Every task's journal is readable."""
    problems: list[str] = []
    task_ids = readable_ids(home)
    for task_id in task_ids:
        try:
            load.fold(home.packet(task_id))
        except (HoldfastError, ValueError, KeyError, OSError) as error:
            problems.append(f"{task_id}: {error}")
    if problems:
        more = f" and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        return fail(
            "tasks",
            f"{'; '.join(problems[:_NAMED])}{more}",
            "restore the journal from a backup, or remove the task with 'holdfast rm --force TASK'",
        )
    message = f"{len(task_ids)} {'task' if len(task_ids) == 1 else 'tasks'}, all journals readable"
    strays = _strays(home)
    if strays:
        return warn(
            "tasks", f"{message}; {strays[0]} is not a task", "move it away: the directory is for tasks only"
        )
    return ok("tasks", message)


def readable_ids(home: Home) -> list[str]:
    """The ids of all tasks; empty if they cannot be listed."""
    try:
        return load.task_ids(home)
    except HoldfastError:
        return []


def _strays(home: Home) -> list[str]:
    """Files and links between the tasks; every other command ignores them."""
    try:
        with os.scandir(home.tasks) as entries:
            return sorted(entry.path for entry in entries if not layout.is_packet(entry))
    except OSError:
        return []


def _existing(path: str) -> str:
    """The path, or its closest parent that exists."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def _age_s(path: str) -> float:
    try:
        return clock.now() - os.stat(path).st_mtime
    except OSError:
        return 0.0
