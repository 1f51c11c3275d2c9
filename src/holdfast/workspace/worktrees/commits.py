"""Committing in a git directory in which an agent can write, or that came with a hostile repository.

git follows links there (`index`, `COMMIT_EDITMSG`, `logs/HEAD`), and HEAD may name a branch of the user. So
git gets a copy of the index with a random name and writes only objects. Index and HEAD are replaced by us.
Where git itself writes more (`merge` in the user's tree, `update-ref`), what it would write is looked at
before.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex

from holdfast import files
from holdfast.errors import NotPossible
from holdfast.failpoints import failpoint
from holdfast.store import atomic, linked_objects
from holdfast.store.no_links import plain_path
from holdfast.workspace import git
from holdfast.workspace.branch_links import refuse_branch_links, refuse_log_links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

_COMMIT = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_OF_MERGE = ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE")
#: Where git notes what was checked out before a merge.
_ORIG_HEAD = "ORIG_HEAD"
_READ_BYTES = 1 << 16


@contextlib.contextmanager
def own_index(repository: git.Repository) -> Generator[git.Repository]:
    """The repository with a copy of its index, in which no file has a flag that hides its changes."""
    path = os.path.join(repository.git_dir, f"index.{os.getpid()}.{os.urandom(8).hex()}")
    own = repository.evolve(index=path)
    try:
        if not _copy(os.path.join(repository.git_dir, "index"), path):
            git.run(["read-tree", git.head(repository) or "--empty"], of=own)
        for option, paths in git.flagged(git.run(["ls-files", "-v", "-z"], of=own), own.top):
            if paths:
                git.run(["update-index", option, "-z", "--stdin"], of=own, stdin=git.listing(paths))
        yield own
    except OSError as error:
        atomic.storage_failed(error, f"cannot write in {repository.git_dir}")
    finally:
        atomic.forget(path)
        atomic.forget(path + ".lock")


def _copy(source: str, target: str) -> bool:
    """Copy an index; not through a link."""
    try:
        old = files.stream(source)
    except OSError:
        return False
    with old:
        found = os.fstat(old.fileno())
        new = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            while data := old.read(_READ_BYTES):
                atomic.write_all(new, data)
        finally:
            os.close(new)
    # git reads files again that are as new as the index.
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    return True


def commit(own: git.Repository, message: str) -> str | None:
    """A commit of what is in the index of `own_index`; None if HEAD has the same. HEAD does not move."""
    linked_objects.plain_place_of(own.common_dir)
    head, merged = git.head(own), _merged(own)
    # In a partial clone, objects of files that were never checked out are missing.
    tree = git.text(git.run(["write-tree", "--missing-ok"], of=own))
    args = ["rev-parse", "--verify", "-q", f"{head}^{{tree}}"]
    if head is not None and not merged and git.text(git.run(args, of=own)) == tree:
        return None
    parents = [*([head] if head is not None else []), *merged]
    return git.text(
        git.run(
            ["commit-tree", "--no-gpg-sign", *(word for each in parents for word in ("-p", each)), tree],
            of=own,
            env=git.IDENTITY,
            stdin=message.encode("utf-8", "replace"),
        )
    )


def make_ready_to_merge(repository: git.Repository, branch: str) -> None:
    """Before git merges into a branch that is checked out: raises StorageError if it would follow a link, and
    NotPossible if a merge is unfinished there, which would be aborted if ours failed.

    What an earlier merge left is removed; git would write into it, whatever it is.
    """
    git_dir, common_dir = repository.git_dir, repository.common_dir
    refuse_branch_links(repository, branch)
    objects = linked_objects.plain_place_of(common_dir)
    plain_path(objects, os.path.join(objects, "pack"))
    plain_path(git_dir, os.path.join(git_dir, "index"))
    refuse_log_links(git_dir, _ORIG_HEAD)
    if _refers_to_another(git_dir, branch):
        raise NotPossible(
            f"the branch that is checked out in {repository.top} only refers to {branch}",
            hint=f"'git switch {shlex.quote(branch)}' first; the project was not changed",
        )
    if os.path.lexists(os.path.join(git_dir, "MERGE_HEAD")):
        raise NotPossible(
            f"{repository.top} has an unfinished merge",
            hint="'git commit' or 'git merge --abort' first; the project was not changed",
        )
    end_merge(repository)
    # It may refer to a branch, which git would move.
    atomic.forget(os.path.join(git_dir, _ORIG_HEAD))


def _refers_to_another(git_dir: str, branch: str) -> bool:
    """Whether HEAD is on another branch than `branch`, to which that one refers."""
    head = git.text(atomic.read_small(os.path.join(git_dir, "HEAD"), _READ_BYTES) or b"")
    # In a repository with reftables, the file has another branch, which does not exist.
    return head.startswith("ref: ") and head not in (f"ref: refs/heads/{branch}", "ref: refs/heads/.invalid")


def _merged(repository: git.Repository) -> list[str]:
    """The other parents of an unfinished merge."""
    data = atomic.read_small(os.path.join(repository.git_dir, "MERGE_HEAD"), _READ_BYTES) or b""
    return [line.decode() for line in data.split() if _COMMIT.fullmatch(line)]


def put_index(own: git.Repository) -> None:
    """Make the index of `own_index` that of the repository."""
    assert own.index is not None
    os.replace(own.index, os.path.join(own.git_dir, "index"))
    failpoint("commits.index_put")


def detach(repository: git.Repository, commit: str) -> None:
    """Make HEAD this commit, on no branch."""
    atomic.write(os.path.join(repository.git_dir, "HEAD"), f"{commit}\n".encode(), durable=True)


def end_merge(repository: git.Repository) -> None:
    """Forget the merge that a commit has finished."""
    for name in _OF_MERGE:
        atomic.forget(os.path.join(repository.git_dir, name))


def end_finished_merge(repository: git.Repository) -> None:
    """Forget a merge whose commit is made already: a kill came in between."""
    merged = _merged(repository)
    args = ["merge-base", "--is-ancestor"]
    if merged and all(
        git.call([*args, each, "HEAD"], of=repository, allowed=(0, 1, 128)).returncode == 0 for each in merged
    ):
        end_merge(repository)
