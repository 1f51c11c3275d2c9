"""Quitting ends, whatever the terminal does.

Textual joins the thread that reads the keyboard, and the one that writes the screen. Either can wait for a
terminal that no longer answers. After a while, `top` restores the terminal as far as it can, and exits.
"""

from __future__ import annotations

import os
import sys
import termios
import threading

#: How long Textual may take to put the terminal back.
_LIMIT_S = 5.0
#: Leave the alternate screen, show the cursor, report neither mouse nor pastes.
_RESTORE = b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l"


class LeaveLimit:
    """The time limit of a quit. The modes of the terminal are those of its creation."""

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self._modes = termios.tcgetattr(self._input)
        self._timer = threading.Timer(_LIMIT_S, self._leave)
        self._timer.daemon = True

    def start(self) -> None:
        """From now on. Called again, it does nothing."""
        if not self._timer.is_alive():
            self._timer.start()

    def stop(self) -> None:
        """It has ended by itself."""
        self._timer.cancel()

    def _leave(self) -> None:
        try:
            termios.tcsetattr(self._input, termios.TCSANOW, self._modes)
            os.set_blocking(sys.stdout.fileno(), False)
            os.write(sys.stdout.fileno(), _RESTORE)
        except OSError:
            pass  # nobody reads it
        finally:
            os._exit(0)
