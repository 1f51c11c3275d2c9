"""The seed: a preloaded, single-threaded process from which runners are forked cheaply.

One per home. It is executed (never forked from a keeper, which holds other locks), has its own session and
null on 0 to 2, and holds no lock but its own. Runners that it forks share its memory. It also watches the
keeper: a queue may have no runner for hours, and then no other process could restart it.
"""

from __future__ import annotations

import _socket
import gc
import importlib
import os
import select
import sys

from holdfast import (
    __version__,
    clock,
    idle_recorder,
    own_python,
    paths,
    quick_json,
    recorder,
    runner_process,
    seed_client,
    spawn,
)
from holdfast.agents import registry
from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.redact import Redactor
from holdfast.seed_keeper_watch import KeeperWatch
from holdfast.store import atomic, digest, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    # The C module, as in the recorder.
    import _signal as signal

#: How long it waits for a request before it checks whether it is still needed.
IDLE_S = 60.0
#: Everything that a runner uses: modules that are not loaded here would be loaded by every runner.
PRELOADED = (
    "holdfast.runner.main",
    "holdfast.runner.attempt.observers",
    "holdfast.runner.attempt.outcome",
    "holdfast.runner.attempt.private_home",
    "holdfast.runner.perform.ending",
    "holdfast.runner.perform.idle",
    "holdfast.runner.perform.interaction",
    "holdfast.runner.perform.record",
    "holdfast.runner.perform.running",
    "holdfast.runner.perform.starting",
    "holdfast.runner.plan.approval",
    "holdfast.runner.plan.chores",
    "holdfast.runner.plan.ended",
    "holdfast.runner.plan.failures",
    "holdfast.runner.plan.gate",
    "holdfast.runner.plan.requests",
    "holdfast.runner.plan.retry",
    "holdfast.runner.plan.running",
    "holdfast.runner.stage.briefing",
    "holdfast.runner.stage.chore_results",
    "holdfast.runner.stage.chores",
    "holdfast.runner.stage.last_files",
    "holdfast.runner.stage.outputs",
    "holdfast.runner.stage.preflight",
    "holdfast.runner.stage.triaging",
    "holdfast.store.home_records",
    "holdfast.watch.progress",
    "holdfast.workspace.lock",
    "holdfast.agents.command",
    "holdfast.agents.scripted",
    "holdfast.patterns",
    "shutil",
    "encodings.ascii",  # for /proc
)
_VERSION_FILE = os.path.join(os.path.dirname(__file__), "__init__.py")


def main() -> int:
    """`python -m holdfast.seed`, with HOLDFAST_HOME set. Returns 75 if another seed serves the home."""
    home = Home(os.environ["HOLDFAST_HOME"])
    try:
        process.require_proc()
        lock = locks.acquire(home.seed_lock, role="seed", within_s=0.0)
    except HoldfastError as error:
        print(f"error: {error}", file=sys.stderr)  # for a person who starts it: ours is null
        return error.exit_status
    recorder.set_name("holdfast-seed")
    # The kernel reaps our runners, including those of an earlier image of this process. (Runners restore the
    # default.)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    prepare()
    listener = _listen(home)
    # Everything loaded by now is shared with all runners: keep the garbage collector from touching (and
    # copying) it.
    gc.collect()
    gc.freeze()
    _forget_lookups()
    Seed(home, listener, lock).serve()
    return 0


def prepare() -> None:
    """Load what a runner uses, and compute what every runner would compute."""
    for module in PRELOADED:
        importlib.import_module(module)
    recorder.boot_id()
    digest.sha256(b"")
    digest.running()
    # Patterns are compiled at the first use, which takes longer than forking a runner. (A shorter text would
    # be skipped.)
    Redactor({})("nothing to be masked")


def _forget_lookups() -> None:
    """Empty the interpreter's cache of attribute lookups.

    It has the names that were looked up while modules were loaded. For each that a runner replaces, the page
    with the old name would be copied. (Since 3.12, names are not counted.)
    """
    if sys.version_info < (3, 12):
        sys._clear_type_cache()  # pyright: ignore[reportPrivateUsage]


def _listen(home: Home) -> _socket.socket:
    folder = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # We hold the lock, so an existing socket belongs to a dead seed.
        if os.path.lexists(home.seed_socket):
            os.unlink(home.seed_socket)
        listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        umask = os.umask(0o077)
        try:
            listener.bind(seed_client.short_path(home, folder))
        finally:
            os.umask(umask)
        listener.listen(128)
    finally:
        os.close(folder)
    return listener


