"""The agent's parent: it starts the agent, waits for it, and records how it ended.

A runner forks it (holdfast.idle_recorder) and it outlives the runner. It writes to the attempt's directory in
an order that stays readable after a SIGKILL at any line (docs/contracts/attempt.md):

    lock held → identity.json → (the agent runs) → exit.json → "none left" in the lock → lock released

It imports only the standard library and failpoints, and is kept as short as possible: nothing supervises it.
"""

from __future__ import annotations

import errno
import json
import marshal
import os
import resource
import stat
import sys
import time

from holdfast.failpoints import failpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    # The C module. The Python one turns every number into an enum member, in memory that each fork copies.
    import _signal as signal

#: How often to check that the packet still exists, and when to check again after it seemed gone. A live
#: runner checks more often itself, so the recorder need not.
_CHECK_S, _CONFIRM_S, _RUNNER_CHECKS_S = 30.0, 1.0, 3600.0
#: Time between SIGTERM and SIGKILL.
_TERM_S = 2.0
#: How long to try to write to a directory that refuses it.
_REFUSED_S = 20.0
#: How often to create a log whose name is taken.
_TRIES = 3
#: Why `_wait` returned: there is no child left, or it was told to exit.
_NONE_LEFT, _TOLD_TO_EXIT = 0, 1
_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36
_prctl = 0
if sys.platform == "linux":
    # The C half of ctypes: the Python half creates classes and adds 1.5 ms to every cold start.
    import _ctypes

    _prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # pyright: ignore[reportArgumentType]
_boot_id = ""
# Looked up once, because the lookup goes through a large table of names.
_MAX_DESCRIPTORS = os.sysconf("SC_OPEN_MAX")
#: An agent can put a link in the place of any directory of its packet. None is followed.
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Opens a directory without a right to read it; only Linux has it.
_NAME_ONLY = getattr(os, "O_PATH", 0) | _FOLDER
#: SIGCHLD wakes the recorder, SIGTERM tells it to exit; the others are not meant for it.
_BLOCKED = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE})


class Order:
    """Everything the recorder needs to start one agent."""

    def __init__(
        self,
        *,
        directory: str,
        argv: list[str],
        env: dict[str, str],
        cwd: str,
        stdin: str,
        umask: int,
        limits: dict[str, list[int]],
    ) -> None:
        self.directory = directory
        self.argv = argv
        self.env = env
        self.cwd = cwd
        self.stdin = stdin
        self.umask = umask
        self.limits = limits


def detach(*keep: int) -> None:
    """In a forked child: detach from the parent and keep only these descriptors open."""
    # Close first: a copy of the runner's lock here would outlive the runner and block its successor.
    _close_all_but(*keep)
    # The seed ignores SIGCHLD; the recorder needs it.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    become_subreaper()
    set_name("holdfast-rec")
    # Blocked before the agent exists, so that the SIGCHLD of a short-lived agent stays pending.
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)


def record(
    directory: str,
    order: bytearray,
    lock: tuple[int, int],
    started: int,
    *,
    signature: bytes | bytearray,
    runner: int,
) -> int:
    """In a detached child: start the agent and wait until it ends. Returns the exit status.

    `order` is a marshalled Order for the attempt in `directory`; it is emptied after use. `lock` is the
    attempt's held lock (its file and its directory), and `signature` the content to write to it. `started` is
    the write end of a pipe; its reader gets EOF once exec succeeded or failed. `runner` is the process that
    forked this one.
    """
    failpoint("recorder.forked")
    file, folder = lock
    # Held from before the agent exists: what it does to any path does not change where we write.
    packet = os.open("../..", _NAME_ONLY, dir_fd=folder)
    os.ftruncate(file, 0)
    os.pwrite(file, signature, 0)
    failpoint("recorder.signed")

    exec_result, exec_failed = os.pipe()
    agent = os.fork()
    if agent == 0:
        os.close(exec_result)
        _execute(order, exec_failed, folder)
    # Only the child needs the order; here it would stay in memory for as long as the agent lives.
    order.clear()
    os.close(exec_failed)
    os.close(started)
    failpoint("recorder.agent_forked")
    # EOF if exec closed the pipe; otherwise the errno of the failure.
    failure = os.read(exec_result, 64)
    os.close(exec_result)
    if failure:
        _remove("identity.json", folder)
    # Get SIGCHLD when the runner dies, too. If that is not available, act as if it were dead already.
    if not _prctl or _ctypes.call_function(_prctl, (_PR_SET_PDEATHSIG, signal.SIGCHLD, 0, 0, 0)) != 0:
        runner = -1
    attempt = AttemptPlace(packet, os.path.basename(directory), folder)
    status = _wait(attempt, agent, int(failure) if failure else None, runner=runner)
    if status == _NONE_LEFT:
        # Proof for the sweep, from the kernel: a process that forks too fast to be listed is still a child.
        os.pwrite(file, bytes(signature).rstrip(b"}\n") + b', "left": 0}\n', 0)
        failpoint("recorder.none_left")
    return 0


