"""The worktree of a task that has not begun: always made anew, whatever is at its place.

Nobody works in a worktree before the journal has its start. So what is there was left by a chore that was
killed, or an agent planted it: it would count as the commit, and no diff would show it. An agent of another
project can also change files while they are checked out. So the first snapshot must be the commit's tree,
and nothing else may be there, also nothing that git ignores.
"""

from __future__ import annotations

import os
import re
import stat
import sys

from holdfast import files
from holdfast.errors import HoldfastError, NotPossible
from holdfast.store import atomic
from holdfast.store.directories import remove_tree
from holdfast.store.no_links import is_directory
from holdfast.workspace import git, task_worktree
from holdfast.workspace.current_tree import take_snapshot
from holdfast.workspace.project_tree import ProjectTree, locate
from holdfast.workspace.snapshots.changes import few
from holdfast.workspace.snapshots.trees import Trees
from holdfast.workspace.worktrees import removal, worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import TaskSpec
    from holdfast.store.layout import Packet
    from holdfast.workspace.worktrees.worktree import Worktree

_PIECE = 1 << 20
_CANDIDATE = re.compile(r"(.+)\.c([1-9][0-9]?)")


def make(
    packet: Packet, spec: TaskSpec, *, commit: str | None, since: str = ""
) -> tuple[Worktree, ProjectTree, str]:
    """Make the worktree at a commit (None: that of the project), and take its first snapshot.

    `since` is as in `snapshot.take`. Raises NotPossible if it does not have the files of the commit.
    """
    tree = worktree.new_record(packet, spec.project_dir, commit)
    _refuse_of_another(packet)
    _clear(tree)
    worktree.refuse_branch_of_others(tree)
    worktree.write_record(packet, tree)
    # Neither in the home nor in the repository: what git writes there is what we read.
    folder = git.new_directory()
    try:
        index = os.path.join(folder, "index")
        worktree.add(tree, index=index)
        worktree.ready(tree)
        project, trees = locate(tree.directory), Trees.of(packet)
        trees.make(project)
        if project.repository is not None:
            trees.begin_with(project.top, index)
        taken = take_snapshot(packet, project, spec, since=since)
        _refuse_changed(tree, project, (trees, taken), index=index)
        return tree, project, taken
    except OSError as error:
        atomic.storage_failed(error, f"cannot make the worktree {tree.path}")
    finally:
        remove_tree(folder)


# ── what is there already ──


def _refuse_of_another(packet: Packet) -> None:
    """Raises NotPossible if the place is that of another task: `it.c1`, and the first candidate of `it`."""
    path, home = task_worktree.path_of(packet), packet.home
    other, named = home.packet(packet.worktree_name), _CANDIDATE.fullmatch(packet.task_id)
    if packet.worktree_name == packet.task_id:
        if named is None:
            return
        other = home.packet(named[1]).candidate(int(named[2]))
    if os.path.lexists(path) and os.path.lexists(other.worktree):
        raise NotPossible(
            f"{path} is the worktree of {other.task_id}", hint="use another id for one of the two tasks"
        )


def _clear(tree: Worktree) -> None:
    """Remove what has no work, and put everything else aside: it may be a user's."""
    if os.path.realpath(folder := os.path.dirname(tree.path)) != folder:
        task_worktree.refuse_linked(tree)
    while (admin := worktree.admin_of(tree)) is not None or os.path.lexists(tree.path):
        if not worktree.is_unfinished(tree) and not _has_no_work(tree):
            _put_aside(tree, admin)
            continue
        if is_directory(tree.path):
            remove_tree(tree.path)
        worktree.clean_up(tree)
    worktree.clean_up(tree)


def _has_no_work(tree: Worktree) -> bool:
    if os.path.lexists(tree.path) and not is_directory(tree.path):
        return False
    try:
        removal.check_removable(tree)
    except HoldfastError:
        return False
    return True


def _put_aside(tree: Worktree, admin: str | None) -> None:
    """Move a worktree, as `git worktree move` does; it is on no branch then, because the task needs its
    own."""
    place = atomic.aside_name(tree.path)
    if admin is not None:
        if worktree.branch_of(tree) == tree.branch:
            head = worktree.tip_of(tree) or tree.commit
            atomic.write(os.path.join(admin, "HEAD"), f"{head}\n".encode(), durable=True)
        atomic.write(os.path.join(admin, "gitdir"), os.fsencode(f"{place}/.git\n"), durable=True)
    if os.path.lexists(tree.path):
        os.rename(tree.path, place)
        print(f"holdfast: what was at {tree.path} before the task began is at {place}", file=sys.stderr)


# ── what it has ──


def _refuse_changed(tree: Worktree, project: ProjectTree, snapshot: tuple[Trees, str], *, index: str) -> None:
    """Raises NotPossible unless the worktree has the files of its commit and no others."""
    trees, taken = snapshot
    own = worktree.inside(tree).evolve(index=index)
    paths = git.names(git.run(["ls-files", "-z", "-o"], of=own))
    args = ["ls-files", "-z", "--", tree.prefix or "."]
    if git.run(args, of=own):
        if (project.top, project.git_dir) != (tree.path, os.path.realpath(own.git_dir)):
            paths.append(".git")
        elif git.head(own) != tree.commit:
            raise _changed(tree, f"another commit ({git.head(own)}) is checked out")
        else:
            args = [
                "diff-tree",
                "-r",
                "-z",
                "--no-renames",
                "--name-only",
                trees.tree_of(tree.commit),
                taken,
                "--",
            ]
            paths += git.names(trees.run(args))
    else:
        # No file of the project is in the commit, so that it is recorded without git.
        paths += git.names(git.run(["diff-files", "-z", "--name-only"], of=own))
        names = git.names(trees.run(["ls-tree", "-r", "-z", "--name-only", "--full-tree", taken]))
        paths += [tree.prefix + name for name in names]
    if found := _not_as_checked_out(own, sorted(set(paths)), os.path.dirname(index)):
        raise _changed(tree, f"{few(found)} is not as in the commit")


def _changed(tree: Worktree, what: str) -> NotPossible:
    return NotPossible(
        f"the new worktree {tree.path} does not have the files of {tree.commit[:12]}: {what}",
        hint="another program or agent has written there; 'holdfast resume' makes it again",
    )


def _not_as_checked_out(own: git.Repository, paths: list[str], folder: str) -> list[str]:
    """Those of the paths at which git would write something else.

    A commit can have content that no file gives back (line ends that `core.autocrlf` would not have stored):
    then snapshots differ from it, although nobody has changed anything.
    """
    if not paths:
        return []
    expected = os.path.join(folder, "files")
    args = ["checkout-index", "-q", "-z", "--stdin", f"--prefix={expected}/"]
    git.call(args, of=own, stdin=git.listing(paths), allowed=(0, 1, 128))
    return [path for path in paths if not _is_same(os.path.join(own.top, path), os.path.join(expected, path))]


def _is_same(path: str, other: str) -> bool:
    try:
        if os.path.islink(path) or os.path.islink(other):
            return os.readlink(path) == os.readlink(other)
        with files.stream(path) as one, files.stream(other) as two:
            modes = [os.fstat(file.fileno()).st_mode & stat.S_IXUSR for file in (one, two)]
            while (piece := one.read(_PIECE)) == two.read(_PIECE):
                if not piece:
                    return modes[0] == modes[1]
    except OSError:
        return False
    return False
