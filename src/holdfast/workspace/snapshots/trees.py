"""A task's own bare git repository, which stores the trees of its workspace.

It reads objects of the user's repository (alternates), but never writes there, nor to the user's index, refs
or settings. The settings that decide how files become objects (line endings, filters, ignore rules) are
copied when it is created, so that an agent cannot hide files by changing them later.
"""

from __future__ import annotations

import os

from holdfast import ids
from holdfast.packet.create import remove_tree
from holdfast.store import atomic
from holdfast.store.digest import sha256
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.store.layout import Packet
    from holdfast.workspace.place import Place

_COPIED = (
    r"^(core\.(autocrlf|eol|filemode|ignorecase|precomposeunicode|symlinks|excludesfile|attributesfile)"
    r"|filter\..*\.(clean|smudge|process|required))$"
)
_OURS = {
    # Names that are special on other systems only: otherwise a file could be hidden.
    "core.protectNTFS": "false",
    "core.protectHFS": "false",
    "core.safecrlf": "false",
    "core.looseCompression": "1",
    # The journal refers to these trees, so they must survive a power cut.
    "core.fsync": "all",
    "core.fsyncMethod": "batch",
}
_IDENTITY = {
    **git.IDENTITY,
    "GIT_AUTHOR_DATE": "@0 +0000",
    "GIT_COMMITTER_DATE": "@0 +0000",
}


class Trees:
    """The repository of one task's trees, at `<packet>/state/workspace`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.git_dir = os.path.join(path, "git")
        self.indexes = os.path.join(path, "indexes")
        self._alternates = os.path.join(self.git_dir, "objects", "info", "alternates")

    @classmethod
    def of(cls, packet: Packet) -> Trees:
        """The repository of a task's trees; `make` creates it."""
        return cls(packet.workspace)

    def make(self, place: Place) -> None:
        """Create the repository for a place if it is missing, completely or not at all."""
        os.makedirs(self.indexes, mode=0o700, exist_ok=True)
        if not os.path.isdir(self.git_dir):
            staged = os.path.join(self.path, f".new-{ids.new_ulid()}")
            try:
                self._fill(staged, place)
                os.rename(staged, self.git_dir)
                atomic.sync_directory(self.path)
            except OSError as error:
                # Another process of the task may have created it meanwhile.
                if not os.path.isdir(self.git_dir):
                    atomic.storage_failed(error, f"cannot create {self.git_dir}")
            finally:
                remove_tree(staged)
        if place.common_dir is not None:
            self.borrow(place.common_dir)

    def _fill(self, staged: str, place: Place) -> None:
        kind = ["--object-format=sha1"]
        settings = dict(_OURS)
        if place.common_dir is not None:
            kind = [
                "--object-format=" + git.text(git.run(["rev-parse", "--show-object-format"], cwd=place.top))
            ]
            listed = git.run(["config", "-z", "--get-regexp", _COPIED], cwd=place.top, allowed=(0, 1))
            for entry in git.names(listed):
                name, _, value = entry.partition("\n")
                settings.setdefault(name, value or "true")
        git.run(["init", "-q", "--bare", "--template=", *kind, staged], cwd=self.path)
        for name, value in settings.items():
            git.run(["config", "--file", os.path.join(staged, "config"), name, value], cwd=self.path)
        os.makedirs(os.path.join(staged, "info"), mode=0o700, exist_ok=True)
        for name in ("exclude", "attributes"):
            if place.common_dir is None:
                break
            data = atomic.read_small(os.path.join(place.common_dir, "info", name), 1 << 20)
            if data is not None:
                atomic.write(os.path.join(staged, "info", name), data, durable=True)

    def borrow(self, common_dir: str) -> None:
        """Make the objects of another repository available."""
        line = _quoted(os.path.join(common_dir, "objects"))
        try:
            with open(self._alternates, "rb") as file:
                known = file.read()
        except FileNotFoundError:
            known = b""
        if line not in known.split(b"\n"):
            os.makedirs(os.path.dirname(self._alternates), mode=0o700, exist_ok=True)
            atomic.write(self._alternates, known + line + b"\n", durable=True)

    def index_of(self, top: str) -> str:
        """The index file of a working tree. It is kept, so that unchanged files are not read again."""
        return os.path.join(self.indexes, sha256(os.fsencode(top))[:32])

    def run(
        self,
        arguments: Iterable[str],
        *,
        work_tree: str | None = None,
        index: str | None = None,
        stdin: bytes = b"",
        env: dict[str, str] | None = None,
        allowed: tuple[int, ...] = (0,),
    ) -> bytes:
        """Run git in this repository, optionally with a working tree and an index."""
        more = {"GIT_DIR": self.git_dir, **(env or {})}
        if work_tree is not None:
            more["GIT_WORK_TREE"] = work_tree
        if index is not None:
            more["GIT_INDEX_FILE"] = index
        return git.run(arguments, cwd=work_tree or self.path, env=more, stdin=stdin, allowed=allowed)

    def has(self, name: str) -> bool:
        """Whether an object exists."""
        return self.run(["cat-file", "-t", name], allowed=(0, 1, 128)) != b""

    def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return git.text(self.run(["rev-parse", "--verify", "-q", f"{commit}^{{tree}}"]))

    def is_own(self, commit: str) -> bool:
        """Whether a commit was made by `commit`."""
        committer = git.text(self.run(["log", "-1", "--format=%ct %ce", commit]))
        return committer == f"0 {_IDENTITY['GIT_COMMITTER_EMAIL']}"

    def commit(self, tree: str, *parents: str) -> str:
        """A commit of a tree; always the same for the same tree and parents."""
        words = [word for parent in parents for word in ("-p", parent)]
        return git.text(
            self.run(["commit-tree", "--no-gpg-sign", tree, *words, "-m", "snapshot"], env=_IDENTITY)
        )


def _quoted(path: str) -> bytes:
    """A path as a line of `alternates`: C-quoted if it has a newline or begins with a quote."""
    raw = os.fsencode(path)
    if not raw.startswith(b'"') and b"\n" not in raw:
        return raw
    escaped = raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
