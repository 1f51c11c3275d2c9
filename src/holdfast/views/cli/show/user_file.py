"""Write a file that the user has named: never in place of a directory, a link or a device, and never where a
link in a project leads. Usual names can be guessed, and an agent may have put a link there."""

from __future__ import annotations

import os
import sys

from holdfast import program_search
from holdfast.errors import NoSuchDirectory, NotPossible
from holdfast.store import atomic

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
    refuse_way_out(name)


def refuse_way_out(name: str) -> None:
    """Raises NotPossible for a path in a project that leads out of it, through a link."""
    path = os.path.abspath(name)
    # Also out of the project of each link on the way: it may lead into another project.
    for place in (path, *program_search.places(path)[:-1]):
        project = _project_around(place)
        if project is not None and not os.path.realpath(name).startswith(os.path.realpath(project) + os.sep):
            raise NotPossible(
                f"{name} leads out of {project}, through a link: to {os.path.realpath(name)}",
                hint="name that place if it is right, or remove the link",
            )


def _project_around(path: str) -> str | None:
    """The innermost project that contains a path, as it is written."""
    known = program_search.projects_of_tasks()
    while (above := os.path.dirname(path)) != path:
        path = above
        if program_search.is_marked(path) or os.path.realpath(path) in known:
            return path
    return None


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
