"""Stand for a sandboxed command outside: start bwrap, pass signals in, and end exactly as the command ended.

Executed by path (`python -I -S outside.py HELD HOSTS COUNT AFTER… BWRAP ARGUMENTS…`); it imports only what is
built in. AFTER are COUNT words: a command that is run when the sandbox has ended. Until then the folder HELD
is locked, if it is not empty. With HOSTS, proxy.py serves the socket that process 1 of the sandbox sends; it
lives as long as the sandbox, and is started again if it dies. The identity of this process is that of the
attempt, so that all that watches, stops or adopts an agent does the same with a sandboxed one.

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

_INFO_FD, _STATUS_FD, _LISTENER_FD = 3, 4, 5
_PROXY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "proxy.py")
#: A proxy that dies at once again and again is not started for ever.
_PROXIES = 100
_PR_SET_PDEATHSIG = 1
#: Its exit statuses if the sandbox could not be made, and if the command could not be executed.
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


def main(argv: list[str], *, held: str = "", hosts: str = "", after: list[str] | None = None) -> NoReturn:
    """Run `argv`, the command line of bwrap."""
    # From the start: what arrives before the command runs stays pending, and is passed on then.
    signal.pthread_sigmask(signal.SIG_BLOCK, (*_PASSED_ON, signal.SIGCHLD))
    lock = _hold(held) if held else -1
    info, info_write = os.pipe()
    status, status_write = os.pipe()
    parent = os.getpid()
    descriptors = {_INFO_FD: info_write, _STATUS_FD: status_write}
    proxy = ProxyProcess(hosts) if hosts else None
    if proxy is not None:
        descriptors[_LISTENER_FD] = proxy.sender
    bwrap = os.fork()
    if bwrap == 0:
        _become(argv, descriptors, parent)
    for descriptor in descriptors.values():
        os.close(descriptor)
    init = _process_1(info)
    if proxy is not None:
        proxy.receive()
    # One byte: a short command has ended by now, and its status follows at once.
    report = os.read(status, 1)
    ended = _pass_signals(bwrap, init, proxy) if report == b"R" else os.waitpid(bwrap, 0)[1]
    rest = os.read(status, 64)
    if proxy is not None:
        proxy.end()
    if lock >= 0:
        os.close(lock)
    if after:
        _run(after)
    _end(report, rest, ended=ended, argv=argv)


class ProxyProcess:
    """The child that serves the sandbox's only way out."""

    def __init__(self, hosts: str) -> None:
        from _socket import socketpair  # only a list of hosts pays for it

        self.hosts = hosts
        self.pid = self.starts = 0
        #: The socket in the sandbox's network, once its process 1 has sent it. It stays open here, so that a
        #: connection waits for the next proxy.
        self.listener = -1
        self.receiver, sender = socketpair()
        self.sender = sender.detach()

    def receive(self) -> None:
        """Get the socket, and start to serve it. Without a sandbox there is none."""
        data = self.receiver.recvmsg(1, 64)[1]
        self.receiver.close()
        if data:
            self.listener = int.from_bytes(data[0][2][:4], sys.byteorder)
            self.start()

    def start(self) -> None:
        """Start it, unless it was started too often."""
        self.pid, self.starts = 0, self.starts + 1
        if self.starts > _PROXIES:
            return
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                _die_with(parent)
                os.chdir("/")
                # Not the agent's input and output; what it refuses goes to the attempt's stderr.
                nothing = os.open(os.devnull, os.O_RDWR)
                os.dup2(nothing, 0)
                os.dup2(nothing, 1)
                listener = os.dup2(os.dup(os.dup(self.listener)), 63)
                os.closerange(3, listener)
                signal.pthread_sigmask(signal.SIG_SETMASK, ())
                os.execv(sys.executable, [sys.executable, "-I", "-S", _PROXY, str(listener), self.hosts])
            finally:
                os._exit(_NOT_EXECUTED)

    def check(self) -> None:
        """Start another one if it died."""
        if self.pid and os.waitpid(self.pid, os.WNOHANG)[0]:
            self.start()

    def end(self) -> None:
        """End it with the sandbox."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _die_with(parent: int) -> None:
    """In a child: die when the parent dies."""
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # pyright: ignore[reportArgumentType]
    _ctypes.call_function(prctl, (_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != parent:
        os._exit(_NO_SANDBOX)  # it died before it could be watched


def _hold(folder: str) -> int:
    """Lock a folder while the sandbox lives."""
    import fcntl

    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def _run(command: list[str]) -> None:
    """Run a command of holdfast to its end. Its errors go to stderr, which is the attempt's."""
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
        _die_with(parent)
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


def _pass_signals(bwrap: int, init: int, proxy: ProxyProcess | None = None) -> int:
    """Pass signals on until bwrap ends. Returns its wait status.

    Process 1 is not reaped before bwrap ends, so its pid stays its own.
    """
    waited_for = {*_PASSED_ON, signal.SIGCHLD}
    while True:
        pid, ended = os.waitpid(bwrap, os.WNOHANG)
        if pid:
            return ended
        if proxy is not None:
            proxy.check()
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
    _count = 4 + int(sys.argv[3])
    main(sys.argv[_count:], held=sys.argv[1], hosts=sys.argv[2], after=sys.argv[4:_count])
