"""Running git in a way that no setting of a user or an agent can change.

Hooks and file-system monitors never run, git never prompts, optional locks are not taken, and variables that
redirect git are removed. Paths can have any bytes but NUL; in strings they are decoded by `os.fsdecode`.
"""

from __future__ import annotations

import os
import subprocess

from holdfast.errors import GitFailed, GitMissing
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Time limit of one call. A first snapshot of a large repository takes minutes.
LIMIT_S = 900.0
_FIXED = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    # Both would write files beside the user's index.
    "-c", "core.splitIndex=false",
    "-c", "core.untrackedCache=false",
    # A change must be seen even if the file's time or size is the same.
    "-c", "core.checkStat=default",
    "-c", "core.trustctime=true",
    "-c", "core.ignoreStat=false",
    "-c", "core.quotePath=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "advice.addEmbeddedRepo=false",
)  # fmt: skip
#: The GIT_ variables that are kept: who commits, and where settings are. Others could redirect git.
_KEPT = (
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH",
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
)  # fmt: skip
#: The author of holdfast's own commits.
IDENTITY = {
    "GIT_AUTHOR_NAME": "holdfast",
    "GIT_AUTHOR_EMAIL": "holdfast@localhost",
    "GIT_COMMITTER_NAME": "holdfast",
    "GIT_COMMITTER_EMAIL": "holdfast@localhost",
}
#: The mode of a nested repository in a tree or an index.
GITLINK = b"160000"
#: How much of git's stderr goes into an error.
_STDERR_CHARS = 600


class Repository(Record):
    """The repository around a directory."""

    #: The root of its working tree.
    top: str
    #: The git directory of this working tree, and the one that all worktrees share.
    git_dir: str
    common_dir: str
    #: The path of the directory below the root; empty, or with a final slash.
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
    """Run git and return its stdout.

    Raises GitMissing, or GitFailed for an exit status that is not `allowed`.
    """
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
    """As `run`, but return the exit status too."""
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
            raise GitFailed(f"cannot run git in {cwd}: there is no such directory") from error
        raise GitMissing("git is not in PATH") from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"git {words[0]} in {cwd} exceeded its limit of {limit_s:.0f} s") from error
    except OSError as error:
        raise GitFailed(f"cannot run git in {cwd}: {error.strerror}") from error
    if done.returncode not in allowed:
        stderr = " ".join(done.stderr.decode("utf-8", "replace").split())[:_STDERR_CHARS]
        raise GitFailed(
            f"git {words[0]} in {cwd}: {stderr or f'exit status {done.returncode}'}", hint=_hint(stderr)
        )
    return done


def environment() -> dict[str, str]:
    """Our environment without variables that redirect git."""
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


def _hint(stderr: str) -> str:
    if "dubious ownership" in stderr:
        return (
            "the repository belongs to another user; 'git config --global --add safe.directory DIR' trusts it"
        )
    if "cannot lock ref" in stderr and " exists; cannot create " in stderr:
        return "a branch with a conflicting name exists; rename it with 'git branch -m OLD NEW'"
    if "index.lock" in stderr or "cannot lock ref" in stderr:
        return "another git process is running there, or was killed; check the lock file"
    return ""


def find(directory: str) -> Repository | None:
    """The repository whose working tree contains `directory`; None outside a repository.

    Raises GitFailed if git refuses to read it (a repository of another user): that is not "no repository".
    """
    done = call(["rev-parse", "--show-toplevel"], cwd=directory, allowed=(0, 128))
    if done.returncode:
        stderr = done.stderr.decode("utf-8", "replace")
        if "not a git repository" in stderr or "must be run in a work tree" in stderr:
            return None
        raise GitFailed(
            f"git cannot read the repository of {directory}: {' '.join(stderr.split())}", hint=_hint(stderr)
        )
    top = text(done.stdout)
    if not top:
        return None

    def rev_parse(*words: str) -> str:
        return text(run(["rev-parse", *words], cwd=directory))

    return Repository(
        top=top,
        git_dir=rev_parse("--absolute-git-dir"),
        common_dir=rev_parse("--path-format=absolute", "--git-common-dir"),
        prefix=rev_parse("--show-prefix"),
    )


def text(output: bytes) -> str:
    """One value as git prints it, without its final newline (but with all others)."""
    return os.fsdecode(output[:-1] if output.endswith(b"\n") else output)


def names(output: bytes) -> list[str]:
    """The names of a `-z` listing."""
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def listing(paths: Iterable[str]) -> bytes:
    """The inverse of `names`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def head(directory: str) -> str | None:
    """The commit that is checked out; None before the first commit."""
    done = call(["rev-parse", "--verify", "-q", "HEAD^{commit}"], cwd=directory, allowed=(0, 1, 128))
    return text(done.stdout) or None if done.returncode == 0 else None


def is_merging(directory: str) -> bool:
    """Whether a merge was started there and not finished."""
    words = ["rev-parse", "-q", "--verify", "MERGE_HEAD"]
    return call(words, cwd=directory, allowed=(0, 1, 128)).returncode == 0


def gitlinks(listed: bytes) -> Iterator[tuple[str, str]]:
    """The nested repositories in the output of `ls-files -s -z` or `ls-tree -z`: path and commit."""
    for entry in listed.split(b"\0"):
        if entry.startswith(GITLINK):
            facts, _, name = entry.partition(b"\t")
            # "160000 COMMIT 0" of an index, "160000 commit COMMIT" of a tree.
            words = facts.decode().split(" ")
            yield os.fsdecode(name), words[2] if words[1] == "commit" else words[1]
