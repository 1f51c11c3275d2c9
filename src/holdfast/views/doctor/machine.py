"""Checks of the machine: Python, kernel, clock, programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import holdfast
from holdfast import __version__, clock, own_python, program_search, spawn
from holdfast.errors import GitMissing, HoldfastError, ProcMissing
from holdfast.store import process
from holdfast.views import programs, tmux
from holdfast.views.doctor.finding import Finding, fail, ok, warn

_OLDEST_PYTHON = (3, 11)
#: Enough for a hundred tasks: a runner watches a few files.
_INSTANCES, _WATCHES = 128, 8192
#: 2025-01-01: an earlier clock is wrong.
_NOT_BEFORE = 1735689600.0
_TRIAL_S = 5.0
#: Against sleep that cannot be inhibited.
_AWAKE = "if this machine sleeps when idle, turn that off: tasks survive sleep, but wait meanwhile"


def python() -> Finding:
    """Which interpreter runs, that it is new enough, and that it imports nothing that an agent may write."""
    version = ".".join(map(str, sys.version_info[:3]))
    message = f"{version} at {sys.executable}, holdfast {__version__}"
    if sys.version_info < _OLDEST_PYTHON:
        return fail("python", message, "install Python 3.11 or newer")
    shared = [entry for entry in own_python.added_paths() if program_search.leads_to_project(entry)]
    if shared:
        return warn(
            "python",
            f"{message}; it also imports from {shared[0]}, in a project: what an agent writes there runs",
            "install holdfast in an environment of its own, such as with 'pipx install .' in its clone",
        )
    if _has_other_links():
        return warn(
            "python",
            f"{message}; its files have other hard links, perhaps in the environment of a project: what an "
            "agent edits there in place runs",
            "install holdfast with copies: 'uv tool install --link-mode=copy --reinstall .' in its clone",
        )
    return ok("python", message)


def _has_other_links() -> bool:
    """Whether a file of the package has another name: uv and conda link files into environments."""
    folder = os.path.dirname(os.path.abspath(holdfast.__file__))
    with os.scandir(folder) as entries:
        return any(entry.stat().st_nlink > 1 for entry in entries if entry.name.endswith(".py"))


def system_clock() -> Finding:
    """The clock is plausible: files contain wall-clock times."""
    now = clock.now()
    if now < _NOT_BEFORE:
        return fail("clock", f"wrong date: {clock.iso(now)}", "set the clock (timedatectl set-ntp true)")
    return ok("clock", clock.iso(now))


def kernel() -> Finding:
    """pidfd (to notice that a process died) and subreaper (to find orphaned children)."""
    if sys.platform != "linux":
        return warn("kernel", f"{sys.platform}: no subreaper", "cleaning up after agents is best effort here")
    try:
        process.require_proc()
    except ProcMissing as error:
        return fail("kernel", str(error).partition(";")[0].partition(",")[0], error.hint)
    release = os.uname().release
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        return warn(
            "kernel",
            f"Linux {release} has no pidfd: an agent's death is noticed by polling every 0.1s",
            "use Linux 5.3 or newer",
        )
    if not _has_subreaper():
        return fail(
            "kernel",
            f"Linux {release} does not allow a subreaper",
            "use Linux 3.4 or newer, outside a sandbox",
        )
    return ok("kernel", f"Linux {release} with pidfd and subreaper")


def _has_subreaper() -> bool:
    """Uses PR_GET_CHILD_SUBREAPER, which changes nothing."""
    import ctypes

    value = ctypes.c_int()
    try:
        return ctypes.CDLL(None, use_errno=True).prctl(37, ctypes.byref(value), 0, 0, 0) == 0
    except OSError:
        return False


def inotify() -> Finding:
    """inotify limits, where inotify is needed; without it, files are polled."""
    if sys.platform != "linux":
        return ok("inotify", "not used on this platform")
    if _setting("dir-notify-enable"):
        return ok("inotify", "not needed: the kernel signals writes in a directory")
    instances, watches = _setting("inotify/max_user_instances"), _setting("inotify/max_user_watches")
    message = f"{instances} instances, {watches} watches"
    if instances < _INSTANCES or watches < _WATCHES:
        return warn(
            "inotify",
            f"{message}: too few for a hundred tasks",
            f"sysctl fs.inotify.max_user_instances={_INSTANCES * 4} "
            f"fs.inotify.max_user_watches={_WATCHES * 8}",
        )
    return ok("inotify", message)


def _setting(name: str) -> int:
    try:
        with open(f"/proc/sys/fs/{name}", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def sleep() -> Finding:
    """Whether the keeper can keep the machine awake while tasks run."""
    command = spawn.awake_command()
    if command is None:
        return warn("sleep", "not inhibited: systemd-inhibit is not installed", _AWAKE)
    try:
        done = programs.run(command, timeout_s=_TRIAL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return warn("sleep", f"cannot be inhibited: {error}", _AWAKE)
    if done.returncode:
        return warn("sleep", f"cannot be inhibited: {programs.failure(done)}", _AWAKE)
    return ok("sleep", "inhibited while tasks run")


def tmux_program() -> Finding:
    """tmux, which only 'attach' and 'run --tmux' use."""
    path = tmux.program()
    oldest = ".".join(map(str, tmux.OLDEST))
    fix = f"install tmux {oldest} or newer to attach in windows; tasks do not need it"
    if path is None:
        return warn("tmux", "not installed", fix)
    try:
        version = tmux.version()
    except HoldfastError as error:
        return warn("tmux", f"{path}: {error}", fix)
    if version is not None and version < tmux.OLDEST:
        return warn("tmux", f"{version[0]}.{version[1]} at {path} is too old", fix)
    return ok("tmux", f"{'.'.join(map(str, version)) if version else 'development version'} at {path}")


def sandbox() -> Finding:
    """bubblewrap and user namespaces, which --sandbox and the acceptance commands of a brief need."""
    from holdfast.sandbox import machine

    problem = machine.find_problem(network=False)
    if problem is not None:
        needed = "needed for --sandbox, and for acceptance commands that a brief proposes"
        return warn("sandbox", problem.message, f"{problem.fix}; {needed}")
    return ok("sandbox", f"bubblewrap at {machine.program()}, with network on, off or a list of hosts")


def git() -> Finding:
    """git, which worktrees and diffs need."""
    from holdfast.workspace import git as gits

    try:
        printed, path = gits.version()
    except GitMissing:
        return warn("git", "not installed", "install git: worktrees and diffs need it")
    except HoldfastError as error:
        return warn("git", f"it does not run: {error}", "reinstall git: worktrees and diffs need it")
    version = re.search(r"\d+(\.\d+)+", printed)
    if version is None:
        return warn("git", f"{path} prints no version", "reinstall git: worktrees and diffs need it")
    message = f"{version.group()} at {path}"
    if not gits.is_confined():
        message += "; the kernel cannot confine where it writes (Landlock, Linux 5.19 or newer)"
    return ok("git", message)
