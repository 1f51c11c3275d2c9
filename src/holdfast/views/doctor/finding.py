"""The result of one check."""

from __future__ import annotations

from holdfast.model.record import Record

OK, WARN, FAIL = "ok", "warn", "fail"


class Finding(Record):
    """The result of one check; the field names are those of `doctor --json`."""

    check: str
    #: ok, warn or fail.
    level: str
    #: The message.
    said: str
    #: What to do about it; empty if the level is ok.
    fix: str = ""


def ok(check: str, message: str) -> Finding:
    """The check passed."""
    return Finding(check=check, level=OK, said=message)


def warn(check: str, message: str, fix: str) -> Finding:
    """Tasks work, but something does not."""
    return Finding(check=check, level=WARN, said=message, fix=fix)


def fail(check: str, message: str, fix: str) -> Finding:
    """Tasks will not work."""
    return Finding(check=check, level=FAIL, said=message, fix=fix)
