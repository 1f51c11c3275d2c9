"""Running git: one way for all, that no setting of a person or of an agent can bend.

Hooks and file-system monitors never run, nothing is asked on a terminal, locks that git could do without are not taken, and
variables that would point git somewhere else are dropped. Paths are any bytes but NUL; in our strings they are what
`os.fsdecode` makes of them.
"""

from __future__ import annotations

import os
import subprocess

from holdfast.errors import GitFailed, GitMissing
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Any single call; a checkout or a first snapshot of a large repository takes minutes, never hours.
LIMIT_S = 900.0
_FIXED = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    # Either would be written beside the index of somebody else.
    "-c", "core.splitIndex=false",
    "-c", "core.untrackedCache=false",
    # A change must not hide behind a file's time or size.
    "-c", "core.checkStat=default",
    "-c", "core.trustctime=true",
    "-c", "core.ignoreStat=false",
    "-c", "core.quotePath=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "advice.addEmbeddedRepo=false",
)  # fmt: skip
#: Of the variables that git knows, these say who commits and where settings are; every other one would lead it astray.
_KEPT = (
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH",
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
)  # fmt: skip
#: Who commits, where holdfast does.
IDENTITY = {
    "GIT_AUTHOR_NAME": "holdfast",
    "GIT_AUTHOR_EMAIL": "holdfast@localhost",
    "GIT_COMMITTER_NAME": "holdfast",
    "GIT_COMMITTER_EMAIL": "holdfast@localhost",
}
#: How much of what git said goes into an error.
_SAID_CHARS = 600


class Repository(Record):
    """A person's repository that a directory lies in."""

    #: The root of its working tree.
    top: str
    #: Of this working tree, and the one that all working trees share.
    git_dir: str
    common_dir: str
    #: Where the directory lies below the root; empty, or with a slash at its end.
    prefix: str


def run(
    arguments: Iterable[str],
    *,
    cwd: str,
    env: dict[str, str] | None = None,
    stdin: bytes = b"",
    allowed: tuple[int, ...] = (0,),
    limit_s: float = LIMIT_S,
) -> bytes:
    """What git printed. Raises GitMissing; GitFailed for an exit status that is not `allowed`, with what git said."""
    return call(arguments, cwd=cwd, env=env, stdin=stdin, allowed=allowed, limit_s=limit_s).stdout


def call(
    arguments: Iterable[str],
    *,
    cwd: str,
    env: dict[str, str] | None = None,
    stdin: bytes = b"",
    allowed: tuple[int, ...] = (0,),
    limit_s: float = LIMIT_S,
) -> subprocess.CompletedProcess[bytes]:
    """As `run`, for those who need the exit status too."""
    words = list(arguments)
    try:
        done = subprocess.run(
            ["git", *_FIXED, *words],
            cwd=cwd,
            env={**environment(), **(env or {})},
            input=stdin,
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except FileNotFoundError as error:
        if not os.path.isdir(cwd):
            raise GitFailed(f"git cannot work in {cwd}: there is no such directory") from error
        raise GitMissing("there is no git in PATH") from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"git {words[0]} in {cwd} took longer than {limit_s:.0f} s and was ended") from error
    except OSError as error:
        raise GitFailed(f"git cannot work in {cwd}: {error.strerror}") from error
    if done.returncode not in allowed:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[:_SAID_CHARS]
        raise GitFailed(
            f"git {words[0]} in {cwd}: {said or f'exit status {done.returncode}'}", hint=_hint(said)
        )
    return done


def environment() -> dict[str, str]:
    """Our own environment, without what would lead git astray."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_EDITOR": "true",
        "GIT_PAGER": "cat",
    }


def _hint(said: str) -> str:
    if "dubious ownership" in said:
        return (
            "the repository belongs to another user; 'git config --global --add safe.directory DIR' trusts it"
        )
    if "cannot lock ref" in said and " exists; cannot create " in said:
        return "a branch is in the way: rename the one that git names with 'git branch -m OLD NEW'"
    if "index.lock" in said or "cannot lock ref" in said:
        return "another git is at work there, or was killed; look at the lock file that it names"
    return ""


def find(directory: str) -> Repository | None:
    """The repository whose working tree holds `directory`; None when there is none.

    Raises GitFailed where git refuses to look (a repository of another user): to take that for "no repository" would hide
    everything that git knows about it.
    """
    asked = call(["rev-parse", "--show-toplevel"], cwd=directory, allowed=(0, 128))
    if asked.returncode:
        said = asked.stderr.decode("utf-8", "replace")
        if "not a git repository" in said or "must be run in a work tree" in said:
            return None
        raise GitFailed(
            f"git cannot read the repository of {directory}: {' '.join(said.split())}", hint=_hint(said)
        )
    top = text(asked.stdout)
    if not top:
        return None

    def ask(*words: str) -> str:
        return text(run(["rev-parse", *words], cwd=directory))

    return Repository(
        top=top,
        git_dir=ask("--absolute-git-dir"),
        common_dir=ask("--path-format=absolute", "--git-common-dir"),
        prefix=ask("--show-prefix"),
    )


def text(output: bytes) -> str:
    """One value as git prints it: without the newline at its end, and without touching any other."""
    return os.fsdecode(output[:-1] if output.endswith(b"\n") else output)


def names(output: bytes) -> list[str]:
    """The names of a `-z` listing."""
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def listing(paths: Iterable[str]) -> bytes:
    """The inverse of `names`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def head(directory: str) -> str | None:
    """The commit that is checked out; None before the first one."""
    asked = call(["rev-parse", "--verify", "-q", "HEAD^{commit}"], cwd=directory, allowed=(0, 1, 128))
    return text(asked.stdout) or None if asked.returncode == 0 else None
