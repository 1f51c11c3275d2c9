"""A process beside the demo that ends what the demo started, should the demo itself be killed: SIGKILL lets nobody clear up."""

from __future__ import annotations

import os
import signal

from holdfast import spawn
from holdfast.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.views.demo.world import World

_DONE = b"."


class Warden:
    """Stands by from `begin` to `dismiss`. It notices by a pipe, whose other end the kernel closes with the demo."""

    def __init__(self, world: World, *, removes: bool) -> None:
        self.world = world
        #: Whether the folder goes, too: where nobody asked for it.
        self.removes = removes
        self._said = -1
        self._pid = 0

    def begin(self) -> None:
        """Fork it, in a session of its own: whoever kills the demo's group does not reach it."""
        heard, said = os.pipe()
        # No signal in between: the demo's handlers would clear up in the child, too. It lets them in when it has its own.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if not pid:
                self._stand_by(heard)
            self._said, self._pid = said, pid
        except OSError:
            os.close(said)
            raise
        finally:
            os.close(heard)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def dismiss(self) -> None:
        """The demo clears up by itself, or has: it is not needed any more."""
        if self._said < 0:
            return
        said, self._said = self._said, -1
        try:
            os.write(said, _DONE)
        except OSError:
            pass  # somebody killed it
        os.close(said)
        os.waitpid(self._pid, 0)

    def _stand_by(self, heard: int) -> None:
        try:
            # Not the other end of the pipe, or it would never close.
            spawn.become_detached(keep=heard)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            if os.read(heard, 1) == _DONE:
                return
            try:
                self.world.leave()
            except HoldfastError:
                pass  # nobody is left to tell; what can be removed, is
            if self.removes:
                import shutil

                shutil.rmtree(self.world.folder, ignore_errors=True)
        finally:
            os._exit(0)