def _execute(marshalled: bytearray, exec_failed: int, folder: int) -> NoReturn:
    """In the child: become the agent."""
    try:
        order = Order(**marshal.loads(marshalled))
        # A new session: an agent's `kill 0` must not reach the recorder.
        os.setsid()
        os.chdir(order.cwd)
        _redirect(order.stdin, folder)
        for name, (soft, hard) in order.limits.items():
            set_limit(name, soft, hard)
        _write_pid(folder)
        failpoint("recorder.before_identity")
        _write(
            folder,
            "identity.json",
            _line({"schema": "holdfast.identity/1", **_identity(), "directory": _inode(folder)}),
            durable=True,
        )
        failpoint("recorder.before_exec")
        os.umask(order.umask)
        # exec resets handlers, but signals that we or our ancestors ignore would stay ignored.
        for number in range(1, signal.NSIG):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(order.argv[0], order.argv, order.env)
    except OSError as error:
        os.write(exec_failed, b"%d" % (error.errno or errno.EIO))
    except (ValueError, TypeError):
        os.write(exec_failed, b"%d" % errno.EINVAL)
    finally:
        os._exit(127)


def _write_pid(folder: int) -> None:
    try:
        _write(folder, "pid", b"%d\n" % os.getpid())
    except OSError:
        return  # informational only


def _wait(attempt: AttemptPlace, agent: int, exec_errno: int | None, *, runner: int) -> int:
    """Reap children until none is left, or until SIGTERM arrives once the agent's end is recorded.

    Returns which of the two it was.
    """
    recorded = told_to_exit = was_gone = False
    while True:
        number = _next_signal(
            _CONFIRM_S if was_gone else _RUNNER_CHECKS_S if os.getppid() == runner else _CHECK_S
        )
        if number == signal.SIGTERM:
            told_to_exit = True
        elif number is None:
            # If the home was removed, its agents should end too, and no other process may be left to end
            # them. Only the second check in a row counts.
            is_gone = os.fstat(attempt.packet).st_nlink == 0
            if is_gone and was_gone:
                return _end_all()
            was_gone = is_gone
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return _NONE_LEFT
            if pid == 0:
                break
            if pid == agent:
                failpoint("recorder.before_exit_record")
                write_exit(attempt, by="recorder", status=status, usage=usage, exec_errno=exec_errno)
                failpoint("recorder.after_exit_record")
                recorded = True
        if recorded and told_to_exit:
            return _TOLD_TO_EXIT


def _next_signal(within_s: float) -> int | None:
    """The next SIGCHLD or SIGTERM, or None after `within_s`.

    (Without sigtimedwait, there is no time limit.)
    """
    numbers = {signal.SIGCHLD, signal.SIGTERM}
    if not hasattr(signal, "sigtimedwait"):
        return signal.sigwait(numbers)
    info = signal.sigtimedwait(numbers, within_s)
    return info.si_signo if info is not None else None


def _end_all() -> int:
    """End the agent and all its descendants: SIGTERM, then SIGKILL.

    Orphans become children of the recorder. All are stopped before one is ended, as by the sweep: no shell
    goes on with its next command, and nothing can fork.
    """
    asked = None
    while True:
        is_late = asked is not None and time.monotonic() - asked > _TERM_S
        if asked is None or is_late:
            stopped = _stop_all()
            for number in (signal.SIGKILL,) if is_late else (signal.SIGTERM, signal.SIGCONT):
                for pid in stopped:
                    _kill(pid, number)
            asked = asked or time.monotonic()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return _NONE_LEFT
        time.sleep(0.05)  # noqa: TID251 -- nothing wakes us


