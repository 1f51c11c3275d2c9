"""Where programs of our own choice (git, tmux, systemctl, the shell of a gate, …) are looked for.

An agent, also one in a sandbox, writes in its project, and a project is often in PATH: an active virtual
environment, `node_modules/.bin`, a relative directory. A program that an agent put there must not be ours.
An agent's own command and the commands of the user keep the user's PATH.
"""

from __future__ import annotations

import os

from holdfast import files, paths
from holdfast.errors import HoldfastError

#: What marks the root of a project: settings of holdfast, and what version control systems leave in a clone.
_PROJECT_MARKS = (
    ".git", ".holdfast", ".hg", ".jj", ".svn", ".sl", ".bzr", ".fslckout", "_FOSSIL_", "_darcs", ".pijul",
    "CVS/Entries", ".repo", ".got", "_MTN", ".bk",
)  # fmt: skip

#: Variable for processes that go on elsewhere: the projects around the directory of the command.
AROUND = "HOLDFAST_AROUND"
#: What `is_marked` said of a directory, with its device, inode and st_ctime. A new mark changes that time,
#: and no process can set it back.
_looked_at: dict[str, tuple[tuple[int, ...], bool]] = {}
#: Directories in which agents may write, as far as this process has met them.
_untrusted: set[str] = set()
#: What the notes of projects say (`store.projects`), by path. A note never changes.
_noted: dict[str, str] = {}
_NOTES, _NAME_CHARS = "projects", 32
_SYSTEM, _NOWHERE = "/usr/bin", "/nonexistent"
_SYSTEM_FOLDERS = (
    "/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/libexec",
    "/usr/local/bin", "/usr/local/sbin",
)  # fmt: skip
#: The kernel reads no more of the first line of a script.
_LINE_BYTES = 256
#: The kernel follows no more on one path.
_MOST_LINKS = 40


def distrust(directory: str) -> None:
    """From now on, take no program from this directory, nor from the projects around it."""
    if directory:
        _untrusted.update(roots_around(directory))


def around() -> str:
    """The value of AROUND for processes that this one starts."""
    return os.pathsep.join(sorted({*_told(), *filter(is_marked, _surroundings())}))


def search_path() -> str:
    """PATH without directories in which an agent may write: relative ones, those of the home, of the projects
    of tasks, of the project around the current directory and of others that this process has met, of virtual
    environments and of node packages."""
    roots = _roots()
    found = [
        entry
        for entry in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(entry) and not _belongs_to_project(entry, roots)
    ]
    # Never empty: that would mean the current directory.
    return os.pathsep.join(found) or _NOWHERE


def environment() -> dict[str, str]:
    """Our environment for a program of our own choice. It may be a script (`#!/usr/bin/env node`), or start
    others: these are searched in `search_path`, too."""
    return {**os.environ, "PATH": search_path()}


def find(name: str) -> str | None:
    """The path of a program in `search_path`; None if it is not there."""
    for folder in search_path().split(os.pathsep):
        path = os.path.join(folder, name)
        if folder and os.access(path, os.X_OK) and os.path.isfile(path) and not leads_to_project(path):
            return path
    return None


def leads_to_project(path: str) -> bool:
    """Whether a program is in a project, or a link to one there, or a script whose interpreter is: an agent
    may have written it. (In an environment or a node package, it may be a program that the user
    installed.)"""
    roots, named = _roots(), (path, *_interpreters(path))
    return any(_is_in(place, root) for each in named for place in places(each) for root in roots)


