"""Named points at which a test can stop, kill or break a process.

`failpoint("journal.after_append")` does nothing unless HOLDFAST_FAILPOINT names it:

    HOLDFAST_FAILPOINT="recorder.before_exit=kill"       SIGKILL this process, at the first pass
    HOLDFAST_FAILPOINT="runner.judged=kill@3"            … at its third pass
    HOLDFAST_FAILPOINT="runner.judged=kill@3/2"          … at the third pass of the second process that passes
    HOLDFAST_FAILPOINT="seed.accepted=stop"              SIGSTOP this process
    HOLDFAST_FAILPOINT="journal.before_append=enospc"    raise OSError(ENOSPC)
    HOLDFAST_FAILPOINT="live.noticed=note"               add a line "nanoseconds pid name" to
                                                         HOLDFAST_FAILPOINT_NOTES ("*=note": at every point)

Several are separated by commas. With HOLDFAST_FAILPOINT_ONCE=FILE, a point acts only in the process that
creates FILE, so that the next process gets past it; processes are counted in files next to it. With
HOLDFAST_FAILPOINT_FOLDER=DIR, a note ends with the sizes of all files in DIR, as JSON. Each name occurs once
in the code; the crash run reads the names from the source, so a new one is tested automatically.
"""

from __future__ import annotations

import errno
import os
import time

#: How often a process has passed a point, and which of the processes that passed it this one is. By pid:
#: a forked process starts anew.
_passes: dict[tuple[int, str], int] = {}
_places: dict[tuple[int, str], int] = {}


def failpoint(name: str) -> None:
    """Die, stop or fail here if a test requests it."""
    wanted = os.environ.get("HOLDFAST_FAILPOINT")
    if wanted:
        _act(name, wanted)


def _act(name: str, wanted: str) -> None:
    # Imported only in tests: every command passes here.
    import signal

    for part in wanted.split(","):
        point, _, action = part.partition("=")
        if action == "note" and point in (name, "*"):
            _note(name)
            continue
        if point != name:
            continue
        action, _, which = action.partition("@")
        nth, _, place = which.partition("/")
        key = (os.getpid(), name)
        _passes[key] = _passes.get(key, 0) + 1
        if place and _place(key) != int(place):
            continue
        if _passes[key] < int(nth or "1") or not _first():
            continue
        if action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif action == "enospc":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def _note(name: str) -> None:
    """Record when this point was passed, on the clock that all processes share."""
    line = b"%d %d %s" % (time.monotonic_ns(), os.getpid(), name.encode())
    folder = os.environ.get("HOLDFAST_FAILPOINT_FOLDER")
    if folder:
        line += b" " + _listing(folder)
    notes = os.open(os.environ["HOLDFAST_FAILPOINT_NOTES"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(notes, line + b"\n")
    os.close(notes)


def _listing(folder: str) -> bytes:
    import json

    sizes: dict[str, int] = {}
    for path, _, names in os.walk(folder):
        for name in names:
            file = os.path.join(path, name)
            try:
                sizes[os.path.relpath(file, folder)] = os.lstat(file).st_size
            except FileNotFoundError:
                continue  # removed meanwhile
    return json.dumps(sizes, separators=(",", ":")).encode()


def _place(key: tuple[int, str]) -> int:
    """The place of this process among those that pass the point, in the order of their first passes."""
    if key not in _places:
        path = f"{os.environ['HOLDFAST_FAILPOINT_ONCE']}.{key[1]}"
        counter = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(counter, b".")
        _places[key] = os.lseek(counter, 0, os.SEEK_CUR)
        os.close(counter)
    return _places[key]


def _first() -> bool:
    once = os.environ.get("HOLDFAST_FAILPOINT_ONCE")
    if not once:
        return True
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True
