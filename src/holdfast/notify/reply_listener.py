"""Read the replies to notices, and turn each valid one into a request.

One process per server, started by the keeper while replies are awaited. It ends with its keeper, and when
nothing is awaited any more. It can be killed anywhere: the server has the messages, and the records in
`<home>/replies/` tell what was used (replies.py).
"""

from __future__ import annotations

import hmac
import os

from holdfast import clock, ids, paths
from holdfast.config import notices
from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.notify import own_rules, replies, reply_stream
from holdfast.notify.replies import Awaited
from holdfast.notify.reply_requests import Requests, log
from holdfast.store import audit
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: How often records are checked, and whether the keeper lives.
_TICK_S = 1.0
#: What is ignored is counted for a moment, and logged at most this often.
_COUNT_S, _TELL_S = 2.0, 60.0
#: Ignored messages at once, then per second: a flood costs little, and nothing is lost.
_FREE, _PER_S = 200, 500.0
#: A reply is shorter.
_REPLY_CHARS = 1000
#: A clock of a server may be wrong by this much; only what is counted depends on it.
_SKEW_S = 300.0


def main(server: str, token_env: str = "") -> int:
    """Listen until no reply is awaited, or the keeper that started this process is gone."""
    home = Home(paths.home())
    try:
        key = replies.key(home)
    except HoldfastError as error:
        log(f"{error} ({error.hint})")
        replies.note_failure(home, server, f"{error} ({error.hint})")
        return 1
    if key is None:
        return 0  # no button was ever made
    return Listener(home, key, server, token_env).run()


class Reply(Record):
    """What a button sends."""

    notice: str
    verb: str
    expires: int
    mac: str


class Ignored(Exception):
    """A message is no valid reply, and why."""


