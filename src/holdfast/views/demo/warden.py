"""A process beside the demo that ends what the demo started, should the demo itself be killed: SIGKILL lets nobody clear up."""

from __future__ import annotations

import os
import signal

from holdfast import start
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
        heard, self._said = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            self._stand_by(heard)
        os.close(heard)

    def dismiss(self) -> None:
        """The demo clears up by itself, or has: it is not needed any more."""
        if self._said < 0:
            return
        os.write(self._said, _DONE)
        os.close(self._said)
        self._said = -1
        os.waitpid(self._pid, 0)

    def _stand_by(self, heard: int) -> None:
        try:
            # Not the other end of the pipe, or it would never close.
            start.become_detached(keep=heard)
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
