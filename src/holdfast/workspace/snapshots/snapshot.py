"""The tree of everything in a working tree now: tracked, dirty and untracked files, symbolic links as links.

The person's repository is only read. A copy of the index saves reading what has not changed; it is kept, so that a later
snapshot compares with the one before and not with what `git add` made of the person's own index in between.

What git ignores is left out, unless a pattern of `deny` names it. A repository inside (a submodule or a stray one) stands in
the tree as a commit: its own, if nothing in it is changed, else one of ours around what is in it now.
"""

from __future__ import annotations

import os
import shutil
import stat

from holdfast.errors import GitFailed
from holdfast.store import atomic
from holdfast.workspace import git
from holdfast.workspace.scope import below, literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.workspace.place import Place
    from holdfast.workspace.snapshots.trees import Trees

#: A larger file is known by its size and times; its bytes are not copied into the packet.
BIG_BYTES = 64 * 1024 * 1024
#: Files may vanish under git's hands: what failed is tried again.
_TRIES = 3
#: Repositories in repositories in repositories.
_DEPTH = 5
_GITLINK = b"160000"


def take(
    place: Place, trees: Trees, *, deny: Iterable[str] = (), hidden: Iterable[str] = (), tries: int = _TRIES
) -> str:
    """The id of the tree, kept in `trees`. `deny` are patterns relative to the project; `hidden` are directories that are
    nobody's work (the home of holdfast). Raises GitMissing, GitFailed, StorageError."""
    trees.make(place)
    index = os.path.join(place.git_dir, "index") if place.git_dir is not None else None
    patterns = below(place.prefix, deny)
    for left in range(tries - 1, -1, -1):
        try:
            return _Snapshot(trees, place.top, deny=patterns, hidden=tuple(hidden)).take(index)
        except GitFailed:
            if not left:
                raise
    raise AssertionError("unreachable")


