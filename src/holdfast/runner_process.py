"""Start the runner of a task: forked by the seed, forked from this process, or executed.

The seed forks a runner in about a millisecond. Without a seed, a command forks itself into the runner,
because it has loaded most of what a runner needs. Two runners may be started for a task; the one that does
not get runner.lock exits.
"""

from __future__ import annotations

import os
import sys

from holdfast import seed_client, spawn
from holdfast.packet import inbox
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    # The C module, as in the recorder: no enum members in the memory of every forked process.
    import _signal as signal

#: Signals that a terminal or the end of a session sends to every process in it.
_SESSION_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def start_runner(packet: Packet) -> None:
    """Make sure that the packet has a runner, or soon will. Returns immediately.

    The keeper is told at once: it watches the process, even if that dies before it has taken its lock.
    """
    pid = seed_client.fork_runner(packet)
    if not pid:
        # Inside an agent's attempt, the sweep identifies processes by the environment they were executed
        # with, so the runner must be executed with a clean one.
        is_inside = "HOLDFAST_ATTEMPT" in os.environ
        is_executed = is_inside or spawn.is_guest
        pid = spawn.execute_runner(packet) if is_executed else fork_runner(packet)
    try:
        inbox.announce_runner(packet, pid)
    except OSError:
        return  # the runner announces itself


def start_runner_for_keeper(packet: Packet) -> int:
    """The same for a keeper, which does not fork itself: a copy of its lock would outlive it.

    Returns the pid of the runner.
    """
    return seed_client.fork_runner(packet) or spawn.execute_runner(packet)


def fork_runner(packet: Packet) -> int:
    """Fork this process into the runner of a packet; returns its pid.

    The caller must have only one thread.
    """
    # Until the child has its own session, it gets the session's signals too. It restores the defaults after
    # setsid.
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _SESSION_SIGNALS}
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return pid or become_runner(packet)


def become_runner(packet: Packet, *, keep: int = -1) -> NoReturn:
    """In a forked child: detach, keep only the descriptor `keep`, drive the task, and exit."""
    status = 70
    try:
        # First, so that signals to the parent's session do not reach this process.
        spawn.become_detached(log=packet.runner_log, keep=keep)
        os.environ["HOLDFAST_ROLE"] = "runner"
        from holdfast.runner.main import main

        status = main([packet.path])
    except Exception:  # a bug in holdfast, for runner.log; the next runner continues from the packet
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
