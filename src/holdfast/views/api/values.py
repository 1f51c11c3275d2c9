"""The values that the Python API returns, all frozen; and its warning."""

from __future__ import annotations

from types import MappingProxyType

from holdfast.errors import Abandoned, NeedsPerson, TaskFailed
from holdfast.model.record import Record
from holdfast.model.status import ENDS, Status, exit_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_FAILURES = {1: TaskFailed, 4: NeedsPerson, 5: Abandoned}


class HoldfastWarning(UserWarning):
    """What the command line would print as a warning."""


class TaskInfo(Record):
    """A task at one moment."""

    id: str
    name: str
    goal: str
    #: A value of `holdfast.Status`.
    status: str
    reason: str
    agent: str
    model: str | None
    stage: str | None
    labels: Mapping[str, str]
    #: The number of the attempt that runs, or ran last.
    attempt: int
    #: What it asks while it is interrupted, and whether that needs an `answer` or an `approve`.
    question: str | None
    needs: str | None
    #: UTC, as `2026-01-31T12:00:00.000Z`.
    started_at: str
    finished_at: str | None
    #: Of the agent.
    exit_code: int | None
    #: The end of what the agent said last.
    last_words: str
    input_tokens: int
    output_tokens: int
    #: None: unknown.
    cost_usd: float | None
    #: The exit status of a command that waited for the task: 0 if it completed (`holdfast help exit-codes`).
    exit_status: int
    #: Its directory.
    path: str

    @property
    def has_ended(self) -> bool:
        """Whether it has completed, failed, or was abandoned or stopped."""
        return self.status in ENDS

    def check(self) -> None:
        """Raise TaskFailed, NeedsPerson or Abandoned unless it has completed, with nothing to look at."""
        if self.exit_status:
            why = self.question or self.reason or "a person should look at it"
            raise _FAILURES.get(self.exit_status, TaskFailed)(
                f"{self.id} is {self.status}: {why}", hint=f"'holdfast show {self.id}' shows it"
            )


class Event(Record):
    """One line of a task's journal, without secrets."""

    type: str
    #: UTC.
    at: str
    #: Where the next event begins: the `since` that continues after this one.
    cursor: int
    #: All fields of the event (docs/contracts/events.md).
    data: Mapping[str, Any]


class Log(Record):
    """A part of a task's readable output."""

    text: str
    #: Its bytes in the whole log, which has `size` bytes. `begin=end` gives what follows.
    begin: int
    end: int
    size: int


class Summary(Record):
    """What a task's runner wrote about it: result, stages, failure, what to do next."""

    id: str
    status: str
    #: At most 3.5 KB; empty before there is one.
    text: str
    left_out_bytes: int
    path: str


class Applied(Record):
    """Work that was merged into the project."""

    #: `merge` or `patch`.
    how: str
    #: The directory, its branch and the new commit; null with a patch.
    into: str
    branch: str | None
    commit: str | None
    paths: tuple[str, ...]
    #: Files outside the scope, which were not applied.
    left_out: tuple[str, ...]
    #: Submodules that are at another commit now; `git submodule update` updates their files.
    submodules: tuple[str, ...]
    #: The commits were squashed, because some changed files outside the scope.
    squashed: bool
    #: Everything was in the project already.
    was_there: bool
    #: Directories of the worktree that cannot be read: what is in them was not applied.
    unreadable: tuple[str, ...]


class PullRequestCheck(Record):
    """One check of a pull request."""

    name: str
    #: `pass`, `fail`, `cancel`, `pending` or `skipping`.
    bucket: str
    link: str


class PullRequest(Record):
    """Work that was pushed, and its pull request."""

    #: Null if gh is not installed; then open one with this title and text.
    url: str | None
    is_new: bool
    title: str
    body: str
    branch: str
    commit: str
    remote: str
    paths: tuple[str, ...]
    #: Files outside the scope, which were not pushed.
    left_out: tuple[str, ...]
    #: Directories of the worktree that cannot be read: what is in them was not pushed.
    unreadable: tuple[str, ...]
    #: Null if they were not waited for.
    checks: tuple[PullRequestCheck, ...] | None = None


class Change(Record):
    """A task in a digest: what changed, in few words."""

    id: str
    status: str
    stage: str = ""
    labels: Mapping[str, str] = MappingProxyType({})
    #: `answer` or `approve`, and the question.
    needs: str | None = None
    question: str = ""
    reason: str = ""
    #: What it waits for.
    waits: str = ""
    #: What its reviewers object to.
    concerns: str = ""
    attempt: int = 1

    @property
    def has_ended(self) -> bool:
        """Whether it has completed, failed, or was abandoned or stopped."""
        return self.status in ENDS


class Digest(Record):
    """What changed since a cursor; as text, never more than 4 KB."""

    #: The `since` of the next digest.
    cursor: str
    #: Whether it starts anew: without a cursor, or with one that is not known any more.
    full: bool
    #: State → number of tasks.
    counts: Mapping[str, int]
    tasks: tuple[Change, ...]
    #: Tasks that were removed or archived.
    gone: tuple[str, ...]
    #: Changes that did not fit; the next digest has them.
    left_out: int
    #: The whole as one line of JSON, as `holdfast digest --json` prints it.
    text: str


def info_of(manifest: Mapping[str, Any], path: str) -> TaskInfo:
    """From a manifest, or a row of the list."""
    interrupt: Mapping[str, Any] = manifest.get("interrupt") or {}
    is_asking = manifest["status"] == Status.INTERRUPTED and bool(interrupt)
    usage: Mapping[str, Any] = manifest.get("usage") or {}
    return TaskInfo(
        id=manifest["task_id"],
        name=manifest.get("task_name") or "",
        goal=manifest.get("goal") or "",
        status=manifest["status"],
        reason=manifest.get("status_reason") or "",
        agent=manifest.get("agent") or "",
        model=manifest.get("model"),
        stage=manifest.get("stage"),
        labels=MappingProxyType(dict(manifest.get("labels") or {})),
        attempt=manifest.get("attempt") or 0,
        question=(interrupt.get("reason") or "") if is_asking else None,
        needs=("approve" if interrupt.get("approval") else "answer") if is_asking else None,
        started_at=manifest.get("started_at") or "",
        finished_at=manifest.get("finished_at"),
        exit_code=manifest.get("exit_code"),
        last_words=manifest.get("last_words") or "",
        input_tokens=usage.get("input_tokens") or 0,
        output_tokens=usage.get("output_tokens") or 0,
        cost_usd=usage.get("cost_usd"),
        exit_status=_exit_status(manifest),
        path=path,
    )


def _exit_status(manifest: Mapping[str, Any]) -> int:
    if manifest["status"] not in tuple(Status):
        return 4  # a packet that cannot be read needs a person
    return exit_status(dict(manifest))


def digest_of(found: Mapping[str, Any], text: str) -> Digest:
    """From the digest of the data layer."""
    return Digest(
        cursor=found["cursor"],
        full=found["full"],
        counts=MappingProxyType(dict(found["counts"])),
        tasks=tuple(_change(entry) for entry in found["tasks"]),
        gone=tuple(found["gone"]),
        left_out=found["left_out"],
        text=text,
    )


def _change(entry: Mapping[str, Any]) -> Change:
    known = {name: value for name, value in entry.items() if name in Change.fields}
    known["status"] = entry["state"]
    if "labels" in known:
        known["labels"] = MappingProxyType(dict(known["labels"]))
    return Change(**known)
