"""Execute holdfast's own processes, detached: a runner, the seed and the keeper of a home."""

from __future__ import annotations

import os
import sys

from holdfast import clock, own_python, program_search
from holdfast.errors import CorruptFile, LockHeld, NotPossible
from holdfast.store import atomic, process, pulse
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    # The C module, as in the recorder: no enum members in the memory of every forked process.
    import _signal as signal


#: Variables that belong to an agent's attempt; holdfast's own processes must not inherit them.
ATTEMPT_VARIABLES = frozenset(
    {
        "HOLDFAST_ATTEMPT",
        "HOLDFAST_TASK",
        "HOLDFAST_PACKET",
        "HOLDFAST_RESUME_COUNT",
        "HOLDFAST_ANSWER",
        "HOLDFAST_JOURNAL",
    }
)
#: Time that starts are remembered. Keepers in a row that died before they had worked: then `status` says so.
STARTS_WINDOW_S = 600.0
FAILURES_SHOWN = 5
#: Time limit for the service manager's start command.
_UNIT_S = 3.0
#: Time that a new keeper needs to take its lock; the base of the pause between starts.
_START_S = 2.0
#: There is no last start: a queue must not stand still because keepers died.
_MAX_PAUSE_S = 60.0


#: Whether this process is another program's (the Python API, a server): it may have threads, so it must not
#: be forked, and it may live long, so it must not be the parent of our processes: it would have to reap them.
is_guest = False

#: The soft and hard limit of open files of executed processes, if they differ from those of this process.
executed_with: tuple[int, int] | None = None


def execute_runner(packet: Packet) -> int:
    """Execute a runner for a packet; returns its pid."""
    return execute("holdfast.runner", [packet.path], packet.home, role="runner", log=packet.runner_log)


def park_task(packet: Packet, reason: str) -> int:
    """Execute a process that interrupts a task whose runners die; returns its pid."""
    words = [packet.path, "--park", reason]
    return execute("holdfast.runner", words, packet.home, role="runner", log=packet.runner_log)


def end_agents(packet: Packet) -> None:
    """Execute a process that ends the agents of a removed packet."""
    execute("holdfast.runner", [packet.path, "--removed"], packet.home, role="runner")


def execute(module: str, args: list[str], home: Home, *, role: str, log: str = os.devnull) -> int:
    """Execute `python -m module args` detached, for a home; returns its pid.

    The environment loses the variables of an agent's attempt and gets the role, so that no sweep takes the
    process for an agent's tool.
    """
    env = {name: value for name, value in os.environ.items() if name not in ATTEMPT_VARIABLES}
    env["HOLDFAST_HOME"] = home.path
    env["HOLDFAST_ROLE"] = role
    env[program_search.AROUND] = program_search.around()
    if is_guest:
        return _execute_apart(module, args, home, role=role, log=log)
    argv = own_python.command(module, *args)
    executed, executing = os.pipe()
    pid = os.fork()
    if pid:
        # Until exec, the child looks like this process. Wait, so that a sweep does not see it in that state.
        os.close(executing)
        os.read(executed, 1)
        os.close(executed)
        return pid
    try:
        become_detached(log=log, keep=executing)
        restore_limits()
        os.execve(argv[0], argv, env)
    finally:
        os._exit(127)


def _execute_apart(module: str, args: list[str], home: Home, *, role: str, log: str) -> int:
    """The same through a process that ends at once."""
    import subprocess  # only a guest needs it

    argv = own_python.command("holdfast.spawn", module, home.path, role, log, *args)
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        atomic.storage_failed(error, f"cannot execute {sys.executable}")
    if not done.stdout.isdigit():
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise NotPossible(f"cannot start {module} with {sys.executable}: {last}")
    return int(done.stdout)


