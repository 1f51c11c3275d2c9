"""Have the replies to notices read while some are awaited: one process per server.

`python -m holdfast.notify --replies SERVER` connects to the server, judges what it gets, and puts requests
into inboxes. It ends when nothing is awaited, and with the keeper. Here it is only started again if it died.
Without a record in `<home>/replies/`, this costs one system call per step.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.keeper import settings
from holdfast.keeper.log import log
from holdfast.spawn import execute
from holdfast.store import process
from holdfast.store.layout import Home
from holdfast.watch.death import watch_death

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.watch.death import DeathWatch

    #: Server, and the variable with its token.
    Subscription = tuple[str, str]

#: How often a listener is looked for; the pause between two starts, doubling.
_LOOK_S, _FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 1.0, 60.0
#: A listener that lived longer resets the pause.
_LIVED_WELL_S = 30.0
_NOTHING_S = 60.0


class ListenerProcess:
    """The process for one server."""

    def __init__(self) -> None:
        self.watch: DeathWatch | None = None
        self.starts = 0
        self.started_mono = float("-inf")

    def step(self, home: Home, of: Subscription) -> None:
        """Start it if it is gone, not too often."""
        now_mono = clock.mono()
        if self.watch is not None and not self.watch.has_died():
            return
        if self.watch is not None:
            self.watch.close()
            self.watch = None
            if now_mono - self.started_mono > _LIVED_WELL_S:
                self.starts = 0
        pause_s = (
            min(_FIRST_PAUSE_S * 2.0 ** min(self.starts - 1, 10), _LONGEST_PAUSE_S) if self.starts else 0.0
        )
        if now_mono < self.started_mono + pause_s:
            return
        self.starts += 1
        self.started_mono = now_mono
        # No token here: command lines are public.
        pid = execute(
            "holdfast.notify",
            ["--replies", *(word for word in of if word)],
            home,
            role="notifier",
            log=home.keeper_log,
        )
        identity = process.identify(pid)
        self.watch = watch_death(identity) if identity is not None else None


class Replies:
    """The listeners of a home."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._listeners: dict[Subscription, ListenerProcess] = {}
        #: The server of each record; None if no rule of the user has it.
        self._known: dict[str, Subscription | None] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no reply is awaited."""
        return not any(self._known.values())

    def step(self) -> float:
        """Start what is missing. Returns the seconds until the next step; never blocks."""
        if not os.path.isdir(self.home.replies):
            self._known = {}
            return _NOTHING_S
        from holdfast.notify import replies  # only if there are notices with buttons

        names = replies.names(self.home)
        try:
            self._known = {name: self._known.get(name) or self._of(name) for name in names}
            wanted = {each for each in self._known.values() if each is not None}
            for each in wanted:
                self._listeners.setdefault(each, ListenerProcess()).step(self.home, each)
        except (OSError, HoldfastError) as error:  # logged; tasks matter more
            log(f"cannot have replies read: {error!r}")
        return _LOOK_S if names else _NOTHING_S

    def _of(self, name: str) -> Subscription | None:
        """Where a reply is awaited: on a server of the user's rules. An agent can write the record."""
        from holdfast.notify import replies

        awaited = replies.read(self.home, name)
        if awaited is None or replies.is_past(awaited):
            replies.forget(self.home, name)
            return None
        if awaited.rule not in (settings.read(self.home).notify or []):
            return None
        return str(awaited.rule.get("server")), str(awaited.rule.get("token_env", ""))
