"""Replies to notices: what a button may answer, signed, and used once.

Before a notice with buttons is published, `<home>/replies/<notice>.json` says what they are for: the task,
its interrupt, the stage, the rule. A button sends

    {"notice": …, "verb": …, "expires": …, "mac": …}

The signature covers these and the content of the record, with a key that no agent in a sandbox can read. So
neither a message nor a changed record can make a button answer another question. A reply is used by creating
`<notice>.taken`, durably, with the id of the request that follows. If the process is killed after that,
its successor sends the same request again, and a runner applies an id once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat

from holdfast import clock, ids
from holdfast.config import notices
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model.record import Record
from holdfast.notify import reply_key
from holdfast.store import atomic
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA, TAKEN_SCHEMA = "holdfast.reply/1", "holdfast.reply-taken/1"
FAILURE_SCHEMA = "holdfast.reply-failure/1"
#: A record is kept a little longer than its buttons work.
_KEPT_S = 60.0
#: No button works longer.
_LONGEST_S = 8 * 86400.0


class Awaited(Record):
    """`replies/<notice>.json`: what the buttons of a notice answer."""

    schema: str = SCHEMA
    notice: str
    task_id: str
    #: The number of the task's interrupt, and the stage that waits for approval.
    interrupt: int
    stage: str
    rule: dict[str, Any]
    #: Seconds since 1970. Each button has its own, signed expiry; after this time, none works.
    forget_at: float


class Taken(Record):
    """`replies/<notice>.taken`: the reply that was used."""

    schema: str = TAKEN_SCHEMA
    notice: str
    verb: str
    #: The id of the request that it becomes.
    request: str
    at: str
    is_sent: bool = False


def topic(key: bytes) -> str:
    """The topic of a home's replies. It cannot be guessed without the key."""
    return "holdfast-" + hmac.new(key, b"holdfast.reply-topic/1", hashlib.sha256).hexdigest()[:32]


def mac(key: bytes, awaited: Awaited, verb: str, expires: int) -> str:
    """The signature of a button."""
    fields = (SCHEMA, awaited.notice, verb, str(expires), awaited.task_id, str(awaited.interrupt))
    # The stage is last: the others have no newline.
    text = "\n".join((*fields, awaited.stage))
    return hmac.new(key, text.encode("utf-8", "backslashreplace"), hashlib.sha256).hexdigest()


def button(key: bytes, awaited: Awaited, verb: str, expires: int) -> str:
    """What a button sends."""
    reply = {"notice": awaited.notice, "verb": verb, "expires": expires}
    return json.dumps({**reply, "mac": mac(key, awaited, verb, expires)}, separators=(",", ":"))


def allowed(rule: dict[str, Any]) -> list[str]:
    """The verbs that a rule allows."""
    return list(rule.get("allow", notices.DEFAULT_VERBS))


def within_s(rule: dict[str, Any]) -> float:
    """How long the buttons of a rule work."""
    return clock.parse_duration(str(rule.get("reply_within", notices.REPLY_WITHIN)))


def asks(notice: dict[str, Any], rule: dict[str, Any]) -> bool:
    """Whether a notice can be answered by a button: its task waits for approval, and the rule allows it."""
    return (
        notice.get("event") == "interrupted"
        and isinstance(notice.get("approval"), str)
        and type(notice.get("interrupt")) is int
        and ids.is_ulid(str(notice.get("id")))
        and ids.is_safe_name(str(notice.get("task_id")), 64)
        and bool(allowed(rule))
    )


def expect(home: Home, notice: dict[str, Any], rule: dict[str, Any], expires: int) -> Awaited | None:
    """Note what the buttons of a notice answer, durably, before it is published. A notice that is delivered
    again is noted again. None if a reply was used already. Raises StorageError."""
    awaited = Awaited(
        notice=notice["id"],
        task_id=notice["task_id"],
        interrupt=notice["interrupt"],
        stage=notice["approval"],
        rule=rule,
        forget_at=expires + _KEPT_S,
    )
    if os.path.lexists(home.reply_taken(awaited.notice)):
        return None
    atomic.make_directory(home.replies)
    atomic.write_json(home.reply(awaited.notice), awaited.to_json(), durable=True)
    failpoint("replies.expected")
    return awaited


def names(home: Home) -> list[str]:
    """The notices that have a record, oldest first."""
    if not _is_directory(home):
        return []
    try:
        found = {name.partition(".")[0] for name in os.listdir(home.replies) if name[0] != "."}
    except OSError:
        return []
    return sorted(name for name in found if ids.is_ulid(name))


