"""Named points at which a test can stop, kill or break a process.

`failpoint("journal.after_append")` does nothing unless HOLDFAST_FAILPOINT names it:

    HOLDFAST_FAILPOINT="recorder.before_exit=kill"       SIGKILL this process, at the first pass
    HOLDFAST_FAILPOINT="runner.judged=kill@3"            … at the third pass
    HOLDFAST_FAILPOINT="seed.accepted=stop"              SIGSTOP this process
    HOLDFAST_FAILPOINT="journal.before_append=enospc"    raise OSError(ENOSPC)
    HOLDFAST_FAILPOINT="live.noticed=note"               add a line "nanoseconds pid name" to
                                                         HOLDFAST_FAILPOINT_NOTES ("*=note": at every point)

Several are separated by commas. With HOLDFAST_FAILPOINT_ONCE=FILE, a point acts only in the process that
creates FILE, so that the next process gets past it. Each name occurs once in the code; the crash run reads
the names from the source, so a new one is tested automatically.
"""

from __future__ import annotations

import errno
import os
import time

_passes: dict[str, int] = {}


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
        action, _, nth = action.partition("@")
        _passes[name] = _passes.get(name, 0) + 1
        if _passes[name] < int(nth or "1") or not _first():
            continue
        if action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif action == "enospc":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def _note(name: str) -> None:
    """Record when this point was passed, on the clock that all processes share."""
    line = b"%d %d %s\n" % (time.monotonic_ns(), os.getpid(), name.encode())
    notes = os.open(os.environ["HOLDFAST_FAILPOINT_NOTES"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(notes, line)
    os.close(notes)


def _first() -> bool:
    once = os.environ.get("HOLDFAST_FAILPOINT_ONCE")
    if not once:
        return True
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True
