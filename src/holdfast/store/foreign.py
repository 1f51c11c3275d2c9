"""Files that others may have written: a clone, an unpacked archive, or the work of an agent.

What a user names is judged against the project, the tree around the current directory, and everything that
has the mark of a project. A tree without a mark counts too, because an unpacked archive has none. This is for
files only: programs are searched by narrower rules (`program_search`), or `~/.local/bin` would be lost.
"""

from __future__ import annotations

import os

from holdfast import paths, program_search
from holdfast.errors import NotPossible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Where all users put files, also for root, who owns every directory of the system.
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")


def is_foreign(path: str, *projects: str) -> bool:
    """Whether others may have written a file: it is in one of the projects, in the tree around one or around
    the current directory, in a repository or project of any kind, or where agents have worked; or a link in
    such a place leads to it."""
    return any(_around(path, projects))


def reason(path: str, *projects: str) -> str:
    """Which project a file is in, and why that counts as one; empty if the file is not foreign."""
    roots = list(_around(path, projects))
    if not roots:
        return ""
    # The mark of a repository explains most.
    root = next(filter(program_search.is_marked, roots), roots[0])
    if mark := program_search.mark_of(root):
        return f"{root} is a project: it has {mark}"
    if root in program_search.projects_of_tasks():
        return f"{root} counts as a project: a task was started in it"
    return f"{root} counts as a project: it is around the directory of this command or task"


def _around(path: str, projects: tuple[str, ...]) -> Iterator[str]:
    """The roots that make a file foreign, the innermost first."""
    roots = program_search.projects_of_tasks()
    roots.update(os.path.realpath(project) for project in projects)
    roots.update(filter(None, map(_unmarked_tree, _starts(projects))))
    for place in program_search.places(path):
        yield from (above for above in _upwards(place) if program_search.is_marked(above) or above in roots)


def refuse_way_out(name: str, *projects: str) -> None:
    """Raises NotPossible for a path in a project, or in a tree as above, that leads out of it through a
    link: others would choose the file that we read or write, or where an agent works."""
    target: str = os.path.realpath(name)
    if target == os.path.abspath(name):
        return  # no link
    # Also out of the project of each link on the way: it may lead into another project.
    for place in (os.path.abspath(name), *program_search.places(name)[:-1]):
        for root in _roots_around(place, projects):
            if not _is_in(target, os.path.realpath(root)):
                raise NotPossible(
                    f"{name} leads out of {root}, through a link: to {target}",
                    hint="name that place if it is right, or remove the link",
                )


def tree_around(directory: str) -> str | None:
    """The root of the tree that contains a directory, by its real path: the nearest directory with a mark or,
    without one, the topmost below the user's home directory, /tmp or a directory of the system. None in
    these themselves."""
    here: str = os.path.realpath(directory)
    for above in _upwards(here):
        if _is_project(above):
            return above
    return _topmost(here)


def _is_project(directory: str) -> bool:
    """Whether it has a mark. A home directory under version control (dotfiles) is no project that contains
    all others."""
    return program_search.is_marked(directory) and not _is_in(os.path.realpath(paths.user_home()), directory)


def _unmarked_tree(directory: str) -> str | None:
    tree = tree_around(directory)
    return None if tree is None or _is_project(tree) else tree


def _topmost(directory: str) -> str | None:
    user, found = os.path.realpath(paths.user_home()), None
    for above in _upwards(directory):
        if _is_in(user, above) or (_is_shared(above) and not _is_in(above, user)):
            break
        found = above
    return found


def _is_shared(directory: str) -> bool:
    """Whether it is /tmp or the like, or a directory of the system such as /srv: what is in it is not one
    tree. Its mode says nothing: an archive chooses the modes of its directories."""
    if directory in map(os.path.realpath, _SHARED):
        return True
    try:
        return os.stat(directory).st_uid == 0 and os.geteuid() != 0
    except OSError:
        return True


def _starts(projects: tuple[str, ...]) -> list[str]:
    try:
        return [os.getcwd(), *projects]
    except OSError:
        return list(projects)  # the current directory was removed


def _roots_around(place: str, projects: tuple[str, ...]) -> list[str]:
    """The innermost project that contains a place, as it is written. In a tree without a mark, whose root is
    a guess, nothing may leave the smallest directory around both the place and where the user works."""
    known, folder = program_search.projects_of_tasks(), os.path.dirname(place)
    for above in _upwards(folder):
        if _is_project(above) or os.path.realpath(above) in known:
            return [above]
    folder = os.path.realpath(folder)
    return [
        os.path.commonpath((folder, os.path.realpath(start)))
        for start in _starts(projects)
        if (tree := _unmarked_tree(start)) is not None and _is_in(folder, tree)
    ]


def _upwards(directory: str) -> Iterator[str]:
    """The directory, and all above it."""
    while True:
        yield directory
        if directory == os.path.dirname(directory):
            return
        directory = os.path.dirname(directory)


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
