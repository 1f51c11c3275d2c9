"""The gate `ci`: push a task's work, and look once at the checks of its pull request.

The first look at a commit pushes it and opens or updates the pull request; the later ones only look. A look
that was killed anywhere is repeated: the branch and the pull request are found again by the task's name.
"""

from __future__ import annotations

from holdfast.errors import NotFound, NotPossible
from holdfast.failpoints import failpoint
from holdfast.forge import text
from holdfast.forge.gh import FAILED, PENDING, Forge, is_address
from holdfast.forge.publish import open_or_update
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.workspace import task_worktree
from holdfast.workspace.git.remote import Remote
from holdfast.workspace.worktrees import push

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.forge.gh import CiCheck
    from holdfast.model.spec import PipelineSpec
    from holdfast.model.task import Task
    from holdfast.store.layout import Packet

#: How much of the logs goes back to the agent, and how much of each into the artifact.
_EVIDENCE_CHARS, _LOG_CHARS = 6000, 200_000


class Look(Record):
    """What a look found. `state` is pending, passed or failed."""

    schema: str = "holdfast.ci/1"
    state: str
    pull_request: str
    commit: str
    pending: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    evidence: str = ""


def look(packet: Packet) -> tuple[Look, str]:
    """Push if the work changed, and look; and the artifact, which has the logs of failed checks.

    Raises NotPossible, CommandNotFound, GitFailed if it cannot push or look.
    """
    task = load.fold(packet)
    pipeline = task.spec.pipeline
    if pipeline is None or not pipeline.ci:
        raise NotFound(f"{packet.task_id} has no gate 'ci'")
    place = Remote(name=pipeline.ci_remote, url=pipeline.ci_url)
    forge = Forge(task.spec.project_dir, place.repository)
    url, commit = _known(task)
    view = forge.view(url) if is_address(url) else None
    if view is None or view.branch != task_worktree.branch_of(packet):
        # The first look; or an agent has replaced what the last one found.
        url, commit = _publish(packet, pipeline, place, forge)
        view = forge.view(url)
    url = view.url
    failpoint("ci.published")
    if view.state != "OPEN":
        raise NotPossible(
            f"{url} is {view.state.lower() or 'gone'}",
            hint=f"reopen it, or stop the task: 'holdfast stop {packet.task_id}'",
        )
    checks = forge.checks(url) if view.shows_checks_of(commit) else []
    pending = tuple(check.name for check in checks if check.bucket in PENDING)
    failed = [check for check in checks if check.bucket in FAILED]
    # The log of a failed check is complete when all are.
    if not checks or pending:
        return Look(state="pending", pull_request=url, commit=commit, pending=pending), ""
    if not failed:
        return Look(state="passed", pull_request=url, commit=commit), ""
    logs = [(check, forge.failed_log(check)) for check in failed]
    found = Look(
        state="failed",
        pull_request=url,
        commit=commit,
        reasons=tuple(f"the check {check.name} of {url} failed" for check in failed),
        evidence=_evidence(logs),
    )
    return found, _artifact(url, logs)


def _known(task: Task) -> tuple[str, str]:
    """The pull request and the commit of an earlier look at the same work."""
    looked = task.ci
    return (looked.pull_request, looked.commit) if looked is not None else ("", "")


def _publish(packet: Packet, pipeline: PipelineSpec, place: Remote, forge: Forge) -> tuple[str, str]:
    if not place.url:
        raise NotPossible(
            f"the address of the remote was not recorded when {packet.task_id} was created",
            hint=f"'holdfast pr {packet.task_id}' after its end",
        )
    manifest = load.derived(packet)
    title = text.title(packet, manifest)
    pushed = push.push_to(packet, place, goal=title)
    body = text.body(
        packet,
        manifest,
        paths=pushed.paths,
        left_out=pushed.left_out,
        unjudged=pushed.unjudged,
        is_accepted=True,
    )
    url, _ = open_or_update(
        forge,
        pushed.branch,
        base=pipeline.ci_base or None,
        title=title,
        body=body,
        # Work to which its own reviewers object is never offered as ready.
        draft=pipeline.ci != "ready" or bool(manifest.get("concerns")),
    )
    return url, pushed.commit


def _evidence(logs: list[tuple[CiCheck, str]]) -> str:
    """The ends of the logs, which say what failed."""
    each = _EVIDENCE_CHARS // len(logs)
    return "\n\n".join(f"{_head(check)}\n{log.strip()[-each:]}".rstrip() for check, log in logs)[
        :_EVIDENCE_CHARS
    ]


def _artifact(url: str, logs: list[tuple[CiCheck, str]]) -> str:
    parts = [f"# Checks of {url}\n"]
    parts += [f"## {_head(check)}\n\n{log[-_LOG_CHARS:] or 'There is no log.'}\n" for check, log in logs]
    return "\n".join(parts)


def _head(check: CiCheck) -> str:
    return f"The check {check.name} failed ({check.link or 'no link'})."