class Listener:
    """Judges the messages of the reply topic of a home on one server."""

    def __init__(self, home: Home, key: bytes, server: str, token_env: str) -> None:
        self.home, self._key = home, key
        self._server, self._token_env = server, token_env
        #: Why messages were ignored, since the last line about it.
        self._ignored: dict[str, int] = {}
        self._tell_mono = 0.0
        self._paced_mono = float("-inf")
        #: Valid replies that could not be used, because the disk was full: notice → verb.
        self._unused: dict[str, str] = {}
        #: When the oldest notice whose reply is awaited may have been sent.
        self._since = 0.0
        self._requests = Requests(home)
        self._has_failed = False

    def run(self) -> int:
        """Listen. Returns the exit status."""
        keeper = os.getppid()
        if not self.settle():
            return 0
        stream = reply_stream.Stream(
            self._server, replies.topic(self._key), self._token_env, tell=self._connected
        )
        due_mono = clock.mono() + _TICK_S
        while os.getppid() == keeper:
            has_come, message = stream.next(max(0.0, due_mono - clock.mono()))
            if has_come:
                self.judge(message)
            if clock.mono() >= due_mono:
                due_mono = clock.mono() + _TICK_S
                if not self.settle():
                    break
            self._tell()
        self._tell(is_last=True)
        return 0

    def _connected(self, error: str) -> None:
        """Log a new connection, or the error that prevents one."""
        if error or self._has_failed:
            log(f"replies: {error or 'connected again'}")
        self._has_failed = bool(error)
        replies.note_failure(self.home, self._server, error)

    # ── messages ──

    def judge(self, message: dict[str, Any] | None) -> None:
        """Use a message if it is a valid reply, else count it."""
        if message is not None and message.get("event") in ("open", "keepalive", "poll_request"):
            return
        try:
            awaited, verb = self._valid(message)
        except Ignored as why:
            self._ignore(str(why))
            return
        except HoldfastError as error:  # the storage fails: the next listener reads it again
            log(f"cannot judge a reply: {error}")
            os._exit(1)
        self._use(awaited, verb)

    def _valid(self, message: dict[str, Any] | None) -> tuple[Awaited, str]:
        """What is answered, and how. Raises Ignored."""
        reply = _reply_in(message)
        if message is None or reply is None:
            raise Ignored("are not replies")
        awaited = replies.read(self.home, reply.notice)
        if awaited is None:
            is_old = type(message.get("time")) is int and message["time"] < self._since
            raise Ignored("" if is_old else "are for no notice that waits for a reply")
        if not hmac.compare_digest(replies.mac(self._key, awaited, reply.verb, reply.expires), reply.mac):
            raise Ignored("have a wrong signature")
        if reply.expires < clock.now():
            raise Ignored("came too late")
        self._check_rule(awaited, reply.verb)
        if os.path.lexists(self.home.reply_taken(reply.notice)):
            raise Ignored("are for a notice that was answered")
        return awaited, reply.verb

    def _check_rule(self, awaited: Awaited, verb: str) -> None:
        """The user may have changed the rule since the notice was sent."""
        try:
            own_rules.check(awaited.rule)
        except HoldfastError as error:
            raise Ignored("are not allowed by a rule") from error
        if not self._is_ours(awaited) or verb not in replies.allowed(awaited.rule):
            raise Ignored("are not allowed by a rule")

    def _is_ours(self, awaited: Awaited) -> bool:
        rule = awaited.rule
        subscription = (rule.get("server"), rule.get("token_env", ""))
        return rule.get("to") == "ntfy" and subscription == (self._server, self._token_env)

    def _use(self, awaited: Awaited, verb: str) -> None:
        """Take a valid reply, then send its request. On a full disk, it is tried again."""
        try:
            taken = replies.take(self.home, awaited.notice, verb)
        except HoldfastError as error:
            log(f"a reply to {awaited.notice} is left for later: {error}")
            self._unused[awaited.notice] = verb
            return
        self._unused.pop(awaited.notice, None)
        if taken is None:
            self._ignore("are for a notice that was answered")  # by another listener, a moment ago
            return
        try:
            self._requests.settle(awaited)
        except (HoldfastError, OSError) as error:  # `settle` tries again
            log(f"cannot send the reply to {awaited.notice}: {error}")

    def _ignore(self, why: str) -> None:
        if why:
            if not self._ignored:
                self._tell_mono = max(self._tell_mono, clock.mono() + _COUNT_S)
            self._ignored[why] = self._ignored.get(why, 0) + 1
        now_mono = clock.mono()
        self._paced_mono = max(self._paced_mono, now_mono - _FREE / _PER_S) + 1 / _PER_S
        if self._paced_mono > now_mono:
            clock.sleep(self._paced_mono - now_mono)

    def _tell(self, *, is_last: bool = False) -> None:
        """One line about all that was ignored."""
        if not self._ignored or not (is_last or clock.mono() >= self._tell_mono):
            return
        self._tell_mono = clock.mono() + _TELL_S
        text = ", ".join(f"{count} {why}" for why, count in sorted(self._ignored.items()))
        self._ignored.clear()
        log(f"ignored messages: {text}")
        audit.append(
            self.home, {"operation": "reply.ignored", "by": "keeper", "level": "warn", "reason": text}
        )

    # ── records ──

    def settle(self) -> bool:
        """Send what was taken and not sent, and forget what is answered. Returns whether a reply to this
        server is awaited."""
        is_awaited, self._since = False, clock.now()
        for notice in replies.names(self.home):
            try:
                awaited = replies.read(self.home, notice)
                if awaited is None or replies.is_past(awaited):
                    replies.forget(self.home, notice)
                elif self._is_ours(awaited):
                    if (verb := self._unused.pop(notice, None)) is not None:
                        self._use(awaited, verb)
                    is_awaited = self._requests.settle(awaited) or is_awaited
                    self._since = min(self._since, _written_at(self.home.reply(notice)) - _SKEW_S)
            except (HoldfastError, OSError) as error:
                log(f"cannot settle {notice}: {error}")
                is_awaited = True
        return is_awaited


def _reply_in(message: dict[str, Any] | None) -> Reply | None:
    """The reply in a message, not verified; None if there is none."""
    text = message.get("message") if message is not None and message.get("event") == "message" else None
    if not isinstance(text, str) or len(text) > _REPLY_CHARS:
        return None
    found = reply_stream.parsed(text.encode("utf-8", "replace")) or {}
    notice, verb, expires, mac = (found.get(name) for name in ("notice", "verb", "expires", "mac"))
    if not isinstance(notice, str) or not isinstance(mac, str):
        return None
    if not isinstance(expires, int) or isinstance(expires, bool):
        return None
    if not ids.is_ulid(notice) or verb not in notices.REPLY_VERBS or not mac.isascii() or expires < 0:
        return None
    return Reply(notice=notice, verb=str(verb), expires=expires, mac=mac)


def _written_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return clock.now()
