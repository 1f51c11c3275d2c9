"""What a check found."""

from __future__ import annotations

from holdfast.model.record import Record

OK, WARN, FAIL = "ok", "warn", "fail"


class Finding(Record):
    """One answer."""

    check: str
    #: ok, warn or fail.
    level: str
    said: str
    #: What to do about it; empty when all is well.
    fix: str = ""


def ok(check: str, said: str) -> Finding:
    """All is well."""
    return Finding(check=check, level=OK, said=said)


def warn(check: str, said: str, fix: str) -> Finding:
    """It works, but not everything does."""
    return Finding(check=check, level=WARN, said=said, fix=fix)


def fail(check: str, said: str, fix: str) -> Finding:
    """Tasks will not work."""
    return Finding(check=check, level=FAIL, said=said, fix=fix)
