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
from holdfast.store.directories import keep_only, remove_tree, restore_modes
from holdfast.store.no_links import is_directory
from holdfast.workspace import git, task_worktree
from holdfast.workspace.branch_links import refuse_branch_links
from holdfast.workspace.snapshots import genuine
from holdfast.workspace.snapshots.trees import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet
    from holdfast.workspace.task_worktree import Worktree

_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
#: In a store of objects, what git itself writes. All else is removed.
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
    restore_modes(store)  # its agent may have hidden it
    for name in ("objects", "objects/info", "objects/pack", "refs", "logs", "lent"):
        _make_plain(os.path.join(store, name))
    for name in ("refs/heads/holdfast", "logs/refs/heads/holdfast"):
        os.makedirs(os.path.join(tree.common_dir, name), exist_ok=True)
    lines = [quoted(f"{store}/lent"), *_alternates(tree)]
    atomic.write(f"{store}/objects/info/alternates", b"\n".join(lines) + b"\n", durable=False)
    real, brought, tip = _tip(tree), _name_in(f"{store}/brought"), _name_in(_private(packet))
    # Commits that were not brought yet stay: the sandbox was killed.
    if real is not None and real != brought and tip in (None, brought):
        # Its first sandbox, or the branch was moved since.
        if is_directory(_private(packet)):
            remove_tree(_private(packet))
        atomic.write(_private(packet), real.encode() + b"\n", durable=False)
        failpoint("committed.lent")
        atomic.write(f"{store}/brought", real.encode() + b"\n", durable=False)


def bring(packet: Packet, tree: Worktree) -> str:
    """After a sandbox: bring its commits, and what its index needs. Nothing, while a sandbox lives.

    Returns a sentence if commits are on another branch than the task's. Raises GitFailed if something is
    missing or broken; the branch stays where it was.
    """
    store = packet.sandbox_git
    if not is_directory(f"{store}/objects"):
        return ""
    lock = os.open(store, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with git.SharedDirectories():
            return _bring(packet, tree)
    except BlockingIOError:
        return ""
    finally:
        os.close(lock)


def _bring(packet: Packet, tree: Worktree) -> str:
    store, inside, main = packet.sandbox_git, task_worktree.inside(tree), task_worktree.main_of(tree)
    objects, known = f"{store}/objects", git.settings.read(main)
    for folder in (store, inside.git_dir):
        restore_modes(folder)  # its agent may have hidden what it committed
    clean(objects)
    _make_plain(f"{objects}/info")
    lent = quoted(os.path.join(tree.common_dir, "objects"))
    atomic.write(f"{objects}/info/alternates", lent + b"\n", durable=False)
    target = git.Target(objects=objects)
    tip = _name_in(_private(packet))
    heads = {tip, *(_name_in(os.path.join(inside.git_dir, name)) for name in _HEADS), *_logged(inside)}
    names = "".join(f"{name}^{{commit}}\n" for name in sorted(filter(None, heads))).encode()
    answers = git.work_on(target, ["cat-file", "--batch-check"], known=known, cwd=store, stdin=names).stdout
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
    brought, note = _name_in(f"{store}/brought"), ""
    # What was brought before is not brought again: the branch may have moved on since.
    if tip is not None and tip.encode() in found and tip != brought:
        # Fails if an object of its history is missing. (`git fetch` checks the same.)
        git.run(
            ["rev-list", "--objects", "--quiet", tip, f"^{tree.commit}", "--"], of=main, cwd=tree.common_dir
        )
        note = _move_branch(tree, tip, brought)
        failpoint("committed.branch_moved")
    if tip is not None:
        atomic.write(f"{store}/brought", tip.encode() + b"\n", durable=False)
    return note


def _move_branch(tree: Worktree, tip: str, brought: str | None) -> str:
    """Move the task's branch to the tip of the sandbox, unless that would drop commits of others.

    They are there if the branch is not where it was `brought`. If neither tip has the other then, that of the
    sandbox gets a branch of its own. Returns a sentence about it.
    """
    real, branch, note = _tip(tree), tree.branch, ""
    if real is not None and real != brought:
        if _is_ancestor(tree, tip, real):
            return ""
        if not _is_ancestor(tree, real, tip):
            branch = f"{tree.branch}-{tip[:12]}"
            note = f"{tree.branch} was moved meanwhile, so the commits of the agent are on {branch}"
    refuse_branch_links(task_worktree.main_of(tree), branch)
    # With the old value, nothing is lost if the branch is moved right now. A branch of its own (`note`) may
    # exist already.
    old = [] if note else [real or "0" * len(tip)]
    words = ["update-ref", "--no-deref", "-m", "holdfast: from the sandbox"]
    git.run([*words, f"refs/heads/{branch}", tip, *old], of=task_worktree.main_of(tree), cwd=tree.common_dir)
    return note


def _is_ancestor(tree: Worktree, old: str, new: str) -> bool:
    words = ["merge-base", "--is-ancestor", old, new]
    main = task_worktree.main_of(tree)
    return git.call(words, of=main, cwd=tree.common_dir, allowed=(0, 1)).returncode == 0


def _logged(inside: git.Repository) -> set[str]:
    """The commits that were once checked out: those that it amended, for example."""
    log = atomic.read_small(os.path.join(inside.git_dir, "logs", "HEAD"), _LOG_BYTES) or b""
    words = [word for line in log.split(b"\n") for word in line.split(b" ", 2)[:2]]
    return {name for word in words if _NAME.fullmatch(name := os.fsdecode(word))}


def clean(objects: str) -> None:
    """Leave only what git writes: no link, nothing that tells git about other objects or reachability."""
    genuine.clean_folders(atomic.read_own_folder(objects), ("pack",), _clean_folder)


def _clean_folder(name: str, folder: int) -> None:
    allowed = _PACKED if name == "pack" else genuine.LOOSE
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
    keep_only(folder, *(entry.name for entry in found if allowed.fullmatch(entry.name)))


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


def _tip(tree: Worktree) -> str | None:
    """The tip of the task's branch; None if there is no such branch, or it only refers to another one."""
    ref = f"refs/heads/{tree.branch}"
    # Almost always it is a file of its own. Else it is packed, or refs are stored in another way.
    if (name := _name_in(os.path.join(tree.common_dir, ref))) is not None:
        return name
    words = ["for-each-ref", "--format=%(refname) %(objectname) %(symref)", ref]
    listed = git.run(words, of=task_worktree.main_of(tree), cwd=tree.common_dir)
    found = [line.split() for line in git.text(listed).split("\n")]
    return next((words[1] for words in found if words[:1] == [ref] and len(words) == 2), None)


def _name_in(path: str) -> str | None:
    """The object that a file names; None if it names none."""
    text = git.text(atomic.read_small(path, _SMALL) or b"")
    return text if _NAME.fullmatch(text) else None
