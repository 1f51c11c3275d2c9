"""Ids: task ids, attempt ids, and ULIDs for requests and events."""

from __future__ import annotations

import os
import time

from holdfast.errors import InvalidId

_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_REST = _FIRST | frozenset("._-")
#: Letters that have no base letter in Unicode.
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


def is_safe_name(text: str, limit: int = 128) -> bool:
    """Whether a text is safe as the name of a single directory."""
    return 0 < len(text) <= limit and text[0] in _FIRST and _REST.issuperset(text)


def number_in(text: str) -> int | None:
    """The number that a part of a file's name is; None for anything else, also for one that no process id and
    no count of ours reaches. (`isdigit` is true for `²`, which is no number.)"""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def check_task_id(text: str) -> str:
    """Return the id if it is valid. Raises InvalidId: an id is a directory name, so nothing else may pass."""
    if not is_safe_name(text, 64):
        raise InvalidId(f"not a task id: {text!r}")
    return text


def check_one_name(text: str) -> str:
    """Return the name if it stays in its directory. Raises InvalidId: an agent can write the files and
    databases that ids come from, and a path would lead to a packet of its own, outside the home."""
    if "/" in text or text in ("", ".", ".."):
        raise InvalidId(f"not a task id: {text!r}")
    return text


def slug(text: str, limit: int = 24) -> str:
    """A few words of `text`, as part of an id."""
    text = text.lower()
    kept = "".join(char if char in _FIRST else "-" for char in (text if text.isascii() else _latin(text)))
    words = [word for word in kept.split("-") if word]
    out = ""
    for word in words:
        if len(out) + len(word) + 1 > limit and out:
            break
        out = f"{out}-{word}" if out else word[:limit]
    return out or "task"


def _latin(text: str) -> str:
    """Replace accented letters by their base letters, where possible."""
    import unicodedata  # imported only if needed

    parts = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(char for char in parts if not unicodedata.combining(char))


def new_task_id(name: str) -> str:
    """A new task id, such as `20260131-fix-the-tests-k3qa`."""
    raw = int.from_bytes(os.urandom(3), "big")
    suffix = "".join(_BASE32[(raw >> shift) & 31] for shift in (0, 5, 10, 15))
    return f"{time.strftime('%Y%m%d', time.gmtime())}-{slug(name)}-{suffix}"


def new_attempt_id() -> str:
    """A new attempt id: `ses_` and eight hexadecimal digits."""
    return "ses_" + os.urandom(4).hex()


def is_attempt_id(text: str) -> bool:
    """Whether the text has the form of an attempt id."""
    return (
        len(text) == 12 and text.startswith("ses_") and all(digit in "0123456789abcdef" for digit in text[4:])
    )


def new_uuid() -> str:
    """A random (version 4) UUID, without importing uuid."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_last_ulid = (0, 0)
#: All but the last two characters of the last ULID, and their number: many consecutive ULIDs share them.
_last_head = (-1, "")


def _skip(count: int) -> None:
    global _last_ulid
    _last_ulid = (_last_ulid[0], _last_ulid[1] + count)


def new_ulid() -> str:
    """A new ULID. Within one process they strictly increase, so that file names sort in order of creation."""
    global _last_ulid, _last_head
    millis = time.time_ns() // 1_000_000
    last_millis, last_noise = _last_ulid
    if millis > last_millis:
        noise = int.from_bytes(os.urandom(10), "big")
    else:
        millis, noise = last_millis, (last_noise + 1) & ((1 << 80) - 1)
    _last_ulid = (millis, noise)
    value = millis << 80 | noise
    number, head = _last_head
    if value >> 10 != number:
        head = "".join([_CROCKFORD[value >> shift & 31] for shift in range(125, 5, -5)])
        _last_head = (value >> 10, head)
    return head + _CROCKFORD[value >> 5 & 31] + _CROCKFORD[value & 31]


def new_ulids(count: int) -> list[str]:
    """Several new ULIDs, at a third of the cost."""
    found: list[str] = []
    while len(found) < count:
        first = new_ulid()
        at = _last_ulid[1] & 1023
        # These differ only in the last two characters.
        until = min(1024, at + count - len(found))
        _skip(until - at - 1)
        head = first[:-2]
        found.append(first)
        found += [head + _CROCKFORD[low >> 5] + _CROCKFORD[low & 31] for low in range(at + 1, until)]
    return found


def is_ulid(text: str) -> bool:
    """Whether `text` has the form of a ULID."""
    return len(text) == 26 and set(_CROCKFORD).issuperset(text)
