"""keeper.log: lines on stderr (or in the journal of systemd)."""

from __future__ import annotations

import os

from holdfast import clock, files


def log(text: str) -> None:
    """Write one line to stderr, which is keeper.log or the journal of systemd."""
    files.log(f"{clock.iso_now()} keeper {os.getpid()}: {text}")