class _Snapshot:
    """One working tree, and the repositories inside it."""

    def __init__(
        self, trees: Trees, top: str, *, deny: tuple[str, ...], hidden: tuple[str, ...], depth: int = 0
    ) -> None:
        self.trees = trees
        self.top = top
        self.deny = deny
        self.hidden = hidden
        self.depth = depth
        self.index = ""
        self.added: list[str] = []
        self.removed: list[str] = []
        #: Lines for `update-index --index-info`.
        self.given: list[bytes] = []

    def take(self, theirs: str | None) -> str:
        kept = self.trees.index_of(self.top)
        self.index = f"{kept}.{os.getpid()}.tmp"
        try:
            self._begin(kept, theirs)
            self._collect()
            self._update()
            tree = git.text(self._git("write-tree", "--missing-ok"))
            os.replace(self.index, kept)
            return tree
        except OSError as error:
            atomic.storage_failed(error, f"cannot take a snapshot of {self.top}")
        finally:
            atomic.forget(self.index)
            atomic.forget(self.index + ".lock")

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return self.trees.run(arguments, work_tree=self.top, index=self.index, stdin=stdin)

    def _begin(self, kept: str, theirs: str | None) -> None:
        """Our index of the last time, else a copy of the person's."""
        for source in (kept, theirs):
            if source is not None and os.path.exists(source):
                # With its time: git takes a file that is as young as the index for one that may have changed since.
                shutil.copy2(source, self.index)
                os.chmod(self.index, 0o600)
                if source is theirs:
                    self._unflag()
                return

    def _unflag(self) -> None:
        """Files that somebody told git not to look at are looked at."""
        unchanged: list[str] = []
        skipped: list[str] = []
        for entry in git.names(self._git("ls-files", "-v", "-z")):
            flag, path = entry[0], entry[2:]
            if flag.islower():
                unchanged.append(path)
            if flag in "Ss" and os.path.lexists(os.path.join(self.top, path)):
                skipped.append(path)
        for option, paths in (("--no-assume-unchanged", unchanged), ("--no-skip-worktree", skipped)):
            if paths:
                self._git("update-index", option, "-z", "--stdin", stdin=git.listing(paths))

    def _collect(self) -> None:
        links = self._gitlinks()
        for path, commit in links.items():
            self._place_link(path, commit)
        changed = git.names(
            self._git("diff-files", "-z", "--name-status", "--no-renames", "--ignore-submodules=all")
        )
        paths = dict.fromkeys(changed[1::2])
        for path in self._others():
            paths[path] = None
        for path in paths:
            if path.rstrip("/") not in links and not self._is_hidden(path):
                self._sort(path)

    def _gitlinks(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self._git("ls-files", "-s", "-z").split(b"\0"):
            if line.startswith(_GITLINK):
                facts, _, path = line.partition(b"\t")
                found[os.fsdecode(path)] = facts.split()[1].decode()
        return found

    def _others(self) -> list[str]:
        """What git does not know: files, and (with a slash at the end) repositories."""
        hide = [f"--exclude={literal(path)}" for path in self._hidden_below()]
        found = git.names(self._git("ls-files", "-z", "-o", "--exclude-standard", *hide))
        if self.deny:
            # Ignored or not: the patterns of `deny` alone decide here.
            listed = [f"--exclude={pattern}" for pattern in self.deny]
            found += git.names(self._git("ls-files", "-z", "-o", "-i", *listed))
        return found

    def _hidden_below(self) -> list[str]:
        top = self.top.rstrip("/") + "/"
        return [path[len(top) :] for path in self.hidden if path.startswith(top)]

    def _is_hidden(self, path: str) -> bool:
        return any(path == hidden or path.startswith(hidden + "/") for hidden in self._hidden_below())

    def _sort(self, path: str) -> None:
        """Into what is added, what is removed, and what is only told about."""
        full = os.path.join(self.top, path)
        try:
            found = os.lstat(full)
        except (FileNotFoundError, NotADirectoryError):
            self.removed.append(path)
            return
        if stat.S_ISDIR(found.st_mode):
            if path.endswith("/"):
                self._place_link(path.rstrip("/"), None)
            else:  # a file became a directory; what is in it has been listed by itself
                self.removed.append(path)
        elif self._is_behind_a_link(path):
            self.removed.append(path)
        elif stat.S_ISLNK(found.st_mode):
            self.added.append(path)
        elif not stat.S_ISREG(found.st_mode):
            self.removed.append(path)
        elif found.st_size > BIG_BYTES or not os.access(full, os.R_OK):
            self._tell_about(path, found)
        else:
            self.added.append(path)

    def _is_behind_a_link(self, path: str) -> bool:
        """A directory was replaced by a link: what is seen through it is not in this tree."""
        folder = os.path.dirname(path)
        while folder:
            if os.path.islink(os.path.join(self.top, folder)):
                return True
            folder = os.path.dirname(folder)
        return False

    def _tell_about(self, path: str, found: os.stat_result) -> None:
        facts = (
            f"{found.st_size} bytes, inode {found.st_ino}, changed at {found.st_mtime_ns} {found.st_ctime_ns}"
        )
        note = f"holdfast: not copied: {facts}\n".encode()
        name = self._git("hash-object", "-w", "-t", "blob", "--no-filters", "--stdin", stdin=note)
        mode = b"100755" if found.st_mode & stat.S_IXUSR else b"100644"
        self.given.append(mode + b" " + name.strip() + b"\t" + os.fsencode(path))

    def _place_link(self, path: str, commit: str | None) -> None:
        """A repository inside: by the commit that stands for what is in it."""
        full = os.path.join(self.top, path)
        if self._is_behind_a_link(path) or not os.path.lexists(full):
            self.removed.append(path)
        elif os.path.islink(full) or not os.path.isdir(full):
            self.removed.append(path)
            self._sort(path)
        elif os.listdir(full):
            found = self._inside(full, commit)
            self.given.append(_GITLINK + b" " + found.encode() + b"\t" + os.fsencode(path))
        elif commit is not None:
            # A submodule that was never fetched; it may have been emptied just now.
            self.given.append(_GITLINK + b" " + commit.encode() + b"\t" + os.fsencode(path))

    def _inside(self, full: str, commit: str | None) -> str:
        if self.depth >= _DEPTH:
            raise GitFailed(
                f"{full}: repositories are nested too deeply", hint="remove or ignore the innermost"
            )
        repository = git.find(full) if os.path.lexists(os.path.join(full, ".git")) else None
        head = theirs = None
        if repository is not None and os.path.realpath(repository.top) == os.path.realpath(full):
            self.trees.borrow(repository.common_dir)
            head, theirs = git.head(full), os.path.join(repository.git_dir, "index")
        inner = _Snapshot(self.trees, full, deny=self.deny, hidden=self.hidden, depth=self.depth + 1)
        tree = inner.take(theirs)
        if head is not None and self.trees.tree_of(head) == tree:
            return head
        return self.trees.commit(tree, *([head] if head is not None else []))

    def _update(self) -> None:
        if self.removed:
            self._git("update-index", "-z", "--force-remove", "--stdin", stdin=git.listing(self.removed))
        if self.given:
            self._git("update-index", "--replace", "-z", "--index-info", stdin=b"\0".join(self.given) + b"\0")
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
