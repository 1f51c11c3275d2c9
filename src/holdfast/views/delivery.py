"""Deliver the work of a task: merge it into the project, or push it and open a pull request.

For all views: who may do it, in which state, and what the task's record says afterwards.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import CommandNotFound, HoldfastError, NotPossible
from holdfast.model.record import Record
from holdfast.model.status import ENDS, Status
from holdfast.packet import asker, fan_out, load
from holdfast.store import index
from holdfast.views import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.forge.gh import CiCheck, Forge
    from holdfast.store.layout import Packet
    from holdfast.workspace.worktrees.apply import Applied
    from holdfast.workspace.worktrees.push import Pushed

#: Time between two looks at the checks: first short, then longer.
_MIN_S, _MAX_S = 1.0, 30.0
#: How long a pull request may have no checks before that counts as having none.
_NO_CHECKS_S = 60.0
#: Between two looks whether a wait was cancelled.
_LOOK_S = 0.5


def apply(packet: Packet, *, as_patch: bool, force: bool, warn: Callable[[str], None]) -> Applied:
    """Merge the work in a task's worktree into the project, and let its runner record that.

    Work that a gate or its fan-out refused needs `force`. Raises ForPersons, NotPossible, LockHeld. A record
    that fails is only a warning: the files are changed.
    """
    from holdfast.workspace.worktrees.apply import apply

    asker.check(asker.find(), packet, "apply")
    manifest = load.derived(packet)
    check_ended(packet, manifest)
    if not force and (refused := refusal(packet, manifest)):
        raise NotPossible(
            refused,
            hint=f"'holdfast diff {packet.task_id}' shows it; "
            f"'holdfast apply --force {packet.task_id}' merges it anyway",
        )
    # A command line is not a commit title: it is long and may contain anything.
    goal = manifest.get("task_name") if manifest.get("agent") == "command" else manifest.get("goal")
    is_recorded = bool(manifest.get("applied"))
    applied = apply(packet, goal=goal or "", as_patch=as_patch, is_recorded=is_recorded)
    args = {
        "how": applied.how,
        "branch": applied.branch,
        "commit": applied.commit,
        "files": len(applied.paths),
    }
    try:
        requests.send_request(packet, "applied", args)
        index.update(packet.home, load.read_manifest(packet))
    except (HoldfastError, OSError) as error:
        warn(f"the task does not show yet that it was applied: {error}")
    return applied


def refusal(packet: Packet, manifest: dict[str, Any]) -> str:
    """Why the work of a task should not be merged: a gate, such as its acceptance, or its fan-out refused it.
    Empty if none did, or if that was only a warning. `manifest` is derived from the journal."""
    if left_out := fan_out.refusal(packet, manifest) or fan_out.sealed_refusal(packet, manifest):
        return f"{packet.task_id} was {left_out}"
    stages: list[dict[str, Any]] = manifest.get("stages") or []
    if manifest["status"] == Status.COMPLETED or all(stage.get("gate") != "failed" for stage in stages):
        return ""
    reason = f": {manifest['status_reason']}" if manifest["status_reason"] else ""
    return f"a gate refused the work of {manifest['task_id']}{reason}"


def check_ended(packet: Packet, manifest: dict[str, Any]) -> None:
    """Raises NotPossible for work that goes on."""
    state = manifest["status"]
    if state not in ENDS and state != Status.INTERRUPTED:
        raise NotPossible(
            f"{packet.task_id} has not ended: it is {state}",
            hint=f"'holdfast wait {packet.task_id}' waits for it, 'holdfast stop {packet.task_id}' stops it",
        )


# ── pull requests ──


class Published(Record):
    """Pushed work, and its pull request."""

    pushed: Pushed
    title: str
    body: str
    forge: Forge
    #: Null if gh is missing; then `problem` says so.
    url: str | None = None
    is_new: bool = False
    problem: str = ""


def publish(
    packet: Packet, *, draft: bool, remote: str | None, base: str | None, is_confirmed: bool
) -> Published:
    """Push the work of a task, and open or update its pull request.

    `is_confirmed`: the user has seen that settings of the repository changed. Raises ForPersons, NotPossible,
    LockHeld.
    """
    from holdfast.forge import text
    from holdfast.forge.gh import Forge
    from holdfast.forge.publish import open_or_update
    from holdfast.workspace.worktrees import push

    asker.check(asker.find(), packet, "pr")
    manifest = load.derived(packet)
    _check_publishable(packet, manifest, draft=draft)
    title = text.title(packet, manifest)
    pushed = push.push(packet, goal=title, remote=remote, is_confirmed=is_confirmed)
    body = text.body(packet, manifest, paths=pushed.paths, left_out=pushed.left_out, unjudged=pushed.unjudged)
    forge = Forge(manifest["project_dir"], pushed.repository)
    published = Published(pushed=pushed, title=title, body=body, forge=forge)
    try:
        url, is_new = open_or_update(forge, pushed.branch, base=base, title=title, body=body, draft=draft)
    except CommandNotFound as error:
        return published.evolve(problem=str(error))
    return published.evolve(url=url, is_new=is_new)


def _check_publishable(packet: Packet, manifest: dict[str, Any], *, draft: bool) -> None:
    """Raises NotPossible for work that is not finished, or that its own reviewers object to."""
    check_ended(packet, manifest)
    if draft:
        return
    if manifest["status"] != Status.COMPLETED:
        raise NotPossible(f"{packet.task_id} is {manifest['status']}", hint="--draft opens a draft of it")
    if refused := refusal(packet, manifest):
        raise NotPossible(refused, hint="--draft opens a draft of it")
    if manifest.get("concerns"):
        first = manifest["concerns"][0]
        raise NotPossible(
            f"{packet.task_id} has objections: {first['stage']}: {first['text']}",
            hint=f"'holdfast show {packet.task_id} --findings' shows them; --draft opens a draft",
        )


def wait_for_checks(
    published: Published,
    limit_s: float,
    *,
    say: Callable[[str], None],
    is_cancelled: Callable[[], bool] | None = None,
) -> list[CiCheck]:
    """The checks of the pull request once none is pending, or as they are when it `is_cancelled`.

    Raises NotPossible after the time limit.
    """
    from holdfast.forge.gh import PENDING

    assert published.url is not None
    forge, url, commit = published.forge, published.url, published.pushed.commit
    begun = clock.mono()
    told, pause_s = "", _MIN_S
    while True:
        checks = forge.checks(url) if forge.view(url).shows_checks_of(commit) else []
        pending = [check.name for check in checks if check.bucket in PENDING]
        waited_s = clock.mono() - begun
        if not pending and (checks or waited_s >= min(limit_s, _NO_CHECKS_S)):
            return checks
        if waited_s >= limit_s:
            raise NotPossible(
                f"checks are pending after {clock.duration_text(limit_s)}: {', '.join(pending)}",
                hint="run it again with a longer --wait",
            )
        now = f"waits for {', '.join(pending) or 'checks'}"
        if now != told:
            say(now)
            told = now
        if _is_cancelled_in(min(pause_s, max(0.05, limit_s - waited_s)), is_cancelled):
            return checks
        pause_s = min(pause_s * 1.5, _MAX_S)


def _is_cancelled_in(pause_s: float, is_cancelled: Callable[[], bool] | None) -> bool:
    """Sleep, and look twice a second whether the wait was cancelled."""
    ends = clock.mono() + pause_s
    while (left_s := ends - clock.mono()) > 0:
        if is_cancelled is None:
            clock.sleep(left_s)
        elif is_cancelled():
            return True
        else:
            clock.sleep(min(left_s, _LOOK_S))
    return False
