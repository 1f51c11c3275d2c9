"""`<home>/projects/`: the directories in which agents of this home work, for `program_search`.

One file per directory, named by the digest of its path, with the path as content. It is written before the
first task there, and never changed.
"""

from __future__ import annotations

import os

from holdfast import files, program_search
from holdfast.store import atomic
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Home

#: With more than these, directories that no longer exist are forgotten when another one is added.
_MANY = 200


def note(home: Home, project: str) -> None:
    """Note the project of a task, and roots of projects around it. Raises OSError."""
    for directory in program_search.roots_around(project):
        path = home.project_note(sha256(os.fsencode(directory))[:32])
        if not os.path.lexists(path):
            atomic.make_directory(home.projects)
            _forget_removed(home)
            atomic.write(path, os.fsencode(directory), durable=False)


def _forget_removed(home: Home) -> None:
    names = os.listdir(home.projects)
    for name in names if len(names) > _MANY else ():
        path = os.path.join(home.projects, name)
        try:
            is_there = os.path.isdir(os.fsdecode(files.read(path)))
        except OSError:
            is_there = False
        if not is_there:
            atomic.forget(path)