def restore_limits(pid: int = 0) -> None:
    """Give this process, or a child, the limits that this process had at its start."""
    if executed_with is None:
        return
    import resource  # only a keeper has raised its limit

    try:
        if pid and sys.platform == "linux":
            resource.prlimit(pid, resource.RLIMIT_NOFILE, executed_with)
        elif not pid:
            resource.setrlimit(resource.RLIMIT_NOFILE, executed_with)
    except (OSError, ValueError):
        return  # it has ended


def ensure_seed(home: Home) -> None:
    """Start the seed of a home unless it is running."""
    if not locks.is_held(home.seed_lock):
        execute("holdfast.seed", [], home, role="seed")


def allow_keeper(home: Home) -> None:
    """Remove the `down` flag, so that the home may have a keeper again. Only `up` and `run` do this."""
    if os.path.exists(home.down):
        atomic.remove(home.down)
        atomic.sync_directory(home.path)


def keeper_allowed(home: Home) -> bool:
    """Whether the home may have a keeper."""
    return os.environ.get("HOLDFAST_KEEPER") != "off" and not os.path.exists(home.down)


def ensure_keeper(home: Home, *, by_person: bool, for_good: bool = False) -> int | None:
    """Start the keeper of a home, unless it is running or the home is down. Wake it if a signal stopped it.

    Returns the pid of the new keeper, 0 if a service unit started it, None if nothing was started.

    All runners notice the death of a keeper at once. The one that gets keeper-start.lock starts the next
    keeper. The times of the starts are on disk, so that keepers that die before they have worked are started
    less and less often; a person's start resets the count. HOLDFAST_KEEPER=off disables the keeper (say, in a
    container where something else restarts runners). `for_good` means that the keeper stays when there is
    nothing to do.
    """
    if not keeper_allowed(home):
        return None
    process.require_proc()
    if locks.is_held(home.keeper_lock):
        pulse.wake(home.keeper_lock)
        return None
    try:
        lock = locks.acquire(home.keeper_start_lock, role="starter", within_s=0.0)
    except LockHeld:
        return None
    try:
        now = clock.now()
        starts, failures = ([], 0) if by_person else _read_starts(home, now=now)
        if _pause_s(starts, failures, now=now) > 0 or locks.is_held(home.keeper_lock):
            return None
        _write_starts(home, [*starts, now], failures + 1, durable=True)
        return _start_keeper(home, for_good=for_good)
    finally:
        lock.release()


def _start_keeper(home: Home, *, for_good: bool) -> int:
    """Through the service unit if one is installed, so that the unit can restart the keeper; otherwise
    directly."""
    try:
        service = atomic.read_json(home.service)
    except CorruptFile:
        service = None
    command = start_command(service) if service is not None and is_unit_of(home, service) else None
    if command is not None and _run_quietly(command):
        return 0
    return execute(
        "holdfast.keeper", [] if for_good else ["--idle-exit"], home, role="keeper", log=home.keeper_log
    )


def is_unit_of(home: Home, service: dict[str, Any]) -> bool:
    """Whether a unit was installed for this home. In a copied home, the record is about the original's."""
    return os.path.realpath(str(service.get("home", home.path))) == os.path.realpath(home.path)


def start_command(service: dict[str, Any]) -> list[str] | None:
    """The command that starts the keeper through its unit; None if the record is not one that we wrote.

    An agent can write in the home. So the record names a unit of ours and nothing else: neither a program nor
    its arguments.
    """
    name = str(service.get("unit"))
    kind, body = (name[:-8], "holdfast") if name.endswith(".service") else (name, "holdfast.keeper")
    suffix = kind.removeprefix(body)
    if kind == suffix or (suffix and (len(suffix) != 9 or not suffix[1:].isalnum() or suffix[0] != "-")):
        return None
    if body == "holdfast":
        # --no-block: a runner must never wait for systemd.
        return ["systemctl", "--user", "start", "--no-block", name]
    return ["launchctl", "kickstart", f"gui/{os.getuid()}/{name}"]


