"""The agent's parent: it starts the agent, waits, and writes down how it ended.

It is forked by a runner (holdfast.spare) and outlives it. Everything it learns is in the attempt's directory, in an order that the
attempt table (docs/contracts/attempt.md) can read after a SIGKILL at any line:

    lock held → identity.json → (the agent runs) → exit.json → lock freed

Standard library and failpoints only, and as short as it can be: nobody watches the recorder but the kernel.
"""

from __future__ import annotations

import errno
import json
import marshal
import os
import resource
import sys
import time

from holdfast.failpoints import failpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    # In C. The one in Python turns every number into a member of an enumeration, in pages that each fork copies anew.
    import _signal as signal

#: How often it looks whether the packet is still there, and how soon again where it seems gone. While its runner lives, that
#: looks more often than we would.
_LOOK_S, _CONFIRM_S, _RUNNER_LOOKS_S = 30.0, 1.0, 3600.0
#: Between the polite signal and the other one.
_TERM_S = 2.0
_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36
_prctl = 0
if sys.platform == "linux":
    # The half of ctypes that is in C: the other one makes classes, for a millisecond and a half of every cold start.
    import _ctypes

    _prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # pyright: ignore[reportArgumentType]
_boot_id = ""
# Asked once as well: the answer is in a large table of names.
_MOST_DESCRIPTORS = os.sysconf("SC_OPEN_MAX")
#: The end of a child wakes us, SIGTERM asks us to leave; the others are for somebody else.
_BLOCKED = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE})


class Start:
    """What the recorder needs to start one agent."""

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


def detach(*kept: int) -> None:
    """In a forked child: belong to nobody, with these descriptors only."""
    # First of all the runner's lock: a copy of it here would outlive the runner and keep its successor out.
    _close_all_but(*kept)
    # A seed has its children reaped by the kernel.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    become_subreaper()
    set_name("holdfast-rec")
    # Blocked before the agent is there, so that the end of a quick one waits for us in the queue.
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)


def record(
    directory: str, order: bytearray, lock: int, started: int, *, signature: bytes | bytearray, runner: int
) -> int:
    """In a detached child: start the agent, and see it to its end. `order` is a Start, marshalled, for the attempt in
    `directory`, and emptied; `lock` is its held lock and `signature` the text of that; `started` is the write end of a pipe whose
    reader sees the end of file once the agent was executed, or failed to be; `runner` is the process that forked us."""
    failpoint("recorder.forked")
    os.ftruncate(lock, 0)
    os.pwrite(lock, signature, 0)
    failpoint("recorder.signed")

    told, tell = os.pipe()
    agent = os.fork()
    if agent == 0:
        os.close(told)
        _execute(order, tell)
    # It was for the child alone: here it would be in memory for as long as the agent lives.
    order.clear()
    os.close(tell)
    os.close(started)
    failpoint("recorder.agent_forked")
    # Ends with nothing to read when exec closed the pipe, or with the errno of what failed.
    failure = os.read(told, 64)
    os.close(told)
    if failure:
        _forget(os.path.join(directory, "identity.json"))
    # Its death wakes us as that of a child does. Where that cannot be had, we are on our own from the beginning.
    if not _prctl or _ctypes.call_function(_prctl, (_PR_SET_PDEATHSIG, signal.SIGCHLD, 0, 0, 0)) != 0:
        runner = -1
    return _wait(directory, agent, int(failure) if failure else None, lock=lock, runner=runner)


def _execute(order: bytearray, tell: int) -> NoReturn:
    """In the child: become the agent."""
    try:
        start = Start(**marshal.loads(order))
        # A session of its own: an agent's `kill 0` must not reach the recorder.
        os.setsid()
        os.chdir(start.cwd)
        _redirect(start)
        for name, (soft, hard) in start.limits.items():
            _limit(name, soft, hard)
        _write_pid(start.directory)
        failpoint("recorder.before_identity")
        _write(
            start.directory,
            "identity.json",
            _line({"schema": "holdfast.identity/1", **_identity()}),
            durable=True,
        )
        failpoint("recorder.before_exec")
        os.umask(start.umask)
        # What has a handler loses it at exec; what is ignored, by us or by whoever started us, would stay so.
        for number in range(1, signal.NSIG):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(start.argv[0], start.argv, start.env)
    except OSError as error:
        os.write(tell, b"%d" % (error.errno or errno.EIO))
    except (ValueError, TypeError):
        os.write(tell, b"%d" % errno.EINVAL)
    finally:
        os._exit(127)


def _write_pid(directory: str) -> None:
    try:
        _write(directory, "pid", b"%d\n" % os.getpid())
    except OSError:
        return  # for people only


