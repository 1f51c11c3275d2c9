"""A process that cleans up after the demo if the demo itself is killed with SIGKILL."""

from __future__ import annotations

import os
import signal

from holdfast import spawn
from holdfast.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.views.demo.world import DemoWorld

_DONE = b"."


class CleanupGuard:
    """Runs from `begin` to `dismiss`. Waits on a pipe whose other end closes when the demo dies."""

    def __init__(self, world: DemoWorld, *, removes_folder: bool) -> None:
        self.world = world
        #: True for a temporary folder, false for one given with --home.
        self.removes_folder = removes_folder
        self._write_end = -1
        self._pid = 0

    def begin(self) -> None:
        """Fork the guard into its own session, out of reach of a signal to the demo's process group."""
        read_end, write_end = os.pipe()
        # Block signals meanwhile: the demo's handlers would also run in the child.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if not pid:
                self._wait(read_end)
            self._write_end, self._pid = write_end, pid
        except OSError:
            os.close(write_end)
            raise
        finally:
            os.close(read_end)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def dismiss(self) -> None:
        """End the guard: the demo has cleaned up, or is about to."""
        if self._write_end < 0:
            return
        write_end, self._write_end = self._write_end, -1
        try:
            os.write(write_end, _DONE)
        except OSError:
            pass  # the guard was killed
        os.close(write_end)
        os.waitpid(self._pid, 0)

    def _wait(self, read_end: int) -> None:
        try:
            # Close the write end too, or the pipe would never be closed. This also unblocks signals.
            spawn.become_detached(keep=read_end)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            if os.read(read_end, 1) == _DONE:
                return
            try:
                self.world.leave()
            except HoldfastError:
                pass  # there is nobody to report to; remove what can be removed
            if self.removes_folder:
                import shutil

                shutil.rmtree(self.world.folder, ignore_errors=True)
        finally:
            os._exit(0)