def _run_quietly(words: list[str]) -> bool:
    program = program_search.find(words[0])
    if program is None:
        return False
    null = os.open(os.devnull, os.O_RDWR)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, standard) for standard in (0, 1, 2)]
        pid = os.posix_spawn(program, words, program_search.environment(), file_actions=actions)
        ends_mono = clock.mono() + _UNIT_S
        while clock.mono() < ends_mono:
            reaped, status = os.waitpid(pid, os.WNOHANG)
            if reaped:
                return os.waitstatus_to_exitcode(status) == 0
            clock.sleep(0.01)
        return True  # slow, but the request was made; the keeper's lock decides
    except OSError:
        return False
    finally:
        os.close(null)


def awake_command() -> list[str] | None:
    """The command that keeps the machine awake until its input ends; None if there is none."""
    is_mac = sys.platform == "darwin"
    program = program_search.find("caffeinate" if is_mac else "systemd-inhibit")
    cat = program_search.find("cat")
    if program is None or cat is None:
        return None
    if is_mac:
        return [program, "-i", cat]
    # Not the lid: a laptop that is closed may be put into a bag.
    return [program, "--what=idle:sleep", "--mode=block", "--who=holdfast", "--why=tasks are running", cat]


def keeper_starts(home: Home) -> list[float]:
    """Times of the keeper's recent starts."""
    return _read_starts(home, now=clock.now())[0]


def keeper_failures(home: Home) -> int:
    """How many keepers in a row were started and have not worked (yet)."""
    return _read_starts(home, now=clock.now())[1]


def keeper_has_worked(home: Home) -> None:
    """Called by a keeper that did everything that was due: its death will not count as a failure."""
    starts, failures = _read_starts(home, now=clock.now())
    if failures:
        _write_starts(home, starts, 0, durable=False)


def keeper_pause_s(home: Home) -> float:
    """Seconds until a keeper may be started automatically again."""
    now = clock.now()
    return _pause_s(*_read_starts(home, now=now), now=now)


def _read_starts(home: Home, *, now: float) -> tuple[list[float], int]:
    """The recent starts, and how many of the last ones were failures."""
    try:
        data = atomic.read_json(home.keeper_starts) or {}
        starts = [at for at in map(float, data.get("starts", [])) if 0 <= now - at < STARTS_WINDOW_S]
        return starts, max(0, min(int(data.get("failures", len(starts))), len(starts)))
    except (CorruptFile, TypeError, ValueError, OverflowError):
        return [], 0


def _write_starts(home: Home, starts: list[float], failures: int, *, durable: bool) -> None:
    data = {"schema": "holdfast.keeper-starts/1", "starts": starts, "failures": failures}
    atomic.write_json(home.keeper_starts, data, durable=durable)


def _pause_s(starts: list[float], failures: int, *, now: float) -> float:
    """The pause doubles with each failure, up to a minute."""
    return starts[-1] + min(_START_S**failures, _MAX_PAUSE_S) - now if failures else 0.0


def _open_log(path: str) -> int:
    if path == os.devnull:
        return os.open(path, os.O_WRONLY)
    if os.path.lexists(path) and os.lstat(path).st_nlink > 1:
        atomic.put_aside(path)  # it is a second name of a file that may be a user's
    return atomic.open_own(path, os.O_WRONLY | os.O_APPEND)


def become_detached(*, log: str = os.devnull, keep: int = -1) -> None:
    """Detach: a new session, null on 0 and 1, a log on 2, no other descriptor but `keep`, default signals."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    try:
        os.dup2(_open_log(log), 2)
    except OSError:
        os.dup2(null, 2)
    os.closerange(3, max(3, keep))
    os.closerange(max(3, keep + 1), os.sysconf("SC_OPEN_MAX"))
    os.environ[program_search.AROUND] = program_search.around()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def main() -> None:
    """`python -m holdfast.spawn MODULE HOME ROLE LOG ARGUMENTS…`, for a guest; prints the pid."""
    module, home, role, log, *args = sys.argv[1:]
    sys.stdout.write(str(execute(module, args, Home(home), role=role, log=log)))


if __name__ == "__main__":
    main()
