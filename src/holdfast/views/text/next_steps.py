"""What to do next about a task: `model.next_action` with facts from the task's files."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.model import next_action
from holdfast.model.next_action import NextAction, Suggestion
from holdfast.model.status import ENDS, Cause, Status
from holdfast.packet import load
from holdfast.store import admitted, atomic
from holdfast.store import lock as locks
from holdfast.store.layout import Packet
from holdfast.views.text import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAY_HAVE_FAILED = (Status.FAILED, Status.TIMEOUT, Status.ABANDONED, Status.INTERRUPTED)

#: Tasks of a fan-out that a hint names.
NAMED = 3
#: What works for archived tasks.
_OF_ARCHIVED = tuple(f"holdfast {verb} " for verb in ("logs", "show", "diff", "events", "rm"))


def read(
    packet: Packet,
    manifest: dict[str, Any],
    *,
    queue_state: str = "",
    held_by: str = "",
    is_runner_lost: bool = False,
    workspace: str = "",
) -> NextAction:
    """The next action of a task; for the parameters see `next_action.for_manifest`."""
    if manifest["status"] not in ENDS and not _is_ours(packet):
        adopt = Suggestion(command=f"holdfast resume --adopt {packet.task_id}", does="run it all the same")
        return NextAction(name="resume", why=admitted.objection(packet), steps=(adopt,))
    failure = _last_failure(packet) if manifest["status"] in _MAY_HAVE_FAILED else {}
    if not failure and manifest["status"] == Status.INTERRUPTED:
        failure = _failure_of_stage(manifest)
    action = next_action.for_manifest(
        manifest,
        failure=failure,
        login=_login(manifest) if _recommends_login(failure) else "",
        queue_state=queue_state,
        held_by=held_by,
        is_runner_lost=is_runner_lost,
        workspace=workspace,
        has_merged=_has_merged(packet, manifest),
    )
    if waiting := manifest.get("asking"):
        return _of_items(packet, waiting, action)
    if action.name == "apply" and manifest.get("labels"):
        from holdfast.packet import fan_out  # few tasks have labels

        if refused := fan_out.refusal(packet, manifest):
            action = _of_left_out(packet, refused, action, is_late=fan_out.is_late(packet, manifest))
    return _of_archived(packet, action) if packet.path.startswith(f"{packet.home.archive}/") else action


def _has_merged(packet: Packet, manifest: dict[str, Any]) -> bool:
    """Whether a failed fan-out merged the work of some items."""
    if manifest["status"] != Status.FAILED or not describe.is_fan_out(manifest):
        return False
    from holdfast.packet import fan_out  # few tasks are one

    return fan_out.accepted_merges(packet) > 0


def _is_ours(packet: Packet) -> bool:
    """Whether a runner has the task, or would run it."""
    return locks.is_held(packet.runner_lock) or admitted.is_admitted(packet)


def _of_items(packet: Packet, waiting: list[str], action: NextAction) -> NextAction:
    """For a fan-out that waits for a person: what to do about its tasks."""
    steps: list[Suggestion] = []
    for task_id in waiting[:NAMED]:
        item = packet.home.packet(task_id)
        try:
            steps += read(item, load.read_manifest(item)).steps[:1]
        except HoldfastError:
            continue  # it is gone
    why = f"its tasks wait for a person: {', '.join(waiting)}"
    return NextAction(name="answer", why=why, steps=tuple(steps), otherwise=action.otherwise)


def _of_left_out(packet: Packet, refused: str, action: NextAction, *, is_late: bool) -> NextAction:
    """For work that its fan-out did not merge: what to do instead of merging it alone."""
    parent, steps = packet.home.packet(packet.task_id.rpartition(".")[0]), list(action.steps[:1])
    try:
        if load.read_manifest(parent)["status"] in ENDS:
            does = "let its fan-out merge it" if is_late else "try what was left out again"
            retry = Suggestion(command=f"holdfast retry {parent.task_id}", does=does)
            steps.insert(0 if is_late else 1, retry)
    except HoldfastError:
        pass  # it is archived
    return NextAction(
        name="retry" if is_late else "read_diff",
        why=f"it was {refused}",
        steps=tuple(steps),
        otherwise=action.otherwise,
    )


def unapplied(packet: Packet) -> str:
    """`worktree` if there is work in it that was not applied yet."""
    if not os.path.exists(packet.worktree):
        return ""
    from holdfast.workspace.worktrees import apply

    try:
        return "worktree" if apply.is_needed(packet) else ""
    except (HoldfastError, OSError):
        return "worktree"


def need(packet: Packet) -> tuple[str, str]:
    """What an interrupted task needs, in a word, and the command to type; empty if that is not known."""
    try:
        action = read(packet, load.read_manifest(packet))
    except HoldfastError:
        return "question", ""  # its row in the index is newer than its files
    return next_action.need(action.name), action.command


def _of_archived(packet: Packet, action: NextAction) -> NextAction:
    """Without the commands that an archived task refuses."""
    if load.is_stripped(packet):
        show = Suggestion(command=f"holdfast show {packet.task_id} --summary", does="read its summary")
        remove = Suggestion(command=f"holdfast rm {packet.task_id}", does="remove its files")
        return action.evolve(steps=(show,), otherwise=(remove,))
    steps, otherwise = (
        tuple(step for step in steps if step.command.startswith(_OF_ARCHIVED))
        for steps in (action.steps, action.otherwise)
    )
    return action.evolve(steps=steps, otherwise=otherwise)


def _last_failure(packet: Packet) -> dict[str, Any]:
    """last_failure.json, which only tasks with a pipeline have."""
    try:
        return atomic.read_json(packet.last_failure) or {}
    except HoldfastError:
        return {}


def _failure_of_stage(manifest: dict[str, Any]) -> dict[str, Any]:
    """The same for a plain task that a failure stopped, such as a login that was refused."""
    if manifest.get("status_cause") != Cause.FAILURE:
        return {}
    from holdfast.pipeline.triage import BY_OUTCOME, remedy  # for this alone

    outcomes = [stage.get("outcome") for stage in manifest.get("stages") or ()]
    if not any(outcomes):
        return {"next_action": {"name": "fix_setup"}}  # it stopped before its first call
    outcome = next((each for each in reversed(outcomes) if each in BY_OUTCOME), None)
    return {"next_action": {"name": remedy(BY_OUTCOME[outcome], outcome)[0]}} if outcome is not None else {}


def _recommends_login(failure: dict[str, Any]) -> bool:
    action: dict[str, Any] = failure.get("next_action") or {}
    return action.get("name") == "login"


def _login(manifest: dict[str, Any]) -> str:
    from holdfast.agents import registry  # for this alone

    try:
        return registry.adapter(manifest["agent"]).capabilities.login
    except HoldfastError:
        return ""
