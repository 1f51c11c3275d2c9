"""Taking a snapshot: the tree of everything in a working tree, with dirty and untracked files.

The user's repository is only read. The snapshot has its own index, first copied from the user's, so that
unchanged files are not read again, and so that a later `git add` of the user has no effect on it. An index
that another process changed, or the user's after the first snapshot, could claim that a changed file is
unchanged. Of such an index, only the names are used, and all files are read.

Files that git ignores are left out, unless a pattern of `deny` matches them, or HEAD or the user's index has
them: a merge would bring them (`git add -f`). Below a denied directory, those that are new and that the rules
of the task's start ignore are left out, too: caches of a test run. A nested repository (a submodule or an
untracked one) is a commit in the tree: its HEAD if nothing in it changed, else a commit of ours. An agent can
write objects of any name into a nested repository, so none of them is used: all its files are read.
"""

from __future__ import annotations

import os
import shutil
import stat

from holdfast.errors import GitFailed
from holdfast.store import atomic
from holdfast.workspace import git
from holdfast.workspace.scope import below, literal
from holdfast.workspace.snapshots.ignore_rules import without_caches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.workspace.project_tree import ProjectTree
    from holdfast.workspace.snapshots.trees import Trees

#: Of a larger file only size and times are recorded; its content is not copied into the packet.
BIG_BYTES = 64 * 1024 * 1024
#: git fails if a file vanishes while it runs, so a snapshot is retried.
_TRIES = 3
#: How deep repositories may be nested.
_MAX_DEPTH = 5


def is_large(path: str) -> bool:
    """Whether a snapshot has only a note of this file, because of its size."""
    try:
        return os.lstat(path).st_size > BIG_BYTES
    except OSError:
        return False


def note_of(stats: os.stat_result) -> bytes:
    """What a snapshot has in place of a file that is too large or cannot be read."""
    facts = f"{stats.st_size} bytes, inode {stats.st_ino}, changed at {stats.st_mtime_ns} {stats.st_ctime_ns}"
    return f"holdfast: not copied: {facts}\n".encode()


def take(
    project: ProjectTree,
    trees: Trees,
    *,
    deny: Iterable[str] = (),
    hidden: Iterable[str] = (),
    since: str = "",
    tries: int = _TRIES,
    trusts_index: bool = True,
) -> str:
    """Store the tree in `trees` and return its id. Raises GitMissing, GitFailed, StorageError.

    `deny` are patterns relative to the project; `hidden` are directories to leave out (the home of holdfast).
    `since` is the tree of the task's start; empty if this is it. Without `trusts_index`, an agent has already
    worked there.
    """
    trees.make(project)
    patterns = below(project.prefix, deny)
    own = tuple(path for path in (project.top, project.git_dir, project.common_dir) if path is not None)
    for left in range(tries - 1, -1, -1):
        try:
            with git.SharedDirectories():
                snapshot = _Snapshot(
                    trees,
                    project.top,
                    deny=patterns,
                    hidden=tuple(hidden),
                    since=since,
                    own=own,
                    is_first=trusts_index and not trees.has_noted(project.top),
                )
                return snapshot.take(project.repository)
        except GitFailed:
            if not left:
                raise
    raise AssertionError("unreachable")


