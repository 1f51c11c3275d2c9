"""Steps that leave a process behind."""

from __future__ import annotations

import os
import signal
import sys

from holdfast.testing.agent.play import ScriptFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.testing.agent.play import Play

#: A forgotten process ends after this time, in case nothing sweeps it.
LIMIT_S = 3600


def grandchild(
    play: Play,
    *,
    s: float = LIMIT_S,
    pid_file: str | None = None,
    ignore_signals: bool = False,
    strip_env: bool = False,
    orphan: bool = False,
    hold_output: bool = False,
) -> None:
    """A process in its own session that sleeps for `s` seconds."""
    spawn(
        ["/bin/sleep", str(s)],
        pid_file=pid_file,
        ignored=(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) if ignore_signals else (),
        env={} if strip_env else None,
        is_orphan=orphan,
        holds_output=hold_output,
    )


def server(
    play: Play,
    *,
    port: int = 0,
    pid_file: str | None = None,
    port_file: str | None = None,
    limit_s: int = LIMIT_S,
) -> None:
    """A server on a loopback port that answers "ok" to everything, left running."""
    import socket

    # Listening before the step is over, so that a reader of port_file can connect.
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise ScriptFailure(f"cannot listen on port {port}: {error.strerror}") from error
    program = os.path.join(os.path.dirname(os.path.dirname(__file__)), "server.py")
    spawn(
        [sys.executable, "-S", program, str(listener.fileno()), str(limit_s)],
        pid_file=pid_file,
        inherited=listener.fileno(),
    )
    if port_file:
        replace_file(port_file, f"{listener.getsockname()[1]}\n")
    listener.close()


def spawn(
    argv: list[str],
    *,
    pid_file: str | None = None,
    ignored: tuple[int, ...] = (),
    env: dict[str, str] | None = None,
    inherited: int | None = None,
    is_orphan: bool = False,
    holds_output: bool = False,
) -> None:
    """Start `argv` in a new session and return once it runs and its pid file is written.

    Without subprocess, for two reasons: ignored signals must survive the exec, and the child must never react
    to a signal with the agent's handlers.
    """
    told, tell = os.pipe()  # closed by the exec, or carries the errno of a failure
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            if is_orphan and os.fork():
                os._exit(0)
            if pid_file:
                replace_file(pid_file, f"{os.getpid()}\n")
            _let_go_of_descriptors(inherited, holds_output=holds_output)
            _reset_signals(ignored)
            os.execve(argv[0], argv, os.environ if env is None else env)
        except OSError as error:
            os.write(tell, str(error.errno).encode())
        os._exit(127)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(tell)
    problem = os.read(told, 16)
    os.close(told)
    if is_orphan:
        os.waitpid(pid, 0)
    if problem:
        raise ScriptFailure(f"cannot start {argv[0]}: {os.strerror(int(problem))}")


def _let_go_of_descriptors(inherited: int | None, *, holds_output: bool) -> None:
    """Descriptors above 2 are closed by the exec; Python opens nothing inheritable."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0,) if holds_output else (0, 1, 2):
        os.dup2(null, fd)
    if inherited is not None:
        os.set_inheritable(inherited, True)


def _reset_signals(ignored: tuple[int, ...]) -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def replace_file(path: str, text: str) -> None:
    """Atomically, because others wait for the file to appear."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(temporary, path)
