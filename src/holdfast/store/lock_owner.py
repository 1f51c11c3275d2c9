"""What a lock file says: who signed it last, in which role, with which version.

It is for information. The name in the file proves nothing: an agent can write any name. Whether the lock is
held, `lock.is_held` says; by whom, `lock_holders`.
"""

from __future__ import annotations

from holdfast import __version__, clock, paths, quick_json
from holdfast.model.process import ProcessIdentity
from holdfast.store import atomic
from holdfast.store.process import identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_BYTES = 4096
#: Roles of a keeper: in the background and in the foreground.
_KEEPERS = ("keeper", "loop")


def signature(role: str, pid: int) -> bytes:
    """The content of a lock file for a process. A keeper notes where it looks for records."""
    owner = identify(pid)
    settings = {"trust": paths.trust_dir()} if role in _KEEPERS else {}
    content = {
        **(owner.to_json() if owner else {}),
        "role": role,
        "at": clock.iso_now(),
        "version": __version__,
        **settings,
    }
    return quick_json.dumps(content).encode() + b"\n"


def owner(path: str) -> ProcessIdentity | None:
    """The last owner that signed the lock; None if the file is missing, torn or unsigned."""
    try:
        return ProcessIdentity.from_json(_content(path))
    except (ValueError, AttributeError, TypeError):
        return None


def version(path: str) -> str | None:
    """The version of the holdfast that signed the lock last, or None."""
    return _field(path, "version")


def role(path: str) -> str | None:
    """The role in which the lock was taken last, or None."""
    return _field(path, "role")


def trust_dir(path: str) -> str | None:
    """The trust directory of the keeper that signed the lock last, or None. For messages only: nothing is
    trusted because of it."""
    return _field(path, "trust")


def says_none_left(path: str) -> bool:
    """Whether the recorder that held an attempt's lock noted that it had no children left (`recorder.py`)."""
    return _field(path, "left") == "0"


def _field(path: str, name: str) -> str | None:
    """A field of the lock file, as text; None if it is missing."""
    try:
        return str(_content(path)[name])
    except (ValueError, TypeError, KeyError):
        return None


def _content(path: str) -> Any:
    """The content of a lock file. Raises ValueError."""
    return quick_json.loads(atomic.read_small(path, _MAX_BYTES) or b"")