def _is_directory(home: Home) -> bool:
    """Not a link: an agent could lead us to files that are not records, and those would be removed."""
    try:
        return stat.S_ISDIR(os.lstat(home.replies).st_mode)
    except OSError:
        return False


def read(home: Home, notice: str) -> Awaited | None:
    """What a reply to the notice answers; None if there is no valid record: an agent can write it. Raises
    StorageError."""
    if not _is_directory(home):
        return None
    try:
        found = Awaited.from_json(atomic.read_json(home.reply(notice)) or {})
    except (CorruptFile, ValueError, TypeError):
        return None
    values: tuple[Any, ...] = (found.rule, found.interrupt, found.stage, found.task_id, found.forget_at)
    rule, interrupt, stage, task_id, forget_at = values
    is_valid = (
        found.schema == SCHEMA
        and found.notice == notice
        and isinstance(rule, dict)
        and type(interrupt) is int
        and isinstance(stage, str)
        and isinstance(task_id, str)
        and ids.is_safe_name(task_id, 64)
        and type(forget_at) in (int, float)
    )
    return found if is_valid else None


def is_past(awaited: Awaited) -> bool:
    """Whether none of its buttons works any more."""
    # A record of a far future is not ours. (Compared, because 10**400 cannot be subtracted from.)
    now = clock.now()
    return not now <= awaited.forget_at < now + _LONGEST_S


def take(home: Home, notice: str, verb: str) -> Taken | None:
    """Use the reply to a notice, durably. None if another one was used. Raises StorageError."""
    taken = Taken(notice=notice, verb=verb, request=ids.new_ulid(), at=clock.iso_now())
    try:
        failpoint("replies.taking")
        is_first = atomic.create(home.reply_taken(notice), atomic.encode_json(taken.to_json()))
    except OSError as error:
        atomic.storage_failed(error, f"cannot write {home.reply_taken(notice)}")
    failpoint("replies.taken")
    return taken if is_first else None


def taken(home: Home, notice: str) -> Taken | None:
    """The reply that was used; None if none was, or the record is not valid. Raises StorageError."""
    try:
        found = Taken.from_json(atomic.read_json(home.reply_taken(notice)) or {})
    except (CorruptFile, ValueError, TypeError):
        return None
    values: tuple[Any, ...] = (found.request, found.is_sent)
    is_valid = found.notice == notice and found.verb in notices.REPLY_VERBS and ids.is_ulid(str(values[0]))
    return found if is_valid and isinstance(values[1], bool) else None


def note_sent(home: Home, reply: Taken) -> None:
    """Its request is in the inbox. Not synced: a request that is sent again is applied once."""
    record = reply.evolve(is_sent=True).to_json()
    atomic.write_json(home.reply_taken(reply.notice), record, durable=False)


def forget(home: Home, notice: str) -> None:
    """Nothing is left to answer. The record goes first: without it, every reply is ignored."""
    if not _is_directory(home):
        return
    atomic.forget(home.reply(notice))
    failpoint("replies.forgotten")
    atomic.forget(home.reply_taken(notice))


def note_failure(home: Home, server: str, error: str) -> None:
    """Why replies on a server cannot be read, for `status`; nothing if they can. It is only
    shown: an error while writing it is ignored."""
    if not _is_directory(home):
        return
    path = home.replies_failure(hashlib.sha256(server.encode()).hexdigest()[:16])
    try:
        if error:
            record = {"schema": FAILURE_SCHEMA, "server": server, "error": error, "at": clock.iso_now()}
            atomic.write_json(path, record, durable=False)
        else:
            atomic.forget(path)
    except (HoldfastError, OSError):
        pass


def failing(home: Home) -> dict[str, str]:
    """Why replies cannot be read, by server, while some are awaited. An agent can write it."""
    found: dict[str, str] = {}
    if not names(home):
        return found
    for name in sorted(os.listdir(home.replies)):
        if name.startswith("failure-"):
            try:
                record: Any = atomic.read_json(f"{home.replies}/{name}") or {}
                if record.get("schema") == FAILURE_SCHEMA:
                    found[str(record["server"])] = str(record["error"])
            except (HoldfastError, AttributeError, KeyError):
                continue
    return found


def key(home: Home, *, create: bool = False) -> bytes | None:
    """The key of a home. Raises NotPossible, StorageError."""
    return reply_key.read(home.path, create=create)
