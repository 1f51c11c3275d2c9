"""`<home>/projects/`: the directories in which agents of this home work, for `program_search`.

One file per directory, named by the digest of its path, with the path as content. It is written before the
first task there, and never changed. An agent can remove it, or write others, so there is another one beside
the user's settings, which counts. Where that cannot be written, this one does.
"""

from __future__ import annotations

import os

from holdfast import files, program_search
from holdfast.errors import HoldfastError
from holdfast.store import atomic, linked_objects, trust_dir
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Home

#: With more than these, directories that no longer exist are forgotten when another one is added.
_MANY = 200


def note(home: Home, project: str) -> None:
    """Note the project of a task, and roots of projects around it. Raises OSError, StorageError."""
    known = program_search.projects_of_tasks()
    for directory in program_search.roots_around(project):
        _note(home.projects, directory)
        try:
            trust_dir.make()
            linked_objects.note(directory, known)
            _note(program_search.own_notes(), directory)
        except (OSError, HoldfastError):
            continue  # the user's settings are read-only: there is the one in the home


def _note(folder: str, directory: str) -> None:
    path = os.path.join(folder, sha256(os.fsencode(directory))[:32])
    if not os.path.lexists(path):
        atomic.make_directory(folder)
        _forget_removed(folder)
        atomic.write(path, os.fsencode(directory), durable=False)


def _forget_removed(folder: str) -> None:
    names = os.listdir(folder)
    for name in names if len(names) > _MANY else ():
        path = os.path.join(folder, name)
        try:
            is_there = os.path.isdir(os.fsdecode(files.read(path)))
        except OSError:
            is_there = False
        if not is_there:
            atomic.forget(path)