class _Snapshot:
    """The snapshot of one working tree and its nested repositories."""

    def __init__(
        self,
        trees: Trees,
        top: str,
        *,
        deny: tuple[str, ...],
        hidden: tuple[str, ...],
        own: tuple[str, ...],
        is_first: bool,
        since: str = "",
        depth: int = 0,
    ) -> None:
        self.trees = trees
        self.top = top
        self.deny = deny
        self.hidden = hidden
        self.since = since
        #: Where git directories of nested repositories may be.
        self.own = own
        self.depth = depth
        #: Whether no agent has worked here yet.
        self.is_first = is_first
        self.index = ""
        self.added: list[str] = []
        self.removed: list[str] = []
        #: Lines for `update-index --index-info`.
        self.index_info: list[bytes] = []

    def take(self, repository: git.Repository | None) -> str:
        user_index = os.path.join(repository.git_dir, "index") if repository is not None else None
        last_index = self.trees.index_of(self.top)
        self.index = self.trees.temporary(os.path.basename(last_index))
        try:
            self._fill_index(last_index, repository, user_index)
            self._collect(self._tracked(repository, user_index))
            self._update()
            tree = git.text(self._git("write-tree", "--missing-ok"))
            self.trees.note_index(last_index, self.index)
            os.replace(self.index, last_index)
            return tree
        except OSError as error:
            atomic.storage_failed(error, f"cannot take a snapshot of {self.top}")
        finally:
            atomic.forget(self.index)
            atomic.forget(self.index + ".lock")

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return self.trees.run(arguments, work_tree=self.top, index=self.index, stdin=stdin)

    def _fill_index(self, last_index: str, repository: git.Repository | None, user_index: str | None) -> None:
        """Start from our index of the last snapshot, at first from a copy of the user's."""
        if self.trees.is_noted(last_index):
            self._copy(last_index)
        elif self.is_first and not self.depth and user_index is not None and os.path.isfile(user_index):
            self._copy(user_index)
        elif os.path.isfile(last_index):
            # Without the times of files, each is read again.
            args = ["ls-files", "-s", "-z"]
            listed = self.trees.run(args, work_tree=self.top, index=last_index, allowed=(0, 128))
            self._git("update-index", "-z", "--index-info", stdin=listed)
        elif repository is not None:
            lines = b"".join(
                git.GITLINK + b" " + commit.encode() + b"\t" + os.fsencode(path) + b"\0"
                for path, commit in git.gitlinks(_listed(repository))
                if _is_below(path)
            )
            self._git("update-index", "-z", "--index-info", stdin=lines)

    def _copy(self, source: str) -> None:
        # Keep the time: git reads files again that are as new as the index.
        shutil.copy2(source, self.index)
        os.chmod(self.index, 0o600)
        self._unflag()

    def _unflag(self) -> None:
        """Clear the flags assume-unchanged and skip-worktree: these files are compared too."""
        for option, paths in git.flagged(self._git("ls-files", "-v", "-z"), self.top):
            if paths:
                self._git("update-index", option, "-z", "--stdin", stdin=git.listing(paths))

    def _tracked(self, repository: git.Repository | None, user_index: str | None) -> list[str]:
        """Paths that HEAD or the user's index has, and our index has not."""
        if repository is None or user_index is None:
            return []
        if self.depth:
            return self._tracked_inside(repository)
        try:
            head = git.head(repository)
        except GitFailed:
            return []  # an agent damaged it; then there is nothing to merge
        args = ["diff-index", "--cached", "--name-only", "-z", "--no-renames", "--ignore-submodules=none"]
        paths = git.names(self._git(*args, "--diff-filter=D", head, "--")) if head is not None else []
        if os.path.isfile(user_index):
            args = ["ls-files", "-z"] if head is None else [*args, "--diff-filter=A", head, "--"]
            # A damaged index has nothing to commit.
            paths += git.names(self.trees.run(args, work_tree=self.top, index=user_index, allowed=(0, 128)))
        return paths

    def _tracked_inside(self, repository: git.Repository) -> list[str]:
        """As `_tracked`; a nested repository is asked itself, and only for names."""
        known = set(git.names(self._git("ls-files", "-z")))
        args = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD"]
        paths = git.names(git.run(args, of=repository, allowed=(0, 128)))
        paths += [entry.partition("\t")[2] for entry in git.names(_listed(repository))]
        return [path for path in dict.fromkeys(paths) if path not in known and _is_below(path)]

    def _collect(self, tracked: list[str]) -> None:
        links = self._gitlinks()
        for path, commit in links.items():
            self._add_repository(path, commit)
        changed = git.names(
            self._git("diff-files", "-z", "--name-status", "--no-renames", "--ignore-submodules=all")
        )
        paths = dict.fromkeys(changed[1::2])
        for path in (*self._others(), *tracked):
            paths[path] = None
        for path in paths:
            if path.rstrip("/") not in links and not self._is_hidden(path):
                self._classify(path)

    def _gitlinks(self) -> dict[str, str]:
        """The nested repositories of the index: path → commit."""
        return dict(git.gitlinks(self._git("ls-files", "-s", "-z")))

    def _others(self) -> list[str]:
        """Untracked files, and untracked repositories (with a final slash)."""
        excludes = [f"--exclude={literal(path)}" for path in self._hidden_below()]
        untracked = git.names(self._git("ls-files", "-z", "-o", "--exclude-standard", *excludes))
        if self.deny:
            # Here only the patterns of `deny` count, whether git ignores a file or not.
            patterns = [f"--exclude={pattern}" for pattern in self.deny]
            denied = git.names(self._git("ls-files", "-z", "-o", "-i", *patterns))
            if self.since and denied:
                denied = without_caches(self.trees, self.since, denied, self.deny, top=self.top)
            untracked += denied
        return untracked

    def _hidden_below(self) -> list[str]:
        top = self.top.rstrip("/") + "/"
        return [path[len(top) :] for path in self.hidden if path.startswith(top)]

    def _is_hidden(self, path: str) -> bool:
        return any(path == hidden or path.startswith(hidden + "/") for hidden in self._hidden_below())

    def _classify(self, path: str) -> None:
        """Decide whether a path is added, removed, or only described."""
        full = os.path.join(self.top, path)
        try:
            stats = os.lstat(full)
        except (FileNotFoundError, NotADirectoryError):
            self.removed.append(path)
            return
        if stat.S_ISDIR(stats.st_mode):
            if path.endswith("/"):
                self._add_repository(path.rstrip("/"), None)
            else:  # a file became a directory, whose files are listed separately
                self.removed.append(path)
        elif self._is_behind_link(path):
            self.removed.append(path)
        elif stat.S_ISLNK(stats.st_mode):
            self.added.append(path)
        elif not stat.S_ISREG(stats.st_mode):
            self.removed.append(path)
        elif stats.st_size > BIG_BYTES or not os.access(full, os.R_OK):
            self._describe(path, stats)
        else:
            self.added.append(path)

    def _is_behind_link(self, path: str) -> bool:
        """Whether a parent directory is a symbolic link: its files are not part of this tree."""
        folder = os.path.dirname(path)
        while folder:
            if os.path.islink(os.path.join(self.top, folder)):
                return True
            folder = os.path.dirname(folder)
        return False

    def _describe(self, path: str, stats: os.stat_result) -> None:
        """Add a note in place of a file that is too large or cannot be read."""
        words = ("hash-object", "-w", "-t", "blob", "--no-filters", "--stdin")
        name = self._git(*words, stdin=note_of(stats))
        mode = b"100755" if stats.st_mode & stat.S_IXUSR else b"100644"
        self.index_info.append(mode + b" " + name.strip() + b"\t" + os.fsencode(path))

    def _add_repository(self, path: str, commit: str | None) -> None:
        """Add a nested repository as a commit with its current content."""
        full = os.path.join(self.top, path)
        if self._is_behind_link(path) or not os.path.lexists(full):
            self.removed.append(path)
        elif os.path.islink(full) or not os.path.isdir(full):
            self.removed.append(path)
            self._classify(path)
        elif os.listdir(full):
            content = self._commit_of(full)
            self.index_info.append(git.GITLINK + b" " + content.encode() + b"\t" + os.fsencode(path))
        elif commit is not None:
            # An empty directory: a submodule that was never fetched, or one that was just emptied.
            self.index_info.append(git.GITLINK + b" " + commit.encode() + b"\t" + os.fsencode(path))

    def _commit_of(self, full: str) -> str:
        """The commit for a nested repository: its HEAD if nothing changed, else one of ours."""
        if self.depth >= _MAX_DEPTH:
            raise GitFailed(
                f"{full}: repositories are nested too deeply", hint="remove or ignore the innermost"
            )
        repository, head = git.at(full), None
        # A `.git` that leads elsewhere is a repository that an agent chose.
        if repository is not None and not repository.is_inside(*self.own):
            repository = None
        if repository is not None:
            head = git.head(repository)
        inner = _Snapshot(
            self.trees,
            full,
            deny=self.deny,
            hidden=self.hidden,
            own=self.own,
            depth=self.depth + 1,
            is_first=self.is_first,
        )
        tree = inner.take(repository)
        if repository is not None and head is not None and self._has_tree(repository, head, tree):
            return head
        return self.trees.commit(tree)

    def _has_tree(self, repository: git.Repository, commit: str, tree: str) -> bool:
        """Whether a commit has this tree; then our store has the commit, too."""
        data = git.run(["cat-file", "commit", commit], of=repository, allowed=(0, 128))
        if not data.startswith(b"tree " + tree.encode() + b"\n"):
            return False
        # The name of an object is the digest of its content, whatever the repository says.
        args = ("hash-object", "-w", "-t", "commit", "--stdin")
        return git.text(self.trees.run(args, stdin=data, allowed=(0, 128))) == commit

    def _update(self) -> None:
        if self.removed:
            self._git("update-index", "-z", "--force-remove", "--stdin", stdin=git.listing(self.removed))
        if self.index_info:
            lines = b"\0".join(self.index_info) + b"\0"
            self._git("update-index", "--replace", "-z", "--index-info", stdin=lines)
        if self.added:
            self._git(
                "update-index",
                "--add",
                "--remove",
                "--replace",
                "-z",
                "--stdin",
                stdin=git.listing(self.added),
            )


def _listed(repository: git.Repository) -> bytes:
    """The entries of a repository's index; empty if it is damaged."""
    return git.run(["ls-files", "-s", "-z"], of=repository, allowed=(0, 128))


def _is_below(path: str) -> bool:
    """Whether a name in a repository leads into it; an agent can write others."""
    return not os.path.isabs(path) and not {"..", "", ".git"} & set(path.split("/"))
