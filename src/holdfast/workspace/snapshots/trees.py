"""A task's own store of git objects, which has the trees of its workspace.

It reads objects of the user's repository (alternates), but never writes there, nor to the user's index, refs
or settings. The settings that decide how files become objects (line endings, ignore rules) are frozen when it
is created, so that an agent cannot hide files by changing them later. No filter is ever run.
"""

from __future__ import annotations

import json
import os
import shutil

from holdfast import files, ids
from holdfast.store import atomic
from holdfast.store.digest import sha256
from holdfast.store.directories import remove_tree
from holdfast.store.no_links import plain_path
from holdfast.store.seals import digest_of
from holdfast.workspace import git
from holdfast.workspace.snapshots import genuine

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Iterator
    from typing import Any

    from holdfast.store.layout import Packet
    from holdfast.workspace.project_tree import ProjectTree

_CONFIG = """\
[core]
	# Names that are special on other systems only: otherwise a file could be hidden.
	protectNTFS = false
	protectHFS = false
	looseCompression = 1
	# The journal refers to these trees, so they must survive a power cut.
	fsync = all
	fsyncMethod = batch
"""
#: The frozen settings, in the git directory.
_FROZEN = "holdfast.json"
_READ_BYTES = 1 << 20
_IDENTITY = {
    **git.IDENTITY,
    "GIT_AUTHOR_DATE": "@0 +0000",
    "GIT_COMMITTER_DATE": "@0 +0000",
}


