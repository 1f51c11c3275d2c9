"""Repositories whose `objects` is a link, as `repo` makes them: where it led before an agent worked there.
Git writes through no other link.

One file per repository beside the user's settings, `trust/<hash>.objects`, with the path of the target. It is
written before the first task there. A link to the objects of another repository (git-new-workdir) looks like
that of a hostile archive, and needs a person.
"""

from __future__ import annotations

import os

from holdfast.errors import StorageError
from holdfast.store import atomic, trust_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def note(directory: str, known: Iterable[str]) -> None:
    """Note the link of the repository at a directory, unless an agent may have made it: it, or the
    repository, is in one of the `known` projects of earlier tasks. Raises OSError, StorageError."""
    git_dir = os.path.realpath(os.path.join(directory, ".git"))
    link = os.path.join(git_dir, "objects")
    if not os.path.islink(link):
        return
    places = (directory + os.sep, git_dir + os.sep)
    if any(place.startswith(root + os.sep) for root in known for place in places):
        return
    if _is_of_another(os.path.realpath(link), os.path.realpath(directory)):
        return
    if not os.path.lexists(_record(git_dir)):
        trust_dir.make()
        atomic.write(_record(git_dir), os.fsencode(os.path.realpath(link)), durable=False)


def _is_of_another(objects: str, directory: str) -> bool:
    """Whether they are the objects of another repository, which an archive can name, too. Those of the tool
    `repo` are below the directory `.repo` around the project."""
    if not os.path.lexists(os.path.join(os.path.dirname(objects), "HEAD")):
        return False
    top, found, _ = objects.partition(f"{os.sep}.repo{os.sep}")
    return not (found and f"{directory}{os.sep}".startswith(top + os.sep))


def place_of(git_dir: str) -> str:
    """Where the objects of a repository are written: behind a link that was noted, but behind no other."""
    path = os.path.join(git_dir, "objects")
    if not os.path.islink(path):
        return path
    noted = trust_dir.read(_record(git_dir))
    real = os.path.realpath(path)
    return real if noted is not None and os.fsdecode(noted.rstrip(b"\n")) == real else path


def plain_place_of(git_dir: str) -> str:
    """As `place_of`. Raises StorageError if a link is there that was not noted."""
    path = place_of(git_dir)
    if os.path.islink(path):
        raise StorageError(f"{path} is a symbolic link, which is not followed", hint=hint(path))
    return path


def hint(path: str) -> str:
    """What a person can do about a link at this path that was not noted. (Without it, the repository has no
    objects.)"""
    look = "an agent may have made it: look where it leads"
    if os.path.basename(path) != "objects" or not os.path.islink(path):
        return look
    from shlex import quote  # only needed here

    real = os.path.realpath(path)
    return f"{look}; if it is yours: echo {quote(real)} > {quote(_record(os.path.dirname(path)))}"


def _record(git_dir: str) -> str:
    return trust_dir.path_for(git_dir, "objects")
