"""Questions to the machine: Python, kernel, programs, clock."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

from holdfast import __version__, clock
from holdfast.errors import HoldfastError
from holdfast.views import tmux
from holdfast.views.doctor.finding import Finding, fail, ok, warn

_OLDEST_PYTHON = (3, 11)
#: One runner watches a handful of files; a hundred tasks need this much.
_INSTANCES, _WATCHES = 128, 8192
#: 2025-01-01: a clock before the program was written is wrong.
_NOT_BEFORE = 1735689600.0


def python() -> Finding:
    """Old interpreters do not even load us; this says which one it is."""
    found = ".".join(map(str, sys.version_info[:3]))
    said = f"{found} at {sys.executable}, holdfast {__version__}"
    if sys.version_info < _OLDEST_PYTHON:
        return fail("python", said, "install Python 3.11 or newer")
    return ok("python", said)


def system_clock() -> Finding:
    """Times in files are wall time; they need not be exact, but sane."""
    now = clock.now()
    if now < _NOT_BEFORE:
        return fail(
            "clock", f"it is {clock.iso(now)}, which is not true", "set the clock (timedatectl set-ntp true)"
        )
    return ok("clock", clock.iso(now))


def kernel() -> Finding:
    """Death is noticed through pidfds, lost children are found through subreapers."""
    if sys.platform != "linux":
        return warn("kernel", f"{sys.platform}: no subreaper", "sweeping up after agents is best effort here")
    release = os.uname().release
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        return warn(
            "kernel",
            f"Linux {release} has no pidfd: the death of an agent is noticed by asking, every 0.1s",
            "use Linux 5.3 or newer",
        )
    if not _has_subreaper():
        return fail(
            "kernel", f"Linux {release} refuses to make a subreaper", "use Linux 3.4 or newer, not a sandbox"
        )
    return ok("kernel", f"Linux {release} with pidfd and subreaper")


def _has_subreaper() -> bool:
    """Asks (PR_GET_CHILD_SUBREAPER); sets nothing."""
    import ctypes

    value = ctypes.c_int()
    try:
        return ctypes.CDLL(None, use_errno=True).prctl(37, ctypes.byref(value), 0, 0, 0) == 0
    except OSError:
        return False


def inotify() -> Finding:
    """Growth of files is told by inotify; without it the files are looked at now and then."""
    if sys.platform != "linux":
        return ok("inotify", "not used here")
    instances, watches = _limit("max_user_instances"), _limit("max_user_watches")
    said = f"{instances} instances, {watches} watches"
    if instances < _INSTANCES or watches < _WATCHES:
        return warn(
            "inotify",
            f"{said}: few for a hundred tasks",
            f"sysctl fs.inotify.max_user_instances={_INSTANCES * 4} fs.inotify.max_user_watches={_WATCHES * 8}",
        )
    return ok("inotify", said)


def _limit(name: str) -> int:
    try:
        with open(f"/proc/sys/fs/inotify/{name}", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def tmux_program() -> Finding:
    """Only windows need it."""
    found = tmux.program()
    oldest = ".".join(map(str, tmux.OLDEST))
    if found is None:
        return warn("tmux", "not installed", f"install tmux {oldest} or newer for windows; tasks need none")
    try:
        version = tmux.version()
    except HoldfastError as error:
        return warn(
            "tmux", f"{found}: {error}", f"install tmux {oldest} or newer for windows; tasks need none"
        )
    if version is not None and version < tmux.OLDEST:
        return warn("tmux", f"{version[0]}.{version[1]} at {found} is old", f"install tmux {oldest} or newer")
    return ok("tmux", f"{'.'.join(map(str, version)) if version else 'a development version'} at {found}")


def git() -> Finding:
    """Worktrees and diffs come from it."""
    found = shutil.which("git")
    if found is None:
        return warn("git", "not installed", "install git: worktrees and diffs need it")
    try:
        done = subprocess.run([found, "--version"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return warn("git", f"{found} does not run: {error}", "repair git: worktrees and diffs need it")
    numbers = re.search(r"\d+(\.\d+)+", done.stdout.decode("utf-8", "replace"))
    if numbers is None:
        return warn("git", f"{found} does not say its version", "repair git: worktrees and diffs need it")
    return ok("git", f"{numbers.group()} at {found}")
