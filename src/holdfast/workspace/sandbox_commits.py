"""What sandboxed agents commit in a worktree: private git data, brought into the user's repository by us.

    <packet>/sandbox/git/<worktree>/objects in the sandbox, it is in the place of the repository's objects
                                 refs       in the place of refs/heads/holdfast: the task's branch alone
                                 logs       in the place of its logs
                                 lent       where the sandbox shows the user's objects, read-only
                                 brought    the tip that was brought last

An agent can write anything there: objects whose content has another name, links, forged indexes. So objects
are brought as a pack, and git names each by its content (`index-pack`, `unpack-objects`). The branch moves
only if everything that it needs is in the user's repository then. Existing objects are never replaced. After
a kill all of this is done again, at the latest by `apply`.
"""

from __future__ import annotations

import fcntl
import os
import re

from holdfast.failpoints import failpoint
from holdfast.store import atomic
from holdfast.store.directories import remove_tree
from holdfast.store.no_links import is_directory
from holdfast.workspace import git, task_worktree
from holdfast.workspace.snapshots.trees import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet
    from holdfast.workspace.task_worktree import Worktree

_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
#: In a store of objects, what git itself writes. All else is removed.
_FOLDER, _LOOSE = re.compile(r"[0-9a-f]{2}"), re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
_PACKED = re.compile(r"pack-[0-9a-f]+\.(pack|idx)")
#: Files of a worktree's git directory that name a commit.
_HEADS = (
    *("HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"),
    *(f"rebase-{kind}/{name}" for kind in ("merge", "apply") for name in ("onto", "orig-head")),
)
#: With more objects, a pack is kept as it is.
_FEW = 200
_SMALL, _LOG_BYTES = 1 << 12, 1 << 20


def lend(packet: Packet, tree: Worktree) -> None:
    """Before a sandbox: make the private git data of a worktree, with the branch as it is now."""
    store = packet.sandbox_git
    for folder in (os.path.dirname(store), store):
        atomic.make_directory(folder)
    for name in ("objects", "objects/info", "objects/pack", "refs", "logs", "lent"):
        _make_plain(os.path.join(store, name))
    for name in ("refs/heads/holdfast", "logs/refs/heads/holdfast"):
        os.makedirs(os.path.join(tree.common_dir, name), exist_ok=True)
    lines = [quoted(f"{store}/lent"), *_alternates(tree)]
    atomic.write(f"{store}/objects/info/alternates", b"\n".join(lines) + b"\n", durable=False)
    real = atomic.read_small(_real(tree), _SMALL)
    brought = atomic.read_small(f"{store}/brought", _SMALL)
    if real is not None and (brought is None or real.strip() != brought.strip()):
        # Its first sandbox, or somebody has moved the branch since.
        if is_directory(_private(packet)):
            remove_tree(_private(packet))
        atomic.write(_private(packet), real, durable=False)
        failpoint("committed.lent")
        atomic.write(f"{store}/brought", real, durable=False)


