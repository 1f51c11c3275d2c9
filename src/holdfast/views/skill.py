"""The skill for agents that orchestrate tasks: one SKILL.md, installed where agents look for skills.

An installed copy ends with a line that has the digest of the text before it. So a copy of any version is
recognized as ours, and one that was changed, or is not ours, is left alone.
"""

from __future__ import annotations

import os

import holdfast
from holdfast import files, paths
from holdfast.errors import NotPossible
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "holdfast"
FILE = "SKILL.md"
#: Directory below the user's home → the agents that look there.
FOLDERS = {
    ".agents/skills": "Codex, Gemini, Copilot, OpenCode, Pi, OpenClaw",
    ".claude/skills": "Claude Code",
}
#: What is at the path of a copy.
MISSING, CURRENT, OLD, CHANGED, FOREIGN = "missing", "current", "old", "changed", "foreign"
#: What `install` and `remove` may replace.
_OURS = (CURRENT, OLD)
_BEGIN, _END = b"<!-- Installed by holdfast ", b" -->\n"
_MAX_BYTES = 1024 * 1024


class Copy(Record):
    """A place where the skill can be installed."""

    path: str
    #: The agents that look there.
    readers: str
    #: missing, current, old (of another version), changed or foreign (not ours at all).
    state: str
    #: What was done: installed, updated, removed; empty if nothing.
    did: str = ""


def text() -> str:
    """The skill, without the line that an installed copy has."""
    folder = os.path.dirname(os.path.abspath(holdfast.__file__))
    return files.read(os.path.join(folder, "config", "skill", FILE)).decode()


def copies() -> list[Copy]:
    """All places, with what is there now."""
    home = paths.user_home()
    places = {os.path.join(home, folder, NAME, FILE): readers for folder, readers in FOLDERS.items()}
    return [Copy(path=path, readers=readers, state=_state(path)) for path, readers in places.items()]


def install() -> list[Copy]:
    """Write the skill to each place, or bring it up to date. Raises NotPossible, after all others are done,
    if a place has another file."""
    return _for_each(_install, "installed over it")


def remove() -> list[Copy]:
    """Remove each copy that is as holdfast installed it. Raises NotPossible, after all others are done, if
    one was changed. A file of others is left alone."""
    return _for_each(_remove, "removed")


def _for_each(act: Callable[[Copy], Copy], done: str) -> list[Copy]:
    found = [act(copy) for copy in copies()]
    kept = [copy for copy in found if copy.state == CHANGED or (act is _install and copy.state == FOREIGN)]
    if kept:
        raise NotPossible(
            f"not {done}: {', '.join(copy.path for copy in kept)}"
            f" {'was' if len(kept) == 1 else 'were'} not written by holdfast, or changed since",
            details=tuple(f"{copy.did} {copy.path}" for copy in found if copy.did),
            hint="look at it, and move it away if you do not need it",
        )
    return found


def _install(copy: Copy) -> Copy:
    if copy.state not in (MISSING, OLD):
        return copy
    folder = os.path.dirname(copy.path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        atomic.storage_failed(error, f"cannot create {folder}")
    # Agents in a sandbox and other users' tools may read it: it has no secrets.
    atomic.write(copy.path, _signed(text().encode()), durable=True, mode=0o644)
    return copy.evolve(state=CURRENT, did="updated" if copy.state == OLD else "installed")


def _remove(copy: Copy) -> Copy:
    if copy.state not in _OURS:
        return copy
    try:
        os.unlink(copy.path)
        os.rmdir(os.path.dirname(copy.path))
    except FileNotFoundError:
        pass  # another `remove` was faster
    except OSError as error:
        if os.path.lexists(copy.path):
            atomic.storage_failed(error, f"cannot remove {copy.path}")
        # There are other files beside it.
    return copy.evolve(state=MISSING, did="removed")


def _state(path: str) -> str:
    if not os.path.lexists(path):
        # A link in place of our directory leads to files of the user.
        return FOREIGN if os.path.islink(os.path.dirname(path)) else MISSING
    if os.path.islink(path) or os.path.islink(os.path.dirname(path)):
        return FOREIGN
    try:
        data = files.read(path, _MAX_BYTES)
    except OSError:
        return FOREIGN
    body, mark, rest = data.rpartition(_BEGIN)
    if not mark:
        return FOREIGN
    if not rest.endswith(_END) or rest.removesuffix(_END).rpartition(b" ")[2] != sha256(body).encode():
        return CHANGED
    return CURRENT if data == _signed(text().encode()) else OLD


def _signed(body: bytes) -> bytes:
    line = b"%s; digest %s" % (holdfast.__version__.encode(), sha256(body).encode())
    return body + _BEGIN + line + _END
