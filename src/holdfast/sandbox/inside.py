"""Process 1 of a sandbox: start the command, pass signals on to it, reap orphans, report its exact status.

Executed by path (`python -I -S inside.py STATUS_FD[,LISTENER_FD,PORT] -- COMMAND…`). When the command ends,
this process ends, and the kernel kills everything that is left in the sandbox.

Reports on STATUS_FD: `R` once the command runs, then `S<wait status>`; or `X<errno>` if it could not be
executed. The command does not get the descriptor. A listening socket of the sandbox's own network goes to
LISTENER_FD: outside.py has a proxy serve it.
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

_PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
#: The number of keyctl(2), which the C library does not wrap.
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
_JOIN_SESSION_KEYRING = 1
_PR_SET_DUMPABLE = 4


def main(status_fd: int, command: list[str]) -> NoReturn:
    """Run the command as process 2."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (*_PASSED_ON, signal.SIGCHLD))
    os.set_inheritable(status_fd, False)
    _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)  # the command may neither trace it nor use its descriptors
    _leave_keyring()
    executed, failed = os.pipe()
    agent = os.fork()
    if agent == 0:
        _execute(command, failed)
    os.close(failed)
    failure = os.read(executed, 16)
    os.close(executed)
    os.write(status_fd, b"X" + failure if failure else b"R")
    status = _wait(agent)
    if not failure:
        os.write(status_fd, b"S%d" % status)
    os._exit(0)


def _listen(to: int, port: int) -> None:
    """Send a listening socket of this network to outside.py."""
    import _socket as socket

    listener = socket.socket()
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    sent = listener.fileno().to_bytes(4, sys.byteorder)
    outside = socket.socket(fileno=to)
    outside.sendmsg([b"L"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
    outside.close()
    listener.close()


def _execute(command: list[str], failed: int) -> NoReturn:
    try:
        # Its `kill 0` must not reach process 1, and its session has no terminal.
        os.setsid()
        high = os.dup2(failed, 63, inheritable=False)
        os.closerange(3, high)
        os.closerange(high + 1, os.sysconf("SC_OPEN_MAX"))
        failed = high
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvp(command[0], command)
    except OSError as error:
        os.write(failed, b"%d" % (error.errno or 5))
    finally:
        os._exit(127)


def _wait(agent: int) -> int:
    """Reap until the command ends, and pass on signals from outside. Returns its wait status."""
    waited_for = {*_PASSED_ON, signal.SIGCHLD}
    while True:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == agent:
                return status
            if pid == 0:
                break
        info = signal.sigwaitinfo(waited_for)
        # The sender of a signal from outside is not visible here: 0. A process inside has the command's pid.
        if info.si_signo != signal.SIGCHLD and info.si_pid == 0:
            for number in (info.si_signo, signal.SIGCONT):
                try:
                    os.killpg(agent, number)
                except OSError:
                    break


def _leave_keyring() -> None:
    """Have no session keyring in common with the user. (The user's own keyring stays behind in any case: it
    belongs to another user namespace.)"""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        _call("syscall", number, _JOIN_SESSION_KEYRING, 0, 0, 0)


def _call(name: str, *arguments: int) -> None:
    function = _ctypes.dlsym(_ctypes.dlopen(None, 0), name)  # pyright: ignore[reportArgumentType]
    _ctypes.call_function(function, arguments)


if __name__ == "__main__":
    _status, *_listener = map(int, sys.argv[1].split(","))
    if _listener:
        _listen(*_listener)
    main(_status, sys.argv[3:])
