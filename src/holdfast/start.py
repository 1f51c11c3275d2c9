"""Starting our own processes, detached from whoever asked: a runner for a task, the seed and the keeper of a home.

The seed forks one in about a millisecond. Without a seed, a command forks itself into the runner: it has loaded all that a
runner needs, so this is as fast as it gets cold. Whoever loses the race for runner.lock leaves quietly.
"""

from __future__ import annotations

import os
import sys

from holdfast import clock, seed_client
from holdfast.errors import CorruptFile, LockHeld
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    # In C, as in the recorder: no member of an enumeration for every number, in every process that is forked.
    import _signal as signal


#: At most so many starts of a keeper by runners in STARTS_WINDOW_S; then `status` says so and a person has to look.
STARTS_LIMIT = 5
STARTS_WINDOW_S = 600.0
#: How long a service manager may take to say that it was asked.
_UNIT_S = 3.0
#: A keeper that was just started needs this long to take its lock.
_START_S = 2.0
_LONGEST_PAUSE_S = 60.0
#: What the end of a session, or a key, sends to everybody in it.
_OF_SESSION = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def start_runner(packet: Packet, *, may_fork: bool = True) -> None:
    """Make sure that a runner lives, or soon does. Returns at once.

    `may_fork` is False for a keeper: it holds a lock, and a forked copy of that would outlive it.
    """
    if seed_client.fork_runner(packet):
        return
    if not may_fork or "HOLDFAST_ATTEMPT" in os.environ:
        # Inside somebody's attempt: its sweep knows a process by the environment it was executed with,
        # so the runner must be executed with a clean one.
        execute("holdfast.runner", [packet.path], packet.home, role="runner", log=packet.runner_log)
    else:
        fork_runner(packet)


def fork_runner(packet: Packet) -> int:
    """Fork this process into the runner of a packet; returns its pid. The caller must have one thread only."""
    # Until the child has a session of its own, whoever ends ours reaches it too; it takes the defaults again behind that.
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _OF_SESSION}
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid:
            for number, handler in before.items():
                signal.signal(number, handler)
    return pid or become_runner(packet)


def become_runner(packet: Packet, *, keep: int = -1) -> NoReturn:
    """In a forked child: detach from everything but the descriptor `keep`, drive the task, and leave."""
    status = 70
    try:
        # At once: whoever ends the session that we came from must not reach us.
        become_detached(log=packet.runner_log, keep=keep)
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
    env = {name: value for name, value in os.environ.items() if name not in OF_ATTEMPTS}
    env["HOLDFAST_HOME"] = home.path
    env["HOLDFAST_ROLE"] = role
    # -P: the current directory may be a project with a json.py of its own.
    argv = [sys.executable, "-P", "-m", module, *args]
    executed, executing = os.pipe()
    pid = os.fork()
    if pid:
        # Until exec it looks like us: a sweep of ours must not come across it.
        os.close(executing)
        os.read(executed, 1)
        os.close(executed)
        return pid
    try:
        become_detached(log=log, keep=executing)
        _exec(argv, env)
    finally:
        os._exit(127)


def ensure_seed(home: Home) -> None:
    """Start the seed of a home, unless it lives."""
    if not locks.is_held(home.seed_lock):
        execute("holdfast.seed", [], home, role="seed")


def lift(home: Home) -> None:
    """Let a keeper live here again. Only `up` and `run` remove the flag."""
    if os.path.exists(home.down):
        atomic.remove(home.down)
        atomic.sync_directory(home.path)


def wants_keeper(home: Home) -> bool:
    """Whether a keeper may live here at all."""
    return os.environ.get("HOLDFAST_KEEPER") != "off" and not os.path.exists(home.down)


def ensure_keeper(home: Home, *, by_person: bool, for_good: bool = False) -> int | None:
    """Start the keeper of a home, unless it lives or the home is down. Returns the pid of the one that was started, 0 when
    a unit started it.

    Runners all notice the death of a keeper at once. One of them is the starter (it has keeper-start.lock); the times of the
    starts are on disk, so that a keeper that cannot live is not started for ever. A person's start begins a new count.
    HOLDFAST_KEEPER=off leaves the home to its runners (in a container, say, where something else restarts them).
    """
    if not wants_keeper(home):
        return None
    if locks.is_held(home.keeper_lock):
        return None
    try:
        lock = locks.acquire(home.keeper_start_lock, role="starter", within_s=0.0)
    except LockHeld:
        return None
    try:
        now = clock.now()
        starts = [] if by_person else _counted(keeper_starts(home), now=now)
        if _pause_s(starts, now=now) > 0 or locks.is_held(home.keeper_lock):
            return None
        atomic.write_json(
            home.keeper_starts, {"schema": "holdfast.keeper-starts/1", "starts": [*starts, now]}, durable=True
        )
        return _start_keeper(home, for_good=for_good)
    finally:
        lock.release()


def _start_keeper(home: Home, *, for_good: bool) -> int:
    """Through the unit where one is installed, so that it restarts what it started; otherwise by ourselves."""
    try:
        service = atomic.read_json(home.service)
    except CorruptFile:
        service = None
    if service is not None and _run_quietly(service.get("start")):
        return 0
    return execute(
        "holdfast.keeper", [] if for_good else ["--idle-exit"], home, role="keeper", log=home.keeper_log
    )


def _run_quietly(argv: object) -> bool:
    if not isinstance(argv, list) or not argv:
        return False
    words = [str(word) for word in argv]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    null = os.open(os.devnull, os.O_RDWR)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, standard) for standard in (0, 1, 2)]
        pid = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
        ends_mono = clock.mono() + _UNIT_S
        while clock.mono() < ends_mono:
            gone, status = os.waitpid(pid, os.WNOHANG)
            if gone:
                return os.waitstatus_to_exitcode(status) == 0
            clock.sleep(0.01)
        return True  # slow, but asked: the lock decides
    except OSError:
        return False
    finally:
        os.close(null)


def keeper_starts(home: Home) -> list[float]:
    """When the keeper was started of late."""
    try:
        data = atomic.read_json(home.keeper_starts) or {}
        return [float(at) for at in data.get("starts", [])]
    except (CorruptFile, TypeError, ValueError):
        return []


def keeper_pause_s(home: Home) -> float:
    """How long nobody but a person starts a keeper."""
    now = clock.now()
    return _pause_s(_counted(keeper_starts(home), now=now), now=now)


def _counted(starts: list[float], *, now: float) -> list[float]:
    return [at for at in starts if 0 <= now - at < STARTS_WINDOW_S]


def _pause_s(starts: list[float], *, now: float) -> float:
    """Doubling from start to start; behind the last one that is allowed, until the window has moved on."""
    if len(starts) >= STARTS_LIMIT:
        return starts[-STARTS_LIMIT] + STARTS_WINDOW_S - now
    return starts[-1] + min(_START_S ** len(starts), _LONGEST_PAUSE_S) - now if starts else 0.0


OF_ATTEMPTS = frozenset(
    {"HOLDFAST_ATTEMPT", "HOLDFAST_TASK", "HOLDFAST_PACKET", "HOLDFAST_RESUME_COUNT", "HOLDFAST_ANSWER"}
)


def _exec(argv: list[str], env: dict[str, str]) -> NoReturn:
    os.execve(argv[0], argv, env)


def become_detached(*, log: str = os.devnull, keep: int = -1) -> None:
    """A session of its own, nothing on 0 and 1, a log on 2, no other descriptor, default signals."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    except OSError:
        os.dup2(null, 2)
    os.closerange(3, max(3, keep))
    os.closerange(max(3, keep + 1), os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