def _interpreters(path: str) -> list[str]:
    """The paths in the first line of a script."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            head = os.read(descriptor, _LINE_BYTES)
        finally:
            os.close(descriptor)
    except OSError:
        return []
    words = head[2:].partition(b"\n")[0].split() if head.startswith(b"#!") else []
    return [os.fsdecode(word) for word in words if word.startswith(b"/")]


def is_of_project(directory: str) -> bool:
    """Whether an agent may write in a directory, as in those that `search_path` leaves out."""
    return _belongs_to_project(directory, _roots())


def _roots() -> set[str]:
    return {*_untrusted, *_surroundings(), *_told(), *projects_of_tasks()}


def _belongs_to_project(entry: str, roots: set[str]) -> bool:
    return any(
        any(_is_in(place, root) for root in roots)
        or "node_modules" in place.split(os.sep)
        or os.path.lexists(os.path.join(os.path.dirname(place), "pyvenv.cfg"))
        for place in places(entry)
    )


def places(path: str) -> list[str]:
    """Where it is decided what a path means: the place of each link on the way, and its own. An agent that
    may write in one of them decides. The directories of each are resolved."""
    found: list[str] = []
    here = "/" if os.path.isabs(path) else os.getcwd()
    rest = path.split(os.sep)[::-1]
    while rest:
        name = rest.pop()
        place = os.path.normpath(os.path.join(here, name)) if name else here
        try:
            target = os.readlink(place) if name else None
        except OSError:
            target = None  # no link
        if target is None or len(found) == _MOST_LINKS:
            here = place
            continue
        found.append(place)
        here = "/" if os.path.isabs(target) else here
        rest += target.split(os.sep)[::-1]
    return [*found, here]


def roots_around(directory: str) -> set[str]:
    """The directory, and those around it that are roots of projects."""
    here = places(directory)[-1]  # realpath fails if a link is replaced by a directory meanwhile
    found = {here}
    above = here
    while above != "/":
        if is_marked(above):
            found.add(above)
        above = os.path.dirname(above)
    return _projects(found)


def is_marked(directory: str) -> bool:
    """Whether it looks like the root of a project."""
    try:
        found = os.stat(directory)
    except OSError:
        return False
    stamp = found.st_dev, found.st_ino, found.st_ctime_ns
    known, answer = _looked_at.get(directory, (None, False))
    if known == stamp:
        return answer
    answer = bool(mark_of(directory))
    # A file in `CVS` is no change of the directory.
    if answer or not os.path.lexists(os.path.join(directory, "CVS")):
        _looked_at[directory] = stamp, answer
    return answer


def mark_of(directory: str) -> str:
    """What makes it look like the root of a project; empty if nothing does."""
    marks = (mark for mark in _PROJECT_MARKS if os.path.lexists(os.path.join(directory, mark)))
    return next(marks, "")


def projects_of_tasks() -> set[str]:
    """The home, and the projects in which agents have worked, by their real paths. An agent can remove the
    marks of one."""
    return {*_of_home(), *_of_user()}


def _projects(found: set[str]) -> set[str]:
    """Without those that contain the user's home directory, or the programs of the system: `~/.local/bin`
    would be lost. Nor is one of these directories of the system, or what is in it, a project."""
    user = os.path.realpath(paths.user_home())
    return {
        root
        for root in found
        if root != "/"
        and not any(_is_in(place, root) for place in (user, _SYSTEM))
        and not any(_is_in(root, folder) for folder in _SYSTEM_FOLDERS)
    }


def _surroundings() -> set[str]:
    try:
        return roots_around(os.getcwd())
    except OSError:
        return set()


def _told() -> set[str]:
    return _projects(set(filter(None, os.environ.get(AROUND, "").split(os.pathsep))))


def _of_home() -> set[str]:
    """The home, and the projects of its tasks as it notes them: an agent can write such notes, so they count
    only where those beside the user's settings cannot be written."""
    try:
        home = paths.chosen_home()
    except HoldfastError:
        return set()
    if os.access(own_notes(), os.W_OK):
        return _projects({home})
    return _projects({home, *filter(os.path.isdir, _notes_in(os.path.join(home, _NOTES)))})


def own_notes() -> str:
    """The directory of notes that agents cannot remove. It is that of all homes."""
    return os.path.join(paths.trust_dir(), _NOTES)


def _of_user() -> set[str]:
    """The projects of all tasks of the user."""
    return _projects(_notes_in(own_notes()))


def _notes_in(folder: str) -> set[str]:
    found: set[str] = set()
    try:
        names = os.listdir(folder)
    except OSError:
        names = []  # no task yet
    for path in (os.path.join(folder, name) for name in names if len(name) == _NAME_CHARS):
        if path not in _noted:
            try:
                _noted[path] = os.fsdecode(files.read(path))
            except OSError:
                continue  # removed meanwhile
        found.add(_noted[path])
    return found


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root + os.sep)