class Trees:
    """The repository of one task's trees, at `<packet>/state/workspace`."""

    def __init__(self, path: str, notes: str | None = None) -> None:
        self.path = path
        #: Where the digests of the indexes are; an agent in a sandbox cannot write there.
        self._notes = notes if notes is not None else os.path.join(path, "noted")
        self.git_dir = os.path.join(path, "git")
        self.indexes = os.path.join(path, "indexes")
        self.objects = os.path.join(self.git_dir, "objects")
        self._alternates = os.path.join(self.objects, "info", "alternates")
        self._settings: git.Settings | None = None
        #: Whether what others wrote into the store was removed; and what else was compared with its name.
        self._is_clean = False
        self._checked: set[str] = set()

    @classmethod
    def of(cls, packet: Packet) -> Trees:
        """The repository of a task's trees; `make` creates it."""
        plain_path(packet.path, packet.workspace)
        # Only the packet itself may be a link: git writes nowhere if another one is on the way.
        below = os.path.relpath(packet.workspace, packet.path)
        return cls(os.path.join(os.path.realpath(packet.path), below), packet.index_notes)

    @property
    def settings(self) -> git.Settings:
        """The settings that were frozen when the repository was created."""
        if self._settings is None:
            data = atomic.read_json(os.path.join(self.git_dir, _FROZEN))
            self._settings = git.Settings.from_file(data if data is not None else self._older())
        return self._settings

    @property
    def settings_digest(self) -> str:
        """A digest of the settings: an agent may change the file in which they are."""
        return sha256(json.dumps(self.settings.to_json(), sort_keys=True).encode())

    def _older(self) -> dict[str, Any]:
        """The settings in a repository that holdfast 0.1 created: in its configuration."""
        config = atomic.read_small(os.path.join(self.git_dir, "config"), _READ_BYTES) or b""
        exclude = atomic.read_small(os.path.join(self.git_dir, "info", "exclude"), _READ_BYTES) or b""
        return {
            "values": dict(git.settings.listed(config) or ()),
            "exclude": exclude.decode("utf-8", "surrogateescape"),
        }

    def make(self, project: ProjectTree) -> None:
        """Create the repository for a project if it is missing, completely or not at all."""
        os.makedirs(self.indexes, mode=0o700, exist_ok=True)
        if not os.path.isdir(self.git_dir):
            staged = os.path.join(self.path, f".new-{ids.new_ulid()}")
            try:
                self._fill(staged, project)
                os.rename(staged, self.git_dir)
                atomic.sync_directory(self.path)
            except OSError as error:
                # Another process of the task may have created it meanwhile.
                if not os.path.isdir(self.git_dir):
                    atomic.storage_failed(error, f"cannot create {self.git_dir}")
            finally:
                remove_tree(staged)
        self.borrow(project)
        self._clean()

    def _fill(self, staged: str, project: ProjectTree) -> None:
        repository = project.repository
        frozen = git.settings.none() if repository is None else git.settings.read(repository)
        for name in ("objects/info", "objects/pack", "refs"):
            os.makedirs(os.path.join(staged, name), mode=0o700)
        kind = frozen.values.get("extensions.objectformat", "sha1")
        # For a person who looks into it with git. Our own calls do not read it.
        config = (
            f"[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = {kind}\n"
        )
        atomic.write(os.path.join(staged, "config"), config.encode(), durable=True)
        atomic.write_json(os.path.join(staged, _FROZEN), frozen.to_json(), durable=True)
        atomic.write(os.path.join(staged, "HEAD"), b"ref: refs/heads/none\n", durable=True)

    def borrow(self, project: ProjectTree) -> None:
        """Make the objects of the user's repository available, and no others: git does not compare the
        content of an object with its name."""
        common_dir = project.common_dir
        lines = quoted(os.path.join(common_dir, "objects")) + b"\n" if common_dir is not None else b""
        plain_path(self.path, os.path.dirname(self._alternates))
        if (atomic.read_small(self._alternates, _READ_BYTES) or b"") != lines:
            atomic.make_packet_directory(os.path.dirname(self._alternates))
            atomic.write(self._alternates, lines, durable=True)

    @property
    def stores(self) -> tuple[str, ...]:
        """The directories with the objects: its own, then those that it borrows."""
        lines = (atomic.read_small(self._alternates, _READ_BYTES) or b"").split(b"\n")
        # A quoted path is one with a newline.
        borrowed = (os.fsdecode(line) for line in lines if line and not line.startswith((b"#", b'"')))
        return (self.objects, *borrowed)

    def index_of(self, top: str) -> str:
        """The index of the last snapshot of a working tree: unchanged files are not read again."""
        return os.path.join(self.indexes, sha256(os.fsencode(top))[:32])

    def forget(self) -> None:
        """Remove what somebody left here before the first snapshot: settings that an agent has put here would
        be taken for those of the start."""
        for path in (self.git_dir, self.indexes, self._notes):
            remove_tree(path)

    def begin_with(self, top: str, index: str) -> None:
        """Let the first snapshot of a working tree begin with an index that nobody else could write."""
        last_index = self.index_of(top)
        new_index = self.temporary(os.path.basename(last_index))
        # With its time: git reads files again that are as new as the index.
        shutil.copy2(index, new_index)
        self.note_index(last_index, index)
        os.replace(new_index, last_index)

    def note_index(self, path: str, new_index: str) -> None:
        """Note the content of an index, which is about to take the place of `path`."""
        atomic.make_directory(os.path.dirname(self._notes))
        atomic.make_directory(self._notes)
        atomic.write(self._note(path), _digest(new_index).encode(), durable=False)

    def is_noted(self, index: str) -> bool:
        """Whether the index is as we left it."""
        noted = atomic.read_small(self._note(index), _READ_BYTES)
        return noted is not None and noted.decode("ascii", "replace") == _digest(index)

    def has_noted(self, top: str) -> bool:
        """Whether a snapshot of this working tree was taken before."""
        index = self.index_of(top)
        return os.path.lexists(self._note(index)) or os.path.lexists(index)

    def _note(self, index: str) -> str:
        return os.path.join(self._notes, os.path.basename(index))

    def temporary(self, name: str) -> str:
        """A new path beside the indexes. An agent cannot guess it and put a link there."""
        return os.path.join(self.indexes, f"{name}.{os.getpid()}.{os.urandom(8).hex()}")

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
        return self.call(
            arguments, work_tree=work_tree, index=index, stdin=stdin, env=env, allowed=allowed
        ).stdout

    def call(
        self,
        arguments: Iterable[str],
        *,
        work_tree: str | None = None,
        index: str | None = None,
        stdin: bytes = b"",
        env: dict[str, str] | None = None,
        allowed: tuple[int, ...] = (0,),
    ) -> subprocess.CompletedProcess[bytes]:
        """As `run`, but return the exit status too."""
        more = dict(env or {})
        if work_tree is not None:
            more["GIT_WORK_TREE"] = work_tree
        if index is not None:
            more["GIT_INDEX_FILE"] = index
        plain_path(self.path, self.objects, self.indexes)
        if not self._is_clean:
            self._clean()
        return git.work_on(
            git.Target(objects=self.objects, config=_CONFIG),
            arguments,
            known=self.settings,
            cwd=work_tree or self.path,
            env=more,
            stdin=stdin,
            allowed=allowed,
        )

    def _clean(self) -> None:
        """Remove what an agent wrote into the store, so that files are stored as they are."""
        plain_path(self.path, self.objects)
        genuine.clean(self.objects)
        self._is_clean = True

    def check(self, tree: str, *above: str) -> None:
        """Compare all objects of a tree with their names, and commits `above` it. Raises GitFailed."""
        wanted = [(name, 0, "of the judged tree") for name in (*above, tree)]
        for entry in git.names(self.run(["ls-tree", "-r", "-t", "-l", "-z", "--full-tree", tree])):
            facts, _, path = entry.partition("\t")
            _, kind, name, size = facts.split()
            if kind != "commit":
                wanted.append((name, int(size) if size.isdigit() else 0, path))
        wanted = [each for each in wanted if each[0] not in self._checked]
        genuine.check(self.contents, wanted)
        self._checked.update(name for name, _, _ in wanted)

    def contents(self, names: Iterable[str]) -> Iterator[tuple[str, bytes, memoryview]]:
        """Objects by their full names, each once: name, kind and content. Without those that are missing."""
        return git.read_objects(self.run, names)

    def has(self, name: str) -> bool:
        """Whether an object exists."""
        return self.run(["cat-file", "-t", name], allowed=(0, 1, 128)) != b""

    def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return git.text(self.run(["rev-parse", "--verify", "-q", f"{commit}^{{tree}}"]))

    def is_own(self, commit: str) -> bool:
        """Whether a commit was made by `commit`."""
        committer = git.text(self.run(["log", "-1", "--format=%ct %ce", commit, "--"]))
        return committer == f"0 {_IDENTITY['GIT_COMMITTER_EMAIL']}"

    def commit(self, tree: str, *parents: str) -> str:
        """A commit of a tree; always the same for the same tree and parents."""
        args = [word for parent in parents for word in ("-p", parent)]
        return git.text(
            self.run(["commit-tree", "--no-gpg-sign", tree, *args, "-m", "snapshot"], env=_IDENTITY)
        )


def quoted(path: str) -> bytes:
    """A path as a line of `alternates`: C-quoted if it has a newline or begins with a quote."""
    raw = os.fsencode(path)
    if not raw.startswith(b'"') and b"\n" not in raw:
        return raw
    escaped = raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


def _digest(path: str) -> str:
    """The digest of a file; empty if there is none."""
    try:
        descriptor = files.open_regular(path)
    except OSError:
        return ""
    try:
        return digest_of(descriptor, os.fstat(descriptor).st_size).digest().hex()
    finally:
        os.close(descriptor)
