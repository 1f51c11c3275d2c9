"""Clean rooms: fresh checkouts of a tree, in which commands judge it.

A room has the files of the tree and nothing else: no ignored files, caches or programs that an agent left.
It is a repository of its own, at the commit of the task's start, with the objects of the user's repository.
What an agent wrote into `.git` is not in it.

    <room>/tree/         the files; `room_places` says where rooms are
    <room>/index.…       indexes of git, while it is filled
    /tmp/hf-<digest>/    the temporary directory of its commands; short, for sockets

No agent of another task writes there, so commands find what the tree has. The name of a room is random, and
the digest is that of its name. A room is removed when it is left. One whose process was killed is removed by
the next room of the task, at the end of the task, and with the packet.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from holdfast.errors import GitFailed, NotPossible
from holdfast.failpoints import failpoint
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.store.digest import sha256
from holdfast.store.directories import remove_tree
from holdfast.workspace import git, room_places
from holdfast.workspace.snapshots.snapshot import is_large, note_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from holdfast.store.layout import Packet
    from holdfast.workspace.base import Base
    from holdfast.workspace.snapshots.trees import Trees

_TEMPORARY = "/tmp"
#: A note in place of a large file (`snapshot.note_of`) is not longer than this.
_NOTE_BYTES = 300
_ATTRIBUTES = ".gitattributes"
#: Below the root: the stores of objects, by number. The first is that of the task.
_BORROWED = ".git/borrowed"


class Room(Record):
    """A clean room."""

    #: The root of its tree, and the project in it.
    top: str
    directory: str
    #: For the commands.
    temporary: str
    #: What commands find at a path below the root, and where it is: the objects that the repository borrows,
    #: and files of the tree that are too large for the packet.
    shared: tuple[tuple[str, str], ...] = ()
    #: The path among these at which the objects of the task are.
    own_objects: str = ""


@contextmanager
def entered(packet: Packet, trees: Trees, base: Base, tree: str) -> Generator[Room]:
    """A room with the files of a tree. Raises GitFailed, StorageError."""
    sweep(packet)
    room = room_places.new_room(packet)
    top, temporary = os.path.join(room, "tree"), _temporary(room)
    try:
        try:
            os.mkdir(top, mode=0o700)
            os.mkdir(temporary, mode=0o700)
        except OSError as error:
            atomic.storage_failed(error, f"cannot create the clean room {top}")
        failpoint("clean_room.begun")
        index = _check_out(trees, base, tree, top, old_tree=base.base_tree, indexes=room)
        _make_repository(trees, base, top, index)
        failpoint("clean_room.made")
        directory = _directory(top, base.place.prefix)
        shared = (*_borrowed(trees), *_large_files(trees, base, tree))
        yield Room(
            top=top, directory=directory, temporary=temporary, shared=shared, own_objects=f"{_BORROWED}/0"
        )
        failpoint("clean_room.used")
    finally:
        _remove(room)


def _directory(top: str, prefix: str) -> str:
    """The project in a room. Raises NotPossible if a link of the tree is in its place: commands would judge
    what is behind it."""
    directory = os.path.join(top, prefix).rstrip("/")
    if os.path.realpath(directory) != os.path.join(os.path.realpath(top), prefix).rstrip("/"):
        raise NotPossible(
            f"{prefix} is a symbolic link in the judged tree, so nothing can be judged there",
            hint="the project is a directory; undo the link",
        )
    os.makedirs(directory, exist_ok=True)
    return directory


def sweep(packet: Packet) -> None:
    """Remove the rooms whose processes were killed."""
    for room in room_places.rooms_of(packet):
        _remove(room)


def _remove(room: str) -> None:
    remove_tree(_temporary(room))
    # Last: `sweep` finds the temporary directory by the name of the room.
    remove_tree(room)


def _temporary(room: str) -> str:
    """The temporary directory of a room."""
    return os.path.join(_TEMPORARY, f"hf-{sha256(os.path.basename(room).encode())[:16]}")


def _check_out(trees: Trees, base: Base, tree: str, top: str, *, old_tree: str, indexes: str) -> str:
    """Write the files of a tree, those of nested repositories included. Returns the path of the index.

    Files that are as in the old tree get the attributes that they had there: an agent may not change the
    bytes of a test by a new `.gitattributes`. `indexes` is the folder for indexes of git.
    """
    index = os.path.join(indexes, f"index.{os.urandom(8).hex()}")
    trees.check(tree)
    trees.run(["read-tree", tree], work_tree=top, index=index)
    if old_tree and (changed := _with_changed_attributes(trees, old_tree, tree)) is not None:
        _check_out_unchanged(trees, (old_tree, tree), top, changed, indexes=indexes)
        args, paths = ["checkout-index", "-f", "-u", "-z", "--stdin"], git.listing(sorted(changed))
    else:
        args, paths = ["checkout-index", "-a", "-f", "-u"], b""
    done = trees.call(args, work_tree=top, index=index, stdin=paths, allowed=(0, 1, 128))
    links = git.gitlinks(trees.run(["ls-files", "-s", "-z"], work_tree=top, index=index))
    old_links = _gitlinks(trees, old_tree) if links and old_tree else {}
    if done.returncode:
        missing = git.names(trees.run(["ls-files", "-z", "-d"], work_tree=top, index=index))
        _explain(base, missing, done.stderr)
    for path, commit in links:
        inner = os.path.join(top, path)
        if trees.has(commit) and not os.path.islink(inner):
            os.makedirs(inner, exist_ok=True)
            trees.check(trees.tree_of(commit), commit)
            before = old_links.get(path, "")
            old = trees.tree_of(before) if before and trees.has(before) else ""
            atomic.forget(
                _check_out(trees, base, trees.tree_of(commit), inner, old_tree=old, indexes=indexes)
            )
    return index


def _gitlinks(trees: Trees, tree: str) -> dict[str, str]:
    return dict(git.gitlinks(trees.run(["ls-tree", "-r", "-z", "--full-tree", tree])))


def _with_changed_attributes(trees: Trees, old_tree: str, tree: str) -> set[str] | None:
    """All files of a tree that changed, if attributes did; None if they did not."""
    args = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", old_tree, tree, "--"]
    changed = set(git.names(trees.run(args)))
    return changed if any(os.path.basename(path) == _ATTRIBUTES for path in changed) else None


def _check_out_unchanged(
    trees: Trees, both: tuple[str, str], top: str, changed: set[str], *, indexes: str
) -> None:
    """Write the files that did not change from one tree to another, with the old attributes in the index."""
    old_tree, tree = both
    index = os.path.join(indexes, f"index.{os.urandom(8).hex()}")
    null_id = "0" * len(tree)
    rules = {path for path in changed if os.path.basename(path) == _ATTRIBUTES}
    lines = [f"0 {null_id}\t{path}" for path in sorted(rules)]
    old = git.names(trees.run(["ls-tree", "-r", "-z", "--full-tree", old_tree]))
    lines += [entry for entry in old if entry.partition("\t")[2] in rules]
    try:
        trees.run(["read-tree", tree], work_tree=top, index=index)
        trees.run(
            ["update-index", "-z", "--index-info"], work_tree=top, index=index, stdin=git.listing(lines)
        )
        listed = git.names(trees.run(["ls-files", "-z"], work_tree=top, index=index))
        paths = git.listing(path for path in listed if path not in changed)
        args = ["checkout-index", "-f", "-z", "--stdin"]
        trees.call(args, work_tree=top, index=index, stdin=paths, allowed=(0, 1, 128))
    finally:
        atomic.forget(index)


def _explain(base: Base, missing: list[str], stderr: bytes) -> None:
    """Some files could not be written. In a sparse or partial clone the user does not have them either."""
    lost = [name for name in missing if os.path.lexists(os.path.join(base.place.top, name))]
    if lost or not missing:
        text = " ".join(stderr.decode("utf-8", "replace").split())[:300]
        raise GitFailed(f"cannot check out {lost[0] if lost else 'the tree'} in a clean room: {text}")


def _make_repository(trees: Trees, base: Base, top: str, index: str) -> None:
    """Make the room a repository, because commands use git. It borrows all objects."""
    git_dir = os.path.join(top, ".git")
    kind = trees.settings.values.get("extensions.objectformat", "sha1")
    extension = f"[extensions]\n\tobjectFormat = {kind}\n" if kind != "sha1" else ""
    config = f"[core]\n\trepositoryFormatVersion = {int(bool(extension))}\n\tbare = false\n{extension}"
    head = base.commit or "ref: refs/heads/main"
    try:
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
            os.makedirs(os.path.join(git_dir, name), mode=0o700)
        atomic.write(os.path.join(git_dir, "config"), config.encode(), durable=False)
        # Relative to the objects. Where the room is mounted over the project, absolute paths lead nowhere.
        names = [f"../borrowed/{at}\n" for at in range(len(trees.stores))]
        atomic.write(os.path.join(git_dir, "objects/info/alternates"), "".join(names).encode(), durable=False)
        atomic.write(os.path.join(git_dir, "HEAD"), f"{head}\n".encode(), durable=False)
        if tags := _tags(base):
            atomic.write(os.path.join(git_dir, "packed-refs"), tags, durable=False)
        os.replace(index, os.path.join(git_dir, "index"))
    except OSError as error:
        atomic.storage_failed(error, f"cannot create the clean room {top}")


def _tags(base: Base) -> bytes:
    """The tags of the user's repository, by which many builds find their version."""
    repository = base.place.repository
    if repository is None:
        return b""
    return git.run(["for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"], of=repository)


def _borrowed(trees: Trees) -> list[tuple[str, str]]:
    return [(f"{_BORROWED}/{at}", store) for at, store in enumerate(trees.stores)]


def _large_files(trees: Trees, base: Base, tree: str) -> tuple[tuple[str, str], ...]:
    """The files of which the tree has only a note."""
    found: list[tuple[str, str]] = []
    for entry in git.names(trees.run(["ls-tree", "-r", "-l", "-z", "--full-tree", tree])):
        facts, _, path = entry.partition("\t")
        size = facts.split()[3]
        if not size.isdigit() or int(size) > _NOTE_BYTES:
            continue
        full = os.path.join(os.path.realpath(base.place.top), path)
        # Not through a directory that an agent replaced by a link, and no file of which the tree has no note.
        if (
            is_large(full)
            and os.path.realpath(os.path.dirname(full)) == os.path.dirname(full)
            and trees.run(["cat-file", "blob", facts.split()[2]]) == note_of(os.lstat(full))
        ):
            found.append((path, full))
    return tuple(found)
