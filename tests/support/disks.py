"""A small disk, and how to fill it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.tools import give_up, need


@contextmanager
def small_disk(path: str, *, megabytes: int) -> Iterator[None]:
    """A file system of this size, mounted at a new directory. Only root can do that: other users skip."""
    need("mount", "umount")
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    os.mkdir(path, 0o700)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "holdfast-test", path]
    mounted = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    if mounted.returncode != 0:
        give_up(f"root cannot mount a tmpfs here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        # Lazily: a process that is being killed may still have a file open.
        subprocess.run(["umount", "--lazy", path], timeout=20, check=True)


def fill(path: str) -> str:
    """Fill the rest of a disk. Returns the file to remove."""
    filler = os.path.join(path, "filler")
    with open(filler, "ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
    return filler
