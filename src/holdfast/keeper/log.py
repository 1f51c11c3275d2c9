"""keeper.log: lines on stderr (or in the journal of systemd)."""

from __future__ import annotations

import os
import sys

from holdfast import clock


def log(text: str) -> None:
    """Write one line to stderr, which is keeper.log or the journal of systemd."""
    print(f"{clock.iso_now()} keeper {os.getpid()}: {text}", file=sys.stderr, flush=True)
