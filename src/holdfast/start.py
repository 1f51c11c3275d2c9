"""Starting our own processes: a runner for a task, detached from whoever asked.

The seed forks one in about a millisecond. Without a seed, a command forks itself into the runner: it has loaded all that a
runner needs, so this is as fast as it gets cold. Whoever loses the race for runner.lock leaves quietly.
"""

from __future__ import annotations

import os
import signal
import sys

from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def start_runner(packet: Packet) -> None:
    """Make sure that a runner lives, or soon does. Returns at once."""
    from holdfast import seed_client

    if seed_client.fork_runner(packet):
        return
    if "HOLDFAST_ATTEMPT" in os.environ:
        # Inside somebody's attempt: its sweep knows a process by the environment it was executed with,
        # so the runner must be executed with a clean one.
        execute("holdfast.runner", [packet.path], packet.home, role="runner", log=packet.runner_log)
    else:
        fork_runner(packet)


def fork_runner(packet: Packet) -> int:
    """Fork this process into the runner of a packet; returns its pid. The caller must have one thread only."""
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        become_detached(log=packet.runner_log)
        os.environ["HOLDFAST_ROLE"] = "runner"
        from holdfast.runner.main import main

        status = main([packet.path])
    except Exception:  # our bug: whoever reads runner.log sees it, and the next runner starts from the packet
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def execute(module: str, args: list[str], home: Home, *, role: str, log: str = os.devnull) -> int:
    """Execute `python -m module args`, detached, for a home; returns its pid.

    The environment loses what belongs to an agent's attempt and names the role, so that no sweep takes it for a tool.
    """
    env = {name: value for name, value in os.environ.items() if name not in _OF_ATTEMPTS}
    env["HOLDFAST_HOME"] = home.path
    env["HOLDFAST_ROLE"] = role
    # -P: the current directory may be a project with a json.py of its own.
    argv = [sys.executable, "-P", "-m", module, *args]
    pid = os.fork()
    if pid:
        return pid
    try:
        become_detached(log=log)
        _exec(argv, env)
    finally:
        os._exit(127)


_OF_ATTEMPTS = frozenset({"HOLDFAST_ATTEMPT", "HOLDFAST_TASK", "HOLDFAST_PACKET", "HOLDFAST_RESUME_COUNT"})


def _exec(argv: list[str], env: dict[str, str]) -> NoReturn:
    os.execve(argv[0], argv, env)


def become_detached(*, log: str = os.devnull) -> None:
    """A session of its own, nothing on 0 and 1, a log on 2, no other descriptor, default signals."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    except OSError:
        os.dup2(null, 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
