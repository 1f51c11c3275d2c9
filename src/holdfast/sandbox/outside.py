"""Stand for a sandboxed command outside: start bwrap, pass signals in, and end exactly as the command ended.

Executed by path (`python -I -S outside.py HELD COUNT AFTER… BWRAP ARGUMENTS…`); it imports only what is built
in. AFTER are COUNT words: a command that is run when the sandbox has ended. Until then the folder HELD is
locked, if it is not empty. The identity of this process is that of the attempt, so that all that watches,
stops or adopts an agent does the same with a sandboxed one.

If it is killed, so is the sandbox: the kernel kills bwrap (parent death signal), and with bwrap or process 1
everything inside.
"""

from __future__ import annotations

import _ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # the C module: the Python one is slow to import

_INFO_FD, _STATUS_FD = 3, 4
_PR_SET_PDEATHSIG = 1
#: Exit statuses of its own: the sandbox could not be made, and the command could not be executed.
_NO_SANDBOX, _NOT_EXECUTED = 125, 127
#: Passed on to the command. KILL ends this process, and so the sandbox; STOP and CONT stay here.
_PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)


def main(argv: list[str], *, held: str = "", after: list[str] | None = None) -> NoReturn:
    """Run `argv`, the command line of bwrap."""
    # From the start: what arrives before the command runs stays pending, and is passed on then.
    signal.pthread_sigmask(signal.SIG_BLOCK, (*_PASSED_ON, signal.SIGCHLD))
    lock = _hold(held) if held else -1
    info, info_write = os.pipe()
    status, status_write = os.pipe()
    parent = os.getpid()
    bwrap = os.fork()
    if bwrap == 0:
        _become(argv, {_INFO_FD: info_write, _STATUS_FD: status_write}, parent)
    os.close(info_write)
    os.close(status_write)
    init = _process_1(info)
    # One byte: a short command has ended by now, and its status follows at once.
    report = os.read(status, 1)
    ended = _pass_signals(bwrap, init) if report == b"R" else os.waitpid(bwrap, 0)[1]
    rest = os.read(status, 64)
    if lock >= 0:
        os.close(lock)
    if after:
        _run(after)
    _end(report, rest, ended=ended, argv=argv)


def _hold(folder: str) -> int:
    """Lock a folder while the sandbox lives."""
    import fcntl

    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def _run(command: list[str]) -> None:
    """Run a command of ours to its end. Its errors go to stderr, which is the attempt's."""
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir("/")
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.execv(command[0], command)
        finally:
            os._exit(_NOT_EXECUTED)
    os.waitpid(pid, 0)


def _become(argv: list[str], descriptors: dict[int, int], parent: int) -> NoReturn:
    """In the child: become bwrap."""
    try:
        # Signals for the group of the agent must not end bwrap: they are passed on to the command.
        os.setsid()
        prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # pyright: ignore[reportArgumentType]
        _ctypes.call_function(prctl, (_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        if os.getppid() != parent:
            os._exit(_NO_SANDBOX)  # it died before it could be watched
        # Above all targets first: a pipe may have the number of another's target.
        moved = {number: os.dup(os.dup(os.dup(held))) for number, held in descriptors.items()}
        for number, held in moved.items():
            os.dup2(held, number)
        os.closerange(max(descriptors) + 1, 64)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execv(argv[0], argv)
    except OSError as error:
        os.write(2, f"holdfast: cannot execute {argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(_NO_SANDBOX)


def _process_1(info: int) -> int:
    """The pid of the sandbox's process 1 as seen from here; 0 if there is none."""
    text = b""
    while b"}" not in text:
        more = os.read(info, 4096)
        if not more:
            return 0
        text += more
    os.close(info)
    # {"child-pid": 123, …}: json would take longer to import than all of this.
    digits = text.partition(b'"child-pid":')[2].split(b",")[0].strip(b" \n}")
    return int(digits) if digits.isdigit() else 0


def _pass_signals(bwrap: int, init: int) -> int:
    """Pass signals on until bwrap ends. Returns its wait status.

    Process 1 is not reaped before bwrap ends, so its pid stays its own.
    """
    waited_for = {*_PASSED_ON, signal.SIGCHLD}
    while True:
        pid, ended = os.waitpid(bwrap, os.WNOHANG)
        if pid:
            return ended
        number = signal.sigwait(waited_for)
        if number != signal.SIGCHLD and init:
            try:
                os.kill(init, number)
            except OSError:
                continue  # it is ending


def _end(begin: bytes, rest: bytes, *, ended: int, argv: list[str]) -> NoReturn:
    """End as the command ended. `begin` and `rest` are what process 1 reported."""
    if begin == b"R" and rest[:1] == b"S":
        _end_by(int(rest[1:]))
    if begin == b"X":
        command = argv[argv.index("--", argv.index("--") + 1) + 1]
        reason = os.strerror(int(rest))
        os.write(2, f"holdfast: cannot execute {command} in the sandbox: {reason}\n".encode())
        os._exit(_NOT_EXECUTED)
    if os.WIFSIGNALED(ended):
        _end_by(ended)
    # bwrap reports a killed process 1 as 128+n; everything inside was killed with it.
    if os.WEXITSTATUS(ended) == 128 + signal.SIGKILL:
        _end_by(signal.SIGKILL)
    os.write(2, b"holdfast: the sandbox could not be made; 'holdfast doctor' checks this machine\n")
    os._exit(_NO_SANDBOX)


def _end_by(status: int) -> NoReturn:
    """End with this wait status."""
    if not os.WIFSIGNALED(status):
        os._exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    # The command had its chance to dump core; this process has nothing to show.
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.kill(os.getpid(), number)
    os._exit(128 + number)


if __name__ == "__main__":
    _count = 3 + int(sys.argv[2])
    main(sys.argv[_count:], held=sys.argv[1], after=sys.argv[3:_count])
