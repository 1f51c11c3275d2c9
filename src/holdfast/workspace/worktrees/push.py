"""Pushing the work of a task's worktree as its branch. The user's tree and branches do not change."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError, NotPossible
from holdfast.failpoints import failpoint
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.redact import Redactor
from holdfast.store.directories import unreadable
from holdfast.workspace import git, lock
from holdfast.workspace import scope as scopes
from holdfast.workspace.git import remote as remotes
from holdfast.workspace.worktrees import apply, local_remote, submodules, unmerged, worktree
from holdfast.workspace.worktrees.unjudged import changed_since_gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Home, Packet
    from holdfast.workspace.git.remote import Remote
    from holdfast.workspace.worktrees.worktree import Worktree


class Pushed(Record):
    """What was pushed."""

    branch: str
    commit: str
    remote: str
    url: str
    #: `owner/name` at a forge; empty if the address has no such form.
    repository: str
    #: The branch was there already, with another commit or the same.
    was_there: bool
    paths: tuple[str, ...]
    #: Files outside the scope, which were not pushed.
    left_out: tuple[str, ...] = ()
    #: Directories of the worktree that cannot be read: what is in them was not pushed.
    unreadable: tuple[str, ...] = ()
    #: Files in the scope that changed after the last gate passed: no gate saw them as they are.
    unjudged: tuple[str, ...] = ()


def push(packet: Packet, *, goal: str, remote: str | None, is_confirmed: bool) -> Pushed:
    """Commit what is in the scope, and make it the task's branch at a remote.

    Raises NotPossible if there is nothing to push, if others pushed to the branch, or if the address of the
    remote may be an agent's; `is_confirmed`: the user has seen it.
    """
    tree = apply.complete_worktree(packet)
    place = remotes.find(worktree.main_of(tree), remote)
    _check_place(packet, tree, place, is_confirmed=is_confirmed)
    return _locked(packet, tree, place, goal)


def push_to(packet: Packet, place: Remote, *, goal: str) -> Pushed:
    """The same to an address that was recorded when the task was created. No agent can change it."""
    tree = apply.complete_worktree(packet)
    refuse_agents(packet.home, place, tree.main, tree.path)
    return _locked(packet, tree, place, goal)


def _locked(packet: Packet, tree: Worktree, place: Remote, goal: str) -> Pushed:
    held = lock.acquire(packet.home, tree.path, role="pr")
    try:
        with git.SharedDirectories():
            return _push(packet, tree, place, goal)
    finally:
        held.release()


def _push(packet: Packet, tree: Worktree, place: Remote, goal: str) -> Pushed:
    scope = scopes.of(packet)
    title = " ".join(Redactor(dict(os.environ))(goal).split())[:72] or packet.task_id
    apply.squash_reverted(tree, scope)
    left_out = unmerged.commit_all(tree, f"{title}\n\nholdfast task {packet.task_id}\n", scope)
    head = worktree.head_of(tree)
    if head is None or worktree.is_ancestor(tree, head, tree.commit):
        outside = f"; outside its scope: {', '.join(left_out[:5])}" if left_out else ""
        raise NotPossible(f"{packet.task_id} has nothing to push{outside}", hint="nothing was pushed")
    seen = apply.refuse_unseen(packet, tree, head, scope)
    if submodules.unmerged(tree):
        raise NotPossible(
            f"{packet.task_id} has commits in submodules, which must be pushed first",
            hint=f"'holdfast apply {packet.task_id}' copies them into your repositories",
        )
    path = remotes.on_this_machine(place)
    main, local = worktree.main_of(tree), local_remote.at(path) if path is not None else None
    if local is not None:
        old = local_remote.tip(local, tree.branch)
    else:
        old = remotes.tip(main, place, tree.branch)
    if old is not None and not _is_ours(tree, old, head):
        raise NotPossible(
            f"{tree.branch} at {place.url} has commits that are not of this task: {old[:12]}",
            hint="nothing was pushed; merge those commits first, or remove them there",
        )
    if old != head:
        if local is not None:
            local_remote.push(main, local, commit=head, branch=tree.branch, instead_of=old)
        else:
            remotes.push(main, place, commit=head, branch=tree.branch, instead_of=old)
        failpoint("pr.pushed")
    names = git.names(git.run(["diff", "--name-only", "-z", tree.commit, head, "--"], of=main))
    return Pushed(
        branch=tree.branch,
        commit=head,
        remote=place.name,
        url=place.url,
        repository=place.repository,
        was_there=old is not None,
        paths=tuple(names),
        left_out=tuple(left_out),
        unreadable=unreadable(tree.path),
        unjudged=changed_since_gate(packet, seen),
    )


def _is_ours(tree: Worktree, commit: str, head: str) -> bool:
    """Whether a commit at the remote was pushed from here: it is in the new one, or was the branch before."""
    main = worktree.main_of(tree)
    if git.call(["cat-file", "-e", f"{commit}^{{commit}}"], of=main, allowed=(0, 1, 128)).returncode:
        return False
    if worktree.is_ancestor(tree, commit, head):
        return True
    done = git.call(["rev-list", "-g", f"refs/heads/{tree.branch}", "--"], of=main, allowed=(0, 128))
    return commit in done.stdout.decode().split()


def _projects(home: Home) -> set[str]:
    """Where agents of this home have worked: the repositories of its tasks."""
    found: set[str] = set()
    for task_id in load.task_ids(home):
        try:
            project = load.read_manifest(home.packet(task_id)).get("project_dir")
            repository = git.find(str(project)) if project else None
        except (HoldfastError, OSError, ValueError):
            continue  # one bad packet
        if repository is not None:
            found.add(repository.top)
    return found


def refuse_agents(home: Home, place: Remote, *directories: str) -> None:
    """Refuse a remote in a directory of agents: these, or that of another task. Raises NotPossible."""
    path = remotes.on_this_machine(place)
    if path is None:
        return
    real = os.path.realpath(path) + "/"
    for root in (*directories, home.path, *_projects(home)):
        if real.startswith(os.path.realpath(root) + "/"):
            raise NotPossible(
                f"the remote {place.name} is in a directory of agents: {path}",
                hint="its hooks would run; push there with git if that is right",
            )


def _check_place(packet: Packet, tree: Worktree, place: Remote, *, is_confirmed: bool) -> None:
    """An agent can write the repository's configuration, and so the address. Raises NotPossible."""
    refuse_agents(packet.home, place, tree.main, tree.path)
    if is_confirmed:
        return
    created = clock.parse_iso(load.fold(packet).created_at)
    # Settings are also in files that others include, such as one in the project, and in `config.worktree`.
    if any(_changed_at(path) > created for path in git.settings.files_of(worktree.main_of(tree))):
        raise NotPossible(
            f"the repository's settings changed after the task was created; it would push to {place.url}",
            hint="if that is your remote, add --yes",
        )


def _changed_at(path: str) -> float:
    try:
        # Unlike st_mtime, no process can set it. For a link, those of the link and of its target count.
        return max(os.lstat(path).st_ctime, os.stat(path).st_ctime)
    except OSError:
        return clock.now()
