"""Write a file that the user has named: never in place of a directory, a link or a device, and never where a
link in a project leads. Usual names can be guessed, and an agent may have put a link there."""

from __future__ import annotations

import os
import sys

from holdfast.errors import NoSuchDirectory, NotPossible
from holdfast.store import atomic, foreign

STDOUT = "-"


def check(name: str) -> None:
    """Raises NoSuchDirectory or NotPossible for a name that cannot be a file; before any work is done."""
    folder = os.path.dirname(os.path.abspath(name))
    if name == STDOUT:
        return
    if not os.path.isdir(folder):
        raise NoSuchDirectory(
            f"cannot write {name}: no such directory: {folder}", hint="create it, or choose another file"
        )
    if os.path.isdir(name) or name.endswith(os.sep):
        raise NotPossible(f"{name} is a directory", hint="name a file in it")
    foreign.refuse_way_out(name)


def write(name: str, data: bytes) -> None:
    """Replace the file, or the one that a link leads to. `-` and what is no file (a pipe) are written to.

    Raises NoSuchDirectory, NotPossible, StorageError.
    """
    check(name)
    if name == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    path = os.path.realpath(name)
    if os.path.exists(path) and not os.path.isfile(path):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                atomic.write_all(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError as error:
            atomic.storage_failed(error, f"cannot write {name}")
        return
    atomic.write(path, data, durable=False, mode=0o644)
