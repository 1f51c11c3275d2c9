"""Processes: identity, liveness, environment, tree. From /proc on Linux, from psutil elsewhere."""

from __future__ import annotations

import os
import sys

from holdfast.errors import ProcMissing
from holdfast.model.process import ProcessIdentity

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

HAS_PROC = sys.platform == "linux"
#: `struct pidfd_info` of linux/pidfd.h, version 0: mask and cgroup id (64 bits each), eleven ids, exit_code.
_INFO_BYTES, _INFO_EXIT_AT = 64, 60
#: _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info): direction, size, 0xFF, number.
_PIDFD_GET_INFO = 3 << 30 | _INFO_BYTES << 16 | 0xFF << 8 | 11
_PIDFD_INFO_EXIT = 1 << 3
_boot_id = ""


def require_proc() -> None:
    """Raises ProcMissing where processes cannot be identified. Called before anything is changed.

    Other systems than Linux have no /proc and need none.
    """
    if not HAS_PROC:
        return
    try:
        pid = os.readlink("/proc/self")
    except OSError:
        raise ProcMissing(
            "/proc is not mounted; without it, processes cannot be started or checked"
        ) from None
    if pid != str(os.getpid()):
        # `unshare --pid` without --mount-proc: every pid there is that of another process here.
        raise ProcMissing("/proc shows the processes of another pid namespace, so none can be checked")


def boot_id() -> str:
    """The id of the current boot; a pid of another boot is meaningless. Raises ProcMissing."""
    global _boot_id
    if not _boot_id:
        if HAS_PROC:
            try:
                _boot_id = _read("/proc/sys/kernel/random/boot_id").decode().strip()
            except OSError:
                require_proc()  # a reader of a journal would report that the journal is missing
                raise
        else:
            import psutil

            _boot_id = f"boot-{int(psutil.boot_time())}"
    return _boot_id


