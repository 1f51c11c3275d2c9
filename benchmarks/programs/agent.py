"""agent.c for machines without a compiler: slower to start, which the rows mention."""

from __future__ import annotations

import os
import signal
import sys
import time

_ticking = False


def _begin_ticking(*_: object) -> None:
    global _ticking
    _ticking = True


def _note(what: str, at: int) -> None:
    with open(sys.argv[1], "a", encoding="ascii") as file:
        file.write(f"{what} {at} {os.getpid()}\n")


def main() -> None:
    """See agent.c."""
    _note("begin", time.monotonic_ns())
    mode = sys.argv[2]
    if mode == "exit":
        return
    if mode == "say":
        os.write(1, b"working\n")
        _note("said", time.monotonic_ns())
    if mode == "tick":
        signal.signal(signal.SIGUSR1, _begin_ticking)
        while not _ticking:
            signal.pause()
        while True:
            os.write(1, b"a line of output, as an agent prints one\n")
            time.sleep(1)
    while True:
        signal.pause()


main()