def _stop_all() -> set[int]:
    """Stop all descendants, until a pass finds no new one. Only this process reaps them: no pid is reused."""
    stopped: set[int] = set()
    ends = time.monotonic() + _TERM_S
    while time.monotonic() < ends:
        before = len(stopped)
        todo = [os.getpid()]
        while todo:
            for pid in _children(todo.pop()):
                if pid not in stopped:
                    _kill(pid, signal.SIGSTOP)
                    stopped.add(pid)
                todo.append(pid)
        if len(stopped) == before:
            break
    return stopped


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            children += map(int, _read(f"/proc/{pid}/task/{thread}/children", 1 << 20).split())
    except OSError:
        pass
    return children


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


class AttemptPlace:
    """Where an attempt is recorded, whatever its agent does to the paths."""

    def __init__(self, packet: int, name: str, folder: int = -1) -> None:
        #: The open packet, and the name of the attempt in it.
        self.packet = packet
        self.name = name
        #: The open directory of the attempt, wherever it was moved; -1 if it has to be opened.
        self.folder = folder


def write_exit(
    attempt: AttemptPlace,
    *,
    by: str,
    status: int,
    usage: resource.struct_rusage | None,
    exec_errno: int | None,
) -> bool:
    """Write exit.json durably, then exit_code and done for shell scripts. Returns whether it could.

    `usage` is None if only the status is known.

    Retries while the disk is full, because no other process can know how the agent ended. Gives up if the
    directory cannot be written at all: the runner then says that the status was lost.
    """
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = None if exec_errno else 128 + number if number else os.WEXITSTATUS(status)
    record = {
        "schema": "holdfast.exit/1",
        "by": by,
        "wait_status": None if exec_errno else status,
        "exit_code": code,
        "exit_signal": number,
        "exec_errno": exec_errno,
        "rusage": _usage(usage),
        "at": _iso_now(),
        "boot_id": _identity()["boot_id"],
        "mono_s": time.monotonic(),
    }
    pause, gives_up = 0.1, time.monotonic() + _REFUSED_S
    while True:
        try:
            if attempt.folder < 0:
                attempt.folder = _open_again(attempt)
            _write(attempt.folder, "exit.json", _line(record), durable=True)
            failpoint("recorder.exit_written")
            _write(attempt.folder, "exit_code", b"%d\n" % code if code is not None else b"\n")
            _write(attempt.folder, "done", b"")
            return True
        except FileNotFoundError:
            # The agent removed its directory, or a user removed the packet.
            if os.fstat(attempt.packet).st_nlink == 0 or time.monotonic() > gives_up:
                return False
            attempt.folder = -1  # left open: it is half of the attempt's lock
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM) and _make_writable(attempt):
                continue
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) and time.monotonic() > gives_up:
                return False
            time.sleep(pause)  # noqa: TID251 -- nothing wakes us when there is space again
            pause = min(pause * 2, 5.0)


def _open_again(attempt: AttemptPlace) -> int:
    """Open the attempt's directory; it and `attempts` are made if they are missing. Raises OSError."""
    attempts = _enter(attempt.packet, "attempts")
    try:
        return _enter(attempts, attempt.name)
    finally:
        os.close(attempts)


def _enter(folder: int, name: str) -> int:
    """Open a directory in an open one, or make it. Anything else with that name is renamed."""
    while True:
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            _put_aside(name, folder)
        try:
            os.mkdir(name, 0o700, dir_fd=folder)
            failpoint("removed.made_again")
        except FileExistsError:
            continue


def _make_writable(attempt: AttemptPlace) -> bool:
    """Make the packet, `attempts` and the attempt's directory writable again. Returns whether an agent had
    changed the mode of one of them."""
    has_changed = attempt.folder >= 0 and _restore_mode(attempt.folder)
    folder = os.dup(attempt.packet)
    for name in ("attempts", attempt.name, ""):
        has_changed = _restore_mode(folder) or has_changed
        try:
            inner = os.open(name, _NAME_ONLY, dir_fd=folder)
        except OSError:
            break
        finally:
            os.close(folder)
        folder = inner
    return has_changed


def _restore_mode(descriptor: int) -> bool:
    try:
        if os.fstat(descriptor).st_mode & 0o700 == 0o700:
            return False
        os.chmod(f"/proc/self/fd/{descriptor}", 0o700)
    except OSError:
        return False  # of another user
    return True