def bring(packet: Packet, tree: Worktree) -> None:
    """After a sandbox: bring its commits, and what its index needs. Nothing, while a sandbox lives.

    Raises GitFailed if something is missing or broken; the branch stays where it was.
    """
    store = packet.sandbox_git
    if not is_directory(f"{store}/objects"):
        return
    lock = os.open(store, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with git.Session():
            _bring(packet, tree)
    except BlockingIOError:
        return
    finally:
        os.close(lock)


def _bring(packet: Packet, tree: Worktree) -> None:
    store, inside, main = packet.sandbox_git, task_worktree.inside(tree), task_worktree.main_of(tree)
    objects, known = f"{store}/objects", git.settings.read(main)
    _clean(objects)
    _make_plain(f"{objects}/info")
    lent = quoted(os.path.join(tree.common_dir, "objects"))
    atomic.write(f"{objects}/info/alternates", lent + b"\n", durable=False)
    target = git.Target(objects=objects)
    tip = _name_in(_private(packet))
    heads = {tip, *(_name_in(os.path.join(inside.git_dir, name)) for name in _HEADS), *_logged(inside)}
    asked = "".join(f"{name}^{{commit}}\n" for name in sorted(filter(None, heads))).encode()
    answers = git.work_on(target, ["cat-file", "--batch-check"], known=known, cwd=store, stdin=asked).stdout
    found = [words[0] for line in answers.split(b"\n") if (words := line.split())[1:2] == [b"commit"]]
    revisions = b"\n".join([*found, b"^" + tree.commit.encode(), b""])
    args = [
        "pack-objects",
        "--revs",
        "--indexed-objects",
        "--local",
        "--missing=allow-any",
        "--stdout",
        "-q",
    ]
    index = {"GIT_INDEX_FILE": os.path.join(inside.git_dir, "index")}
    pack = git.work_on(target, args, known=known, cwd=store, env=index, stdin=revisions).stdout
    count = int.from_bytes(pack[8:12], "big")
    if count:
        how = ["unpack-objects", "-q", "--strict"] if count <= _FEW else ["index-pack", "--stdin", "--strict"]
        git.run(how, of=main, stdin=pack, cwd=tree.common_dir)
        failpoint("committed.unpacked")
    if tip is not None and tip.encode() in found and tip != _name_in(_real(tree)):
        # As `git fetch` does: all that it needs is there.
        git.run(["rev-list", "--objects", "--quiet", tip, f"^{tree.commit}"], of=main, cwd=tree.common_dir)
        reason = ("-m", "holdfast: from the sandbox")
        git.run(["update-ref", *reason, f"refs/heads/{tree.branch}", tip], of=main, cwd=tree.common_dir)
        failpoint("committed.branch_moved")
    if tip is not None:
        atomic.write(f"{store}/brought", tip.encode() + b"\n", durable=False)


def _logged(inside: git.Repository) -> set[str]:
    """The commits that were once checked out: those that it amended, for example."""
    log = atomic.read_small(os.path.join(inside.git_dir, "logs", "HEAD"), _LOG_BYTES) or b""
    words = [word for line in log.split(b"\n") for word in line.split(b" ", 2)[:2]]
    return {name for word in words if _NAME.fullmatch(name := os.fsdecode(word))}


def _clean(objects: str) -> None:
    """Leave only what git writes: no link, nothing that tells git about other objects or reachability."""
    for name in os.listdir(objects):
        path = os.path.join(objects, name)
        allowed = _PACKED if name == "pack" else _LOOSE
        if not is_directory(path) or not (name == "pack" or _FOLDER.fullmatch(name)):
            _remove(path)
            continue
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False) or not allowed.fullmatch(entry.name):
                    _remove(entry.path)


def _remove(path: str) -> None:
    if is_directory(path):
        remove_tree(path)
    else:
        os.unlink(path)


def _make_plain(path: str) -> None:
    """A directory; something else in its place is removed."""
    if os.path.lexists(path) and not is_directory(path):
        os.unlink(path)
    os.makedirs(path, mode=0o700, exist_ok=True)


def _alternates(tree: Worktree) -> list[bytes]:
    """The stores of which the user's repository borrows."""
    objects = os.path.join(tree.common_dir, "objects")
    lines = (atomic.read_small(f"{objects}/info/alternates", 1 << 16) or b"").split(b"\n")
    plain = (os.fsdecode(line) for line in lines if line and not line.startswith((b"#", b'"')))
    return [quoted(os.path.normpath(os.path.join(objects, path))) for path in plain]


def _private(packet: Packet) -> str:
    return os.path.join(packet.sandbox_git, "refs", packet.worktree_name)


def _real(tree: Worktree) -> str:
    return os.path.join(tree.common_dir, "refs", "heads", tree.branch)


def _name_in(path: str) -> str | None:
    """The object that a file names; None if it names none."""
    text = git.text(atomic.read_small(path, _SMALL) or b"")
    return text if _NAME.fullmatch(text) else None