class Seed:
    """Accepts clients and forks; the child reads the request, answers, and becomes the runner."""

    def __init__(self, home: Home, listener: _socket.socket, lock: locks.Lock) -> None:
        self.home = home
        self.listener = listener
        self.lock = lock
        #: Names of agents whose module a runner had to load: the seed loads it for the next one.
        self.missed, self.miss = os.pipe()
        self._stamp = _stamp()
        self.keeper = KeeperWatch(home)

    def serve(self) -> None:
        """Serve until the home is gone or unused."""
        asked_mono = clock.mono()
        while self.lock.mend():
            wants_keeper = spawn.keeper_allowed(self.home)
            look_s = self.keeper.look() if wants_keeper else IDLE_S
            # A descriptor that is not handled would stay readable and wake us forever.
            others = [self.missed, *(self.keeper.descriptors if wants_keeper else ())]
            if self._serve_clients(others, min(look_s, IDLE_S)):
                asked_mono = clock.mono()
            elif clock.mono() - asked_mono >= IDLE_S and not self._is_needed():
                return  # no requests for a while, and nothing needs the seed
            if select.select((self.missed,), (), (), 0)[0]:
                self._load()

    def _serve_clients(self, others: list[int], within_s: float) -> bool:
        """Fork for each client, until one of `others` is readable or the time is over.

        Returns whether there was a client. A page that is written to between two forks is no longer shared by
        the runners. So there is little between two clients, and no Python code where C does.
        """
        poll = select.poll()
        for descriptor in (self.listener.fileno(), *others):
            poll.register(descriptor, select.POLLIN)
        only_client = [(self.listener.fileno(), select.POLLIN)]
        ends_mono = clock.mono() + within_s
        has_served = False
        while (left_s := ends_mono - clock.mono()) > 0:
            ready = poll.poll(left_s * 1000)
            if only_client[0] in ready:
                self._accept()
                has_served = True
            if ready != only_client:
                break
        return has_served

    def _is_needed(self) -> bool:
        if locks.is_held(self.home.keeper_lock):
            return True
        return spawn.keeper_allowed(self.home) and self.keeper.is_needed

    def _accept(self) -> None:
        # What `socket.accept` calls: a descriptor, and no object for it.
        client = int(self.listener._accept()[0])  # pyright: ignore
        failpoint("seed.accepted")
        if _stamp() != self._stamp and installed_version() != __version__:
            # The installed files are newer: replace this process. The client starts its runner itself.
            self._renew()
        try:
            if os.fork() == 0:
                self._answer(client)
        except OSError:
            pass  # no process available: the client sees the end of the connection
        finally:
            os.close(client)

    def _answer(self, descriptor: int) -> NoReturn:
        """In the child: answer the client, and become the runner."""
        try:
            # First: pages that we touch before the fork would be copied for the recorder.
            idle_recorder.prepare()
            # A runner waits for its children.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # A copy of the lock would block the next seed.
            self.listener.close()
            self.lock.release()
            client = _socket.socket(fileno=descriptor)
            client.settimeout(seed_client.PATIENCE_S)
            request = quick_json.loads(client.recv(4096) or b"{}")
            is_ours = paths.is_trust_dir(request.get("trust", paths.trust_dir()))
            if request.get("verb") == "fork" and is_ours:
                packet = Packet(os.path.join(self.home.tasks, os.path.basename(request["packet"])))
                client.sendall(quick_json.dumps({"pid": os.getpid()}).encode() + b"\n")
                self._tell(packet)
                runner_process.become_runner(packet, keep=idle_recorder.channel())
            client.sendall(quick_json.dumps({"pong": os.getppid()}).encode() + b"\n")
        except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
            pass  # the client went away or sent garbage
        finally:
            os._exit(0)

    def _tell(self, packet: Packet) -> None:
        """Report an agent's module that is not loaded. Loading all of them would need a third more memory."""
        try:
            agent = str((atomic.read_json(packet.manifest) or {}).get("agent"))
        except HoldfastError:
            return
        if registry.BUILT_IN.get(agent, "sys") not in sys.modules:
            os.write(self.miss, agent.encode() + b"\n")

    def _load(self) -> None:
        for name in os.read(self.missed, 4096).decode().split():
            importlib.import_module(registry.BUILT_IN[name])
        gc.freeze()

    def _renew(self) -> None:
        os.execve(sys.executable, own_python.command("holdfast.seed"), dict(os.environ))


def _stamp() -> int:
    """The modification time of the file with the installed version."""
    try:
        return os.stat(_VERSION_FILE).st_mtime_ns
    except OSError:
        return 0


def installed_version() -> str:
    """The version in the file that a new process would load."""
    try:
        with open(_VERSION_FILE, encoding="utf-8") as file:
            for line in file:
                if line.startswith("__version__"):
                    return line.split('"')[1]
    except (OSError, IndexError):
        pass
    return __version__


if __name__ == "__main__":
    sys.exit(main())
