"""What changed in a worktree after its last gate: by a person, or by an agent of another task."""

from __future__ import annotations

from holdfast.packet import load
from holdfast.workspace import base as bases
from holdfast.workspace import scope as scopes
from holdfast.workspace.snapshots.changes import changed, within
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.task import Task
    from holdfast.store.layout import Packet


def changed_since_gate(packet: Packet, tree: str) -> tuple[str, ...]:
    """The files in the scope in which a tree differs from the one that the last gate passed.

    Nothing if no gate passed a tree.
    """
    judged = _judged(load.fold(packet))
    if not judged:
        return ()
    base, trees = bases.require(packet), Trees.of(packet)
    now, _ = within(trees, base.base_tree, tree, scope=scopes.of(packet), prefix=base.place.prefix)
    # If it is gone, nothing proves what was judged.
    old = judged if trees.has(judged) else base.base_tree
    return tuple(sorted({end for change in changed(trees, old, now) for end in change.ends}))


def _judged(task: Task) -> str:
    chosen = task.chosen.chosen if task.chosen is not None else ""
    other_candidates = {stage.name for stage in task.spec.stages if stage.candidate and stage.name != chosen}
    passed = [
        (gate.attempt, gate.tree)
        for name, state in task.stage_states.items()
        if (gate := state.gate_result) is not None and gate.tree and name not in other_candidates
        if gate.passed
    ]
    return max(passed, default=(0, ""))[1]
