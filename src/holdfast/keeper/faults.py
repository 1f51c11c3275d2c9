"""Errors that no chore of the keeper expects: a bug, or a file that was not checked well enough.

One item must not end the keeper, which all other tasks need. Each fault is logged once, with its place, and
stays in loop.json, where `status` and `doctor` find it, until the same chore succeeds.
"""

from __future__ import annotations

from holdfast.keeper import loop_state
from holdfast.keeper.log import log
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

_CHARS = 300


class Faults:
    """The faults of one keeper."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._known: dict[str, str] = {}
        #: Whether loop.json has those of an earlier keeper.
        self._is_written = False

    def guard(self, chore: str, act: Callable[[], T], otherwise: T) -> T:
        """Do a chore. Returns `otherwise` if it fails."""
        try:
            done = act()
        except Exception as error:  # logged and shown; the other chores go on
            self._note(chore, error)
            return otherwise
        if self._known.pop(chore, None) is not None or not self._is_written:
            self._write()
        return done

    def _note(self, chore: str, error: Exception) -> None:
        text = repr(error)[:_CHARS]
        if self._known.get(chore) == text:
            return
        import traceback  # a bug, or a file of a stranger

        places = "".join(traceback.format_exception(error)).strip().replace("\n", "\n  ")
        log(f"fault in {chore}: {places}")
        self._known[chore] = text
        self._write()

    def _write(self) -> None:
        self._is_written = True
        try:
            state = loop_state.read_state(self.home)
            if state.faults != self._known:
                loop_state.write_state(self.home, state.evolve(faults=dict(self._known)))
        except Exception as error:  # they are in the log
            log(f"cannot save the faults of the keeper: {error!r}")