def _usage(usage: resource.struct_rusage | None) -> dict[str, float] | None:
    if usage is None:
        return None
    return {"user_s": usage.ru_utime, "system_s": usage.ru_stime, "max_rss_kb": usage.ru_maxrss}


# ── small helpers; holdfast.store has better ones, but the recorder must not import it ──


def become_subreaper() -> None:
    """Adopt orphaned descendants, on Linux; elsewhere they go to init."""
    if _prctl:
        _ctypes.call_function(_prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def die_with(parent: int) -> None:
    """Let the kernel kill this process with its parent, on Linux. If the parent has already died, exit."""
    if _prctl:
        _ctypes.call_function(_prctl, (_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        if os.getppid() != parent:
            os._exit(1)


def set_name(name: str) -> None:
    """Set the name that `ps -o comm` shows; a forked process would show its parent's."""
    if _prctl:
        _ctypes.call_function(_prctl, (_PR_SET_NAME, name.encode()[:15], 0, 0, 0))


def _close_all_but(*keep: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    first = 3
    for descriptor in sorted(keep):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, _MAX_DESCRIPTORS)


def _redirect(stdin: str, folder: int) -> None:
    _become(0, _open_input(stdin, folder))
    for descriptor, name in ((1, "stdout.log"), (2, "stderr.log")):
        _become(descriptor, _create_log(name, folder))


def _become(descriptor: int, opened: int) -> None:
    os.dup2(opened, descriptor)
    os.close(opened)


def _open_input(path: str, folder: int) -> int:
    """Open what the agent reads. A pipe that an agent planted there would block us: it is refused."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    if path != os.devnull and not stat.S_ISREG(os.fstat(opened).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    os.set_blocking(opened, True)
    return opened


def _create_log(name: str, folder: int) -> int:
    """Create a log. An attempt is started once: what has this name was planted, as a second name of a user's
    file or as a pipe. It is renamed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW
    for _ in range(_TRIES):
        try:
            return os.open(name, flags, 0o600, dir_fd=folder)
        except FileExistsError:
            _put_aside(name, folder)
    raise OSError(errno.EBUSY, "it is planted again and again", name)


def _put_aside(name: str, folder: int) -> None:
    try:
        aside = f"{name}.aside-{os.urandom(6).hex()}"
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    except FileNotFoundError:
        return


def set_limit(name: str, soft: int, hard: int) -> None:
    """Set a resource limit of this process, as far as that is possible."""
    which = getattr(resource, name, None)
    if which is not None:
        try:
            resource.setrlimit(which, (soft, hard))
        except (ValueError, OSError):
            return  # the hard limit was lowered in the meantime and cannot be raised again


def boot_id() -> str:
    """The id of the current boot, cached. Call it before forking, so that the children have it."""
    global _boot_id
    if not _boot_id:
        if sys.platform == "linux":
            _boot_id = _read("/proc/sys/kernel/random/boot_id").decode().strip()
        else:
            import psutil

            _boot_id = f"boot-{int(psutil.boot_time())}"
    return _boot_id


def _identity() -> dict[str, Any]:
    pid = os.getpid()
    if sys.platform == "linux":
        raw = _read("/proc/self/stat")
        ticks = int(raw[raw.rfind(b")") + 2 :].split()[19])
    else:
        import psutil

        ticks = int(psutil.Process(pid).create_time() * 100)
    return {
        "boot_id": boot_id(),
        "pid": pid,
        "start_time": ticks,
        "started_at": _iso_now(),
        "mono_s": time.monotonic(),
    }


def _inode(descriptor: int) -> list[int]:
    """Device and inode: a renamed directory keeps them, a copy has others."""
    found = os.fstat(descriptor)
    return [found.st_dev, found.st_ino]


def _read(path: str, size: int = 4096) -> bytes:
    """Read a small kernel file.

    Not with `open`: the memory it touches would be copied in every forked process.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


def _write(folder: int, name: str, data: bytes, *, durable: bool = False) -> None:
    # As in `store.atomic`: a random name, so an agent cannot plant a pipe or a link there.
    temporary = f".{name}.{os.getpid()}-{os.urandom(6).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        try:
            if os.write(descriptor, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), temporary)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        _remove(temporary, folder)  # the next try has another name
        raise
    if durable:
        os.fsync(folder)


def _remove(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode() + b"\n"


def _iso_now() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
