"""The functions of the Python API: start tasks, find them, wait for them. Of the home of `HOLDFAST_HOME`."""

from __future__ import annotations

import os
import warnings

from holdfast import paths, spawn
from holdfast.errors import UsageError
from holdfast.model import labels as label_rules
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.api import options as task_options
from holdfast.views.api import values, waiting
from holdfast.views.api.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Unpack

    from holdfast.views.api.options import Options
    from holdfast.views.api.values import Digest, TaskInfo

# This process is another's: it may have threads, and may live long.
spawn.is_guest = True


def run(
    prompt: str | None = None,
    *,
    command: Sequence[str] | None = None,
    packet: str | os.PathLike[str] | None = None,
    **options: Unpack[Options],
) -> Task:
    """Start a task at once: a prompt for an agent, a command, or a written packet. Does not wait.

    Raises UsageError (DuplicateTask, UnknownAgent, …); then nothing was started.
    """
    from holdfast.views.create import start

    chosen = task_options.read(prompt, command, packet, options)
    return Task(start.run(chosen, talk=_warn))


def submit(
    prompt: str | None = None,
    *,
    command: Sequence[str] | None = None,
    packet: str | os.PathLike[str] | None = None,
    priority: str | int | None = None,
    pool: str | None = None,
    after: Iterable[Task | str] = (),
    not_before: str | None = None,
    **options: Unpack[Options],
) -> Task:
    """Add a task to the queue, which starts it when there is room. Otherwise as `run`.

    `after`: tasks that must complete first. `not_before`: the earliest start, as on the command line.
    """
    from holdfast.views.create import start

    chosen = task_options.read(prompt, command, packet, options)
    return Task(
        start.submit(
            chosen,
            priority=None if priority is None else str(priority),
            pool=pool,
            after=[_id(task) for task in after],
            not_before=not_before,
            talk=_warn,
        )
    )


def fan_out(
    plan: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    split: str | None = None,
    send_back: int | None = None,
    priority: str | int | None = None,
    pool: str | None = None,
    **options: Unpack[Options],
) -> Task:
    """Work on the items of a plan in parallel and merge them one by one. Returns the task that conducts it.

    `plan`: a file, or its content; or `split`: a goal for which the agent writes the plan first. The options
    hold for each item.
    """
    from holdfast.model.work_plan import Plan
    from holdfast.views.create import fan_out

    if (plan is None) == (not split):
        raise UsageError("give either a plan or a goal to split", hint="plan=… or split=…, not both")
    if plan is None:
        found = Plan()
    elif isinstance(plan, (str, os.PathLike)):
        found = fan_out.read_plan(os.fspath(plan))
    else:
        found = fan_out.checked_plan(dict(plan))
    packet = fan_out.begin(
        found,
        task_options.read(None, None, None, options),
        ask=split or "",
        times=fan_out.TIMES if send_back is None else send_back,
        priority=None if priority is None else str(priority),
        pool=pool,
        talk=_warn,
    )
    return Task(packet)


def open(task_id: str) -> Task:  # noqa: A001 (holdfast.open)
    """A task by its id or a unique prefix; archived ones too. Raises NotFound, AmbiguousId."""
    return Task(load.find(Home(paths.home()), task_id, archived=True))


def tasks(
    *, labels: Mapping[str, str] | None = None, status: str | None = None, recent: int | None = None
) -> list[TaskInfo]:
    """All tasks, newest first; those with these labels, and in this state. `recent`: at most this number."""
    from holdfast.views.facts import task_list

    if status is not None and status not in tuple(Status):
        raise UsageError(f"no such state: {status!r}", hint=f"states: {', '.join(Status)}")
    home = Home(paths.home())
    rows = task_list.tasks(home, everything=True, state=None)
    rows = [row for row in rows if status in (None, row["status"]) and label_rules.match(row, labels or {})]
    return [values.info_of(row, home.packet(row["task_id"]).path) for row in rows[:recent]]


def digest(
    *, since: str | None = None, labels: Mapping[str, str] | None = None, only: Iterable[Task | str] = ()
) -> Digest:
    """What changed since the cursor of the previous digest, in at most 4 KB; without one, all live tasks and
    those that ended last, or all of those that are asked for. `left_out` counts what did not fit: ask again
    with the new cursor."""
    from holdfast.views.facts import digest

    ids = {_id(task) for task in only}
    found = digest.gather(Home(paths.home()), since=since, only=ids or None, wanted=labels)
    return values.digest_of(found, digest.as_text(found))


def wait(
    tasks: Iterable[Task | TaskInfo | str], *, timeout_s: float | None = None, first: bool = False
) -> list[TaskInfo]:
    """Wait until all tasks have ended or need a person; with `first`, until one has. Returns those that did.

    Raises Unanswered after the timeout; nothing is lost, ask again.
    """
    return waiting.wait([_id(task) for task in tasks], timeout_s=timeout_s, first=first)


def _id(task: Task | TaskInfo | str) -> str:
    return task if isinstance(task, str) else task.id


def _warn(text: str) -> None:
    warnings.warn(text.removeprefix("warning: "), values.HoldfastWarning, stacklevel=4)
