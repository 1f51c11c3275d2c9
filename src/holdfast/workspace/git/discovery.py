"""Finding a repository without git: only `.git` in a directory counts.

So a bare repository among the files of a project is never used, and `core.worktree`, which an agent can
write, moves nothing. A `.git` that leads into the repository of another working tree is refused: it may have
come with an archive, or be an agent's, and we would write there.
"""

from __future__ import annotations

import os
import re
from shlex import quote

from holdfast.errors import GitFailed
from holdfast.model.record import Record
from holdfast.program_search import distrust
from holdfast.store import atomic

#: The longest `.git` or `commondir` file that is read.
_LINK_BYTES = 1 << 16
_CONFIG_BYTES = 1 << 20
#: Submodules in submodules: how many repositories around one are asked whether it is theirs.
_MAX_DEPTH = 32
#: A section of a configuration, and a key of `core` in it.
_SECTION, _KEY = re.compile(r"\s*\[(.*)\]"), re.compile(r"\s*(worktree|bare)\s*=\s*(.*?)\s*", re.IGNORECASE)


class Repository(Record):
    """The repository around a directory."""

    #: The root of its working tree.
    top: str
    #: The git directory of this working tree, and the one that all worktrees share.
    git_dir: str
    common_dir: str
    #: The path of the directory below the root; empty, or with a final slash.
    prefix: str = ""
    #: Another index than its own.
    index: str | None = None

    def is_inside(self, *roots: str) -> bool:
        """Whether its git directories are below one of these directories."""
        return all(
            any(path.startswith(root.rstrip("/") + "/") for root in map(os.path.realpath, roots))
            for path in (self.git_dir, self.common_dir)
        )


def find(directory: str) -> Repository | None:
    """The repository whose working tree contains `directory`; None outside a repository.

    Raises GitFailed if it is the repository of another working tree.
    """
    return _find(directory, _MAX_DEPTH)


def _find(directory: str, depth: int) -> Repository | None:
    distrust(directory)
    start: str = os.path.realpath(directory)
    while not os.path.isdir(start) and start != "/":
        start = os.path.dirname(start)  # it was removed; what was around it is still known
    folder: str = start
    device = os.stat(start).st_dev
    while True:
        link = os.path.join(folder, ".git")
        if os.path.lexists(link):
            repository = at(folder)
            if repository is not None:
                _refuse_foreign(repository, depth)
                below = os.path.relpath(os.path.realpath(directory), folder)
                return repository.evolve(prefix="" if below == "." else below + "/")
            if not os.path.isdir(link):
                return None  # a `.git` file that leads nowhere: not the repository around it
        above: str = os.path.dirname(folder)
        if above == folder or os.stat(above).st_dev != device:
            return None
        folder = above


def at(top: str) -> Repository | None:
    """The repository whose working tree begins exactly here, whatever its `.git` leads to."""
    distrust(top)
    link = os.path.join(top, ".git")
    if os.path.isdir(link):
        git_dir = os.path.realpath(link)
    else:
        line = _line(link)
        if line is None or not line.startswith("gitdir: "):
            return None
        git_dir = _real(top, line.removeprefix("gitdir: "))
    return of_git_dir(git_dir, top) if git_dir else None


def of_git_dir(git_dir: str, top: str) -> Repository | None:
    """The repository with this git directory."""
    common_dir = common_of(git_dir)
    is_complete = (
        common_dir != ""
        and os.path.lexists(os.path.join(git_dir, "HEAD"))
        and all(os.path.isdir(os.path.join(common_dir, name)) for name in ("objects", "refs"))
    )
    return Repository(top=top, git_dir=git_dir, common_dir=common_dir) if is_complete else None


def common_of(git_dir: str) -> str:
    """The git directory that all worktrees share, as the one of this worktree names it; empty if that can be
    no path."""
    shared = _line(os.path.join(git_dir, "commondir"))
    return git_dir if shared is None else _real(git_dir, shared)


def _refuse_foreign(repository: Repository, depth: int) -> None:
    """Raises GitFailed if the git directories are not those of this working tree."""
    top, git_dir, common_dir = repository.top, repository.git_dir, repository.common_dir
    link, is_inside = os.path.join(top, ".git"), git_dir.startswith(top.rstrip("/") + "/")
    if common_dir != git_dir:
        if common_dir != os.path.dirname(os.path.dirname(git_dir)) or _is_directory(link):
            raise GitFailed(
                f"{git_dir}/commondir leads to {common_dir}, which is another repository",
                hint="git made no such file there; remove it",
            )
        back = _line(os.path.join(git_dir, "gitdir")) or ""
        if _real(git_dir, os.path.dirname(back)) != top:
            raise GitFailed(
                f"{link} leads to {git_dir}, which belongs to {os.path.dirname(back) or 'no directory'}",
                hint="if the worktree was moved, 'git worktree repair' in it mends this",
            )
    elif not is_inside and not _is_separate(git_dir, top, depth):
        raise GitFailed(
            f"{link} leads to {git_dir}, which is the repository of another directory",
            hint="if it is that of this directory alone, "
            f"'git --git-dir={quote(git_dir)} config core.worktree {quote(top)}' says so; "
            "for a second working tree, use 'git worktree add'",
        )


def _is_directory(link: str) -> bool:
    return os.path.isdir(link) and not os.path.islink(link)


def _is_separate(git_dir: str, top: str, depth: int) -> bool:
    """Whether a git directory elsewhere is that of this working tree, as far as can be told: of a submodule,
    or made by `git init --separate-git-dir`."""
    core = _core(git_dir)
    if "worktree" in core:
        return _real(git_dir, core["worktree"]) == top
    folder, name = os.path.split(git_dir)
    if ".git" in folder.split(os.sep):
        around = _find(os.path.dirname(top), depth - 1) if top != "/" and depth else None
        return around is not None and git_dir.startswith(os.path.join(around.git_dir, "modules", ""))
    if core.get("bare", "false").lower() not in ("false", "no", "off", "0"):
        return False
    try:
        return name != ".git" or os.listdir(folder) == [name]
    except OSError:
        return False  # nobody can tell


def _core(git_dir: str) -> dict[str, str]:
    """`worktree` and `bare` in the configuration of a git directory."""
    found: dict[str, str] = {}
    for file in ("config", "config.worktree"):
        section = ""
        data = atomic.read_small(os.path.join(git_dir, file), _CONFIG_BYTES)
        for line in os.fsdecode(data or b"").splitlines():
            if (head := _SECTION.match(line)) is not None:
                section = head[1].strip().lower()
            elif section == "core" and (key := _KEY.fullmatch(line)) is not None:
                value = key[2].removeprefix('"').removesuffix('"')
                found[key[1].lower()] = value.replace('\\"', '"').replace("\\\\", "\\")
    return found


def _real(folder: str, path: str) -> str:
    """Where a path leads that a file in a folder names; empty if it has a NUL byte, as no path has."""
    return "" if "\0" in path else os.path.realpath(os.path.join(folder, path))


def _line(path: str) -> str | None:
    """The one line of a file; None if it is no regular file."""
    data = atomic.read_small(path, _LINK_BYTES)
    return None if data is None else os.fsdecode(data.rstrip(b"\r\n"))