def _read(path: str) -> bytes:
    """Read a small kernel file. Not with `open`, which makes six more system calls and may load a codec."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


#: Fields of /proc/<pid>/stat, counted from the one after the name (proc_pid_stat(5) counts from pid = 1).
_STATE, _PARENT, _THREADS, _START_TIME, _EXIT_CODE = 0, 1, 17, 19, 49


def stat_fields(pid: int) -> list[bytes] | None:
    """/proc/<pid>/stat after the name: [state, ppid, pgrp, session, …]; None if there is no such process."""
    try:
        raw = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name is in parentheses and may contain anything, even parentheses.
    return raw[raw.rfind(b")") + 2 :].split()


def parent(pid: int) -> int:
    """The pid of its parent; 0 if there is no such process, or no /proc."""
    fields = stat_fields(pid) if HAS_PROC else None
    return int(fields[_PARENT]) if fields else 0


def start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of the process; None if there is no such process."""
    if HAS_PROC:
        fields = stat_fields(pid)
        return int(fields[_START_TIME]) if fields else None
    import psutil

    try:
        return int(psutil.Process(pid).create_time() * 100)
    except psutil.NoSuchProcess:
        return None


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of the process that has this pid now."""
    ticks = start_time(pid)
    return None if ticks is None else ProcessIdentity(boot_id=boot_id(), pid=pid, start_time=ticks)


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether this process is still running. A zombie is not, unless it has other threads that are."""
    if identity.boot_id != boot_id():
        return False
    if not HAS_PROC:
        import psutil

        try:
            process = psutil.Process(identity.pid)
            return (
                int(process.create_time() * 100) == identity.start_time
                and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            return False
    fields = stat_fields(identity.pid)
    if fields is None or int(fields[_START_TIME]) != identity.start_time:
        return False
    return _is_running(fields)


def is_unreaped(identity: ProcessIdentity) -> bool:
    """Whether this process is running, or its parent has not taken its status yet."""
    if not HAS_PROC:
        return is_alive(identity)
    fields = stat_fields(identity.pid) if identity.boot_id == boot_id() else None
    return fields is not None and int(fields[_START_TIME]) == identity.start_time


def _is_running(fields: list[bytes]) -> bool:
    # A leader that called pthread_exit is a zombie, but its threads are alive.
    return fields[_STATE] not in (b"Z", b"X") or int(fields[_THREADS]) > 1


def glance(pid: int) -> tuple[str, int] | None:
    """State (R, S, T, …) and start time of a live process; None if it is gone or a zombie."""
    if not HAS_PROC:
        import psutil

        try:
            found = psutil.Process(pid)
            status, ticks = found.status(), int(found.create_time() * 100)
        except psutil.NoSuchProcess:
            return None
        if status == psutil.STATUS_ZOMBIE:
            return None
        return ("T" if status == psutil.STATUS_STOPPED else "S", ticks)
    fields = stat_fields(pid)
    return (
        (fields[_STATE].decode(), int(fields[_START_TIME]))
        if fields is not None and _is_running(fields)
        else None
    )


def name(pid: int) -> str:
    """The name that `ps -o comm` shows; empty if it is unknown."""
    try:
        return os.fsdecode(_read(f"/proc/{pid}/comm").rstrip(b"\n"))
    except OSError:
        return ""


def age_s(start_time: int) -> float:
    """Seconds since the start of a process with this start time, also those in which the machine slept."""
    import time

    return time.clock_gettime(time.CLOCK_BOOTTIME) - start_time / os.sysconf("SC_CLK_TCK")


def exit_status(identity: ProcessIdentity, pidfd: int = -1) -> int | None:
    """The status from wait(2) of a dead process that is not our child; None if the kernel does not tell.

    A zombie shows it to its own user. Of a reaped process, Linux 6.15 and newer tell it through a pidfd that
    was opened before.
    """
    if not HAS_PROC:
        return None
    status = _status_by_pidfd(pidfd)
    if status is None:
        fields = stat_fields(identity.pid) if identity.boot_id == boot_id() else None
        if fields is not None and int(fields[_START_TIME]) == identity.start_time and not _is_running(fields):
            return int(fields[_EXIT_CODE]) if _may_inspect(identity.pid) else None
        # It may have been reaped between the two.
        status = _status_by_pidfd(pidfd)
    return status


def _may_inspect(pid: int) -> bool:
    """Whether the kernel tells us everything about a zombie. If not (from inside a user namespace, say), it
    shows 0 as exit status."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except FileNotFoundError:
        return True  # allowed, but a zombie has none
    except OSError:
        return False
    return True


def _status_by_pidfd(pidfd: int) -> int | None:
    if pidfd < 0:
        return None
    import fcntl

    # In the byte order of the machine, like the kernel's.
    info = bytearray(_INFO_BYTES)
    info[:8] = _PIDFD_INFO_EXIT.to_bytes(8, sys.byteorder)
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:
        return None  # an older kernel (ENOTTY, EINVAL, or ESRCH after it was reaped), or a sandbox
    if not int.from_bytes(info[:8], sys.byteorder) & _PIDFD_INFO_EXIT:
        return None
    return int.from_bytes(info[_INFO_EXIT_AT:], sys.byteorder, signed=True)


def send(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Send a signal to this process, and never to another one that reused its pid.

    Returns whether it was alive.
    """
    if not is_alive(identity):
        return False
    try:
        if not hasattr(os, "pidfd_open"):
            return _kill(identity.pid, number)
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    except OSError:
        # No descriptor available (none left, or a sandbox forbids it); the identity was checked just now.
        return _kill(identity.pid, number)
    try:
        # Imported here, because most callers of this module send no signals.
        import signal

        # The descriptor refers to one process. If the pid had been reused before, the start time would
        # differ.
        if start_time(identity.pid) != identity.start_time:
            return False
        signal.pidfd_send_signal(descriptor, number)
        return True
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(descriptor)


def _kill(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def children(pid: int) -> list[int]:
    """Direct children of all its threads."""
    if not HAS_PROC:
        import psutil

        try:
            return [child.pid for child in psutil.Process(pid).children()]
        except psutil.NoSuchProcess:
            return []
    pids: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                pids += [int(child) for child in file.read().split()]
    except OSError:
        return pids
    return pids


def descendants(pid: int) -> list[int]:
    """Children, their children and so on, without `pid` itself."""
    pids: list[int] = []
    todo = [pid]
    while todo:
        below = children(todo.pop())
        pids += below
        todo += below
    return pids


def all_pids() -> list[int]:
    """Every visible process."""
    if HAS_PROC:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    import psutil

    return psutil.pids()


def newest() -> int:
    """The pid that was given to a process or thread last."""
    return int(_read("/proc/loadavg").split()[-1])


def environment(pid: int) -> dict[str, str]:
    """The environment with which `pid` was executed; empty if it is gone or may not be read."""
    if not HAS_PROC:
        import psutil

        try:
            return psutil.Process(pid).environ()
        except (psutil.Error, OSError):
            return {}
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            raw = file.read()
    except OSError:
        return {}
    pairs = (item.partition(b"=") for item in raw.split(b"\0") if item)
    return {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}


def has_open(pid: int, descriptor: int, file: os.stat_result) -> bool:
    """Whether a descriptor of `pid` is this file, by device and inode."""
    try:
        return os.path.samestat(os.stat(f"/proc/{pid}/fd/{descriptor}"), file)
    except OSError:
        return False


def open_files(pid: int) -> list[str]:
    """The targets of `pid`'s descriptors; empty if it is gone or may not be read."""
    paths: list[str] = []
    try:
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            paths.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    except OSError:
        return paths
    return paths


def variable(pid: int, name: str) -> str | None:
    """The value of `name` in the environment of `pid`.

    Optimized for None, because a sweep asks every process.
    """
    if HAS_PROC:
        try:
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                if os.fsencode(f"{name}=") not in file.read():
                    return None
        except OSError:
            return None
    return environment(pid).get(name)


def command_line(pid: int) -> str:
    """The command line, for display."""
    return " ".join(arguments(pid)).strip()


def arguments(pid: int) -> list[str]:
    """The command line; empty if `pid` is gone or may not be read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsdecode(file.read().removesuffix(b"\0")).split("\0")
    except OSError:
        return []


def send_to_group(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal the process group that this process leads. Returns whether it was alive.

    The kernel signals all members before one of them can see another die.
    """
    if not is_alive(identity):
        return False
    try:
        os.killpg(identity.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def tree_cpu_s(pid: int) -> float:
    """CPU seconds of a process, its descendants, and its reaped children."""
    if not HAS_PROC:
        return 0.0
    ticks = 0
    for member in [pid, *descendants(pid)]:
        fields = stat_fields(member)
        if fields is not None:
            ticks += sum(int(value) for value in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")
