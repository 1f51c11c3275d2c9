"""What a task changed in its workspace: as a patch, and file by file within limits."""

from __future__ import annotations

from functools import cached_property

from holdfast.errors import NotFound
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.store.directories import unreadable
from holdfast.workspace import base as bases
from holdfast.workspace import scope
from holdfast.workspace.current_tree import current_tree
from holdfast.workspace.snapshots import changes
from holdfast.workspace.snapshots.file_diffs import FileDiff, Limits, compare
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Home, Packet
    from holdfast.workspace.base import Base

SCHEMA = "holdfast.diff/1"


class Diff(Record):
    """What a task, one of its stages, or one of its candidates changed."""

    nested = {"files": FileDiff}

    schema: str = SCHEMA
    task_id: str
    stage: str | None = None
    candidate: str | None = None
    #: The directory in which it worked; paths are relative to the root of its tree.
    path: str
    old_tree: str
    new_tree: str
    #: What a reader must know about what was compared, such as that changes of others are included.
    note: str = ""
    #: Changed files outside the task's scope, which are not in `files`.
    left_out: tuple[str, ...] = ()
    #: Directories that cannot be read: what is in them is not compared.
    unreadable: tuple[str, ...] = ()
    #: Lines that were added and deleted, in all files but binary ones.
    added: int = 0
    deleted: int = 0
    files: tuple[FileDiff, ...] = ()
    #: How many of these have no hunks because of a limit.
    files_left_out: int = 0


class Comparison:
    """Two trees of a task's workspace. Nothing is compared before it is asked for."""

    def __init__(self, packet: Packet, *, stage: str | None, candidate: str | None, everything: bool) -> None:
        self.packet, self.stage, self.candidate = packet, stage, candidate
        #: What a reader must know about the comparison; empty if it has the task's changes and no others.
        self.note = ""
        base = bases.read(packet)
        if base is None and stage is None and candidate is None:
            self._compare_plain(packet)
            return
        base, self._trees = bases.require(packet), Trees.of(packet)
        self._trees.borrow(base.place)
        if candidate is not None:
            self.old_tree, new = _of_candidate(packet, base, candidate)
        else:
            self.old_tree, new = _sides(packet, base, stage)
            if base.kind == "in_place" and stage is None:
                self.note = (
                    "compared with the files as they are now, so changes of others since the task started "
                    "are included"
                )
        self.path = base.place.directory
        limit = None if everything else scope.of(packet)
        #: The tree with the changes inside the scope, and the paths of the others.
        self.new_tree, self.left_out = changes.within(
            self._trees, self.old_tree, new, scope=limit, prefix=base.place.prefix
        )

    def _compare_plain(self, packet: Packet) -> None:
        from holdfast.workspace.plain_changes import PlainChanges

        # It keeps the store of its trees.
        self._plain = plain = PlainChanges(packet)
        self.path, self._trees, self.note = plain.directory, plain.trees, plain.note
        self.old_tree, self.new_tree, self.left_out = plain.old_tree, plain.new_tree, ()

    @cached_property
    def unreadable(self) -> tuple[str, ...]:
        """Directories of the workspace that cannot be read: what is in them is in no comparison."""
        return unreadable(self.path)

    @cached_property
    def changes(self) -> tuple[changes.Change, ...]:
        """The changed paths."""
        return changes.changed(self._trees, self.old_tree, self.new_tree)

    def patch(self, *, is_for_reading: bool = False) -> bytes:
        """The difference for `git apply`, or with the files of a changed nested repository instead of it."""
        return changes.patch(self._trees, *self._sides(is_for_reading=is_for_reading))

    def stat(self) -> bytes:
        """The output of `git diff --stat`."""
        return changes.stat(self._trees, *self._sides(is_for_reading=True))

    def facts(self, limits: Limits | None = None) -> Diff:
        """The difference file by file."""
        sides = self._sides(is_for_reading=True)
        found = compare(self._trees, *sides, limits or Limits())
        return Diff(
            task_id=self.packet.task_id,
            stage=self.stage,
            candidate=self.candidate,
            path=self.path,
            old_tree=self.old_tree,
            new_tree=self.new_tree,
            note=self.note,
            left_out=self.left_out,
            unreadable=self.unreadable,
            added=sum(file.added or 0 for file in found),
            deleted=sum(file.deleted or 0 for file in found),
            files=found,
            files_left_out=sum(file.left_out in ("large", "limit") for file in found),
        )

    def _sides(self, *, is_for_reading: bool) -> tuple[str, str]:
        sides = self.old_tree, self.new_tree
        return changes.opened(self._trees, *sides) if is_for_reading else sides


def diff(
    home: Home,
    task: str,
    *,
    stage: str | None = None,
    candidate: str | None = None,
    everything: bool = False,
    limits: Limits | None = None,
) -> Diff:
    """What a task changed within its scope (with `everything`: anywhere).

    Raises NotFound for an unknown task, stage or candidate, and NotPossible for a task without a snapshot.
    """
    packet = load.find(home, task, archived=True)
    return Comparison(packet, stage=stage, candidate=candidate, everything=everything).facts(limits)


def _of_candidate(packet: Packet, base: Base, number: str) -> tuple[str, str]:
    """The task's start, and what its gate judged of a candidate; before that, its worktree now."""
    task = load.fold(packet)
    stages = {str(stage.candidate): stage.name for stage in task.spec.stages if stage.candidate}
    if number not in stages:
        numbers = ", ".join(stages) or "none"
        raise NotFound(f"{packet.task_id} has no candidate {number}", hint=f"its candidates: {numbers}")
    gate = task.stage_state(stages[number]).gate
    if gate is not None and gate.tree:
        return base.base_tree, gate.tree
    own = packet.candidate(int(number))
    return base.base_tree, current_tree(own, bases.require(own))


def _sides(packet: Packet, base: Base, stage: str | None) -> tuple[str, str]:
    """The two trees to compare: the task's start and now, or the starts of this stage and the next."""
    from holdfast.model import events as ev
    from holdfast.store import journal

    if stage is None:
        return base.base_tree, current_tree(packet, base)
    prepared = [event for _, event in journal.read(packet.journal) if isinstance(event, ev.WorkspacePrepared)]
    own = [at for at, event in enumerate(prepared) if event.stage == stage]
    if not own:
        names = ", ".join(dict.fromkeys(event.stage for event in prepared)) or "none yet"
        raise NotFound(
            f"{packet.task_id} has no snapshot of stage {stage!r}", hint=f"stages with a snapshot: {names}"
        )
    later = next((event for event in prepared[own[-1] :] if event.stage != stage), None)
    return prepared[own[-1]].tree, later.tree if later is not None else current_tree(packet, base)
