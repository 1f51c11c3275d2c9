"""The environment of `gh`, which runs git in a project: `git status`, for example, runs filters.

Its git gets a git directory of ours (`private`) like our own, with the remotes and branches of the repository
and nothing else of its settings. So there is no filter or driver that it could run.

The host is that of the remote, which is the repository's word. So a token that `gh` would send to any host is
passed on only if the user named that host (GH_HOST).
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager

from holdfast.errors import GitFailed
from holdfast.workspace.git import settings
from holdfast.workspace.git.discovery import common_of, find
from holdfast.workspace.git.execute import environment_for_others
from holdfast.workspace.git.private import SharedDirectories, Target, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from holdfast.workspace.git.discovery import Repository

_COPIED = re.compile(r"(remote)\.(.+)\.(url|pushurl|fetch|gh-resolved)|(branch)\.(.+)\.(remote|merge)")

#: `gh` uses them for every host but github.com. A login (`gh auth login`) belongs to one host.
_FOR_ANY_HOST = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")
#: They make it write for a terminal, even into a pipe.
_FOR_TERMINALS = ("GH_FORCE_TTY", "CLICOLOR_FORCE")


@contextmanager
def environment_for_gh(project: str, named: str = "") -> Generator[dict[str, str]]:
    """The environment, which is valid in the `with` statement. `named` is the repository on the forge, with
    its host; without it, `gh` finds it from the remotes. Raises GitFailed, StorageError."""
    dropped = _FOR_TERMINALS if _is_host_of_user(named) else (*_FOR_TERMINALS, *_FOR_ANY_HOST)
    env = {name: value for name, value in environment_for_others(project).items() if name not in dropped}
    repository = find(project)
    if repository is None:
        # Outside a repository, also for a git that would find one where we find none.
        yield {**env, "GIT_DIR": os.devnull}
        return
    if common_of(repository.git_dir) != repository.common_dir:
        raise GitFailed(f"{repository.git_dir}/commondir does not lead to {repository.common_dir}")
    target = Target(
        objects=os.path.join(repository.common_dir, "objects"),
        git_dir=repository.git_dir,
        common_dir=repository.common_dir,
        config=_remotes(repository),
    )
    with SharedDirectories() as directories:
        variables = directories.variables(target, settings.read(repository))
        yield {**env, **variables, "GIT_WORK_TREE": repository.top}


def _is_host_of_user(named: str) -> bool:
    """Whether GH_HOST is the host of the repository; `gh` itself compares it with that of a remote."""
    host = os.environ.get("GH_HOST", "").lower()
    return bool(host) and (not named or named.lower().startswith(f"{host}/"))


def _remotes(repository: Repository) -> str:
    """Remotes and branches of a repository, in the syntax of git's configuration."""
    lines: list[str] = []
    for name, value in settings.of_repository(repository):
        match = _COPIED.fullmatch(name)
        if match is not None and name.isprintable() and value.isprintable():
            section, of, key = filter(None, match.groups())
            lines.append(f"[{section} {quoted(of)}]\n\t{key} = {quoted(value)}\n")
    return "".join(lines)