def _wait(directory: str, agent: int, exec_errno: int | None, *, lock: int, runner: int) -> int:
    """Reap until nothing is left, or until we are told to leave once the agent is recorded."""
    recorded = told_to_leave = was_gone = False
    while True:
        number = _next_signal(
            _CONFIRM_S if was_gone else _RUNNER_LOOKS_S if os.getppid() == runner else _LOOK_S
        )
        if number == signal.SIGTERM:
            told_to_leave = True
        elif number is None:
            # Nobody may be left but us: whoever removes a home wants its agents gone too. Believed at the second look.
            is_gone = os.fstat(lock).st_nlink == 0 and not os.path.lexists(directory)
            if is_gone and was_gone:
                return _end_all()
            was_gone = is_gone
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return 0
            if pid == 0:
                break
            if pid == agent:
                failpoint("recorder.before_exit_record")
                write_exit(
                    _whereabouts(directory, lock),
                    by="recorder",
                    status=status,
                    usage=usage,
                    exec_errno=exec_errno,
                )
                failpoint("recorder.after_exit_record")
                recorded = True
        if recorded and told_to_leave:
            return 0


def _whereabouts(directory: str, lock: int) -> str:
    """The attempt's directory, also when it or its home was given another name: the kernel knows where the held lock lies."""
    held = os.fstat(lock)
    for place in (directory, os.path.dirname(_link_of(lock))):
        try:
            if os.path.samestat(os.stat(os.path.join(place, "lock")), held):
                return place
        except OSError:
            continue
    return directory


def _link_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


def _next_signal(within_s: float) -> int | None:
    """The next one that we wait for; None when the time is over. (Without sigtimedwait it never is.)"""
    numbers = {signal.SIGCHLD, signal.SIGTERM}
    if not hasattr(signal, "sigtimedwait"):
        return signal.sigwait(numbers)
    found = signal.sigtimedwait(numbers, within_s)
    return found.si_signo if found is not None else None


def _end_all() -> int:
    """End the agent and all below it: politely, then not. What loses its parent becomes a child of ours."""
    began = time.monotonic()
    while True:
        number = signal.SIGTERM if time.monotonic() - began < _TERM_S else signal.SIGKILL
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            children = [int(child) for child in file.read().split()]
        for child in children:
            try:
                # A group of its own, if it leads one: an agent's children learn of it together.
                (os.killpg if os.getpgid(child) == child else os.kill)(child, number)
            except OSError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return 0
        time.sleep(0.1)  # noqa: TID251 -- as below


def write_exit(
    directory: str, *, by: str, status: int, usage: resource.struct_rusage, exec_errno: int | None
) -> None:
    """exit.json, durably; then exit_code and done for those who look with a shell. Waits for room on a full disk:
    nothing else will ever know how the agent ended."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = None if exec_errno else 128 + number if number else os.WEXITSTATUS(status)
    record = {
        "schema": "holdfast.exit/1",
        "by": by,
        "wait_status": None if exec_errno else status,
        "exit_code": code,
        "exit_signal": number,
        "exec_errno": exec_errno,
        "rusage": {"user_s": usage.ru_utime, "system_s": usage.ru_stime, "max_rss_kb": usage.ru_maxrss},
        "at": _iso_now(),
        "boot_id": _identity()["boot_id"],
        "mono_s": time.monotonic(),
    }
    pause = 0.1
    while True:
        try:
            _write(directory, "exit.json", _line(record), durable=True)
            failpoint("recorder.exit_written")
            _write(directory, "exit_code", b"%d\n" % code if code is not None else b"\n")
            _write(directory, "done", b"")
            return
        except FileNotFoundError:
            return  # the packet was removed under us: there is nobody left to tell
        except OSError:
            time.sleep(pause)  # noqa: TID251 -- nothing can wake us when the disk has room again
            pause = min(pause * 2, 5.0)


# ── small tools; the store has better ones, but may not be needed here ──────


def become_subreaper() -> None:
    """Adopt the orphans below us, on Linux; elsewhere they go to init."""
    if _prctl:
        _ctypes.call_function(_prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def set_name(name: str) -> None:
    """What `ps -o comm` shows; a forked process would show its parent's name."""
    if _prctl:
        _ctypes.call_function(_prctl, (_PR_SET_NAME, name.encode()[:15], 0, 0, 0))


def _close_all_but(*kept: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    first = 3
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, _MOST_DESCRIPTORS)


def _redirect(start: Start) -> None:
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for descriptor, path, flags in (
        (0, start.stdin, os.O_RDONLY),
        (1, os.path.join(start.directory, "stdout.log"), append),
        (2, os.path.join(start.directory, "stderr.log"), append),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)


def _limit(name: str, soft: int, hard: int) -> None:
    which = getattr(resource, name, None)
    if which is not None:
        try:
            resource.setrlimit(which, (soft, hard))
        except (ValueError, OSError):
            return  # a hard limit that was lowered since cannot be raised again


def boot_id() -> str:
    """This boot's name. Whoever forks asks first, so that those who are forked need not."""
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


def _read(path: str) -> bytes:
    """A small file of the kernel's. Not `open`: what that touches is copied, page by page, in every forked process."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _write(directory: str, name: str, data: bytes, *, durable: bool = False) -> None:
    temporary = os.path.join(directory, f".{name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), temporary)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, os.path.join(directory, name))
    if durable:
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _forget(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode() + b"\n"


def _iso_now() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
