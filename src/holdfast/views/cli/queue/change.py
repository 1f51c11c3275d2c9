"""Actions that change the queue: priority, retry, rm, clear, pause and resume."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import CorruptFile, HoldfastError, NotPossible, UsageError
from holdfast.queue import claim_owner, sync
from holdfast.queue.engine import ALL, Item, parse_priority, weights
from holdfast.store.layout import Home
from holdfast.views.cli.queue import failures, listing, schedules
from holdfast.views.cli.queue.items import as_json, find, print_item, record
from holdfast.views.cli.show import out
from holdfast.views.create import enqueue, new_task, pools
from holdfast.views.facts import day_budget
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.queue.local import LocalQueue

#: Tasks stopped at a time: each needs a runner for a moment.
_AT_ONCE = 32


def prioritize(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Change the priority of an item."""
    item = find(home, queue, values["target"])
    if values["value"] is None:
        raise UsageError(
            "'queue priority' needs a priority", hint=f"'holdfast queue priority {item.task_id} high'"
        )
    try:
        priority = parse_priority(
            values["value"], weights(new_task.project_settings(paths.project(None)).get("priorities", ()))
        )
    except ValueError as error:
        raise UsageError(f"{error}", hint=f"'holdfast queue priority {item.task_id} high'") from error
    if not queue.prioritize(item.task_id, priority):
        raise NotPossible(f"{item.task_id} was claimed already: too late to change its priority")
    if not values["json"]:
        out.talk(f"{item.task_id} has priority {priority} (was {item.priority})")
    return print_item(queue.items(item.task_id)[0], values)


def retry(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Let a held or poison item run, without the tasks because of which it is held."""
    item = find(home, queue, values["target"])
    for on_id in queue.failed_dependencies(item.task_id) if item.state == "held" else ():
        sync.note_met(home.packet(item.task_id), on_id)
    if not queue.retry(item.task_id):
        raise NotPossible(
            f"{item.task_id} is {item.state}, not held or poison",
            hint="'holdfast queue ls' shows what each task waits for",
        )
    record(home, "retried", item, reason=f"it was {item.state}: {item.reason}")
    enqueue.wake_keeper(home, talk=out.talk)
    return print_item(queue.items(item.task_id)[0], values)


def rm(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """End a queued task, or remove a schedule."""
    if not queue.items(values["target"]) and schedules.rm(home, values["target"]):
        return 0
    item = find(home, queue, values["target"])
    if item.state == "claimed" and not claim_owner.is_external(item.claimed_by):
        raise NotPossible(f"{item.task_id} is running", hint=f"'holdfast stop {item.task_id}' ends it")
    _drop(home, queue, item)
    record(home, "removed", item)
    return print_item(item, values)


def clear(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """End all queued tasks."""
    waiting = [item for item in queue.items() if item.state != "claimed"]
    if not values["yes"]:
        raise UsageError(
            f"'queue clear' ends {amounts.plural(len(waiting), 'queued task')}",
            hint="confirm with 'holdfast queue clear --yes'",
        )
    record(home, "cleared", reason=amounts.plural(len(waiting), "task"))
    status, removed = 0, list[Item]()
    for first in range(0, len(waiting), _AT_ONCE):
        for item, error in _drop_all(home, queue, waiting[first : first + _AT_ONCE]):
            if error is None:
                removed.append(item)
            else:  # continue with the others
                out.complain(error)
                status = status or error.exit_status
    if values["json"]:
        out.data(as_json(removed, queue.paused()))
    else:
        count = amounts.plural(len(removed), "task")
        out.talk(f"{count} killed; 'holdfast rm' removes their files" if removed else "the queue is empty")
    return status


def _drop(home: Home, queue: LocalQueue, item: Item) -> None:
    for _, error in _drop_all(home, queue, [item]):
        if error is not None:
            raise error


def _drop_all(
    home: Home, queue: LocalQueue, items: list[Item]
) -> Iterator[tuple[Item, HoldfastError | None]]:
    """Stop the tasks, then remove their items: in the other order, the next sync would add them again.

    All are asked before the first answer is awaited: their runners work at once.
    """
    from holdfast.views.requests import Posted, answers, post_request

    asked: dict[str, tuple[Item, Posted]] = {}
    for item in items:
        if (
            queue.claim(claim_owner.this_process(), task_id=item.task_id) is None
            and item.state == "queued"
            and not item.waits_for
        ):
            yield item, None  # the keeper has just started it
            continue
        try:
            asked[item.task_id] = item, post_request(home.packet(item.task_id), "stop", {})
        except HoldfastError as error:
            yield item, error
    for posted, error in answers([posted for _, posted in asked.values()]):
        item = asked[posted.packet.task_id][0]
        if isinstance(error, CorruptFile):
            # Nor can a sync read it, so it is not added again.
            out.talk(f"{item.task_id} cannot be read; 'holdfast rm --force {item.task_id}' removes it")
            error = None
        if error is None:
            queue.ack(item.task_id, status="killed")
        yield item, error


def pause(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Pause or resume a pool, or the whole queue."""
    is_paused = values["action"] == "pause"
    if values["target"]:
        pools.check(values["target"], queue)
    queue.pause(values["target"] or ALL, is_paused=is_paused)
    record(home, "paused" if is_paused else "resumed", reason=values["target"] or "everything")
    forgotten = ""
    if not is_paused:
        if not values["target"]:
            forgotten = failures.forget(home, removes_file=True)
        enqueue.wake_keeper(home, talk=out.talk)
    if values["json"]:
        return listing.check(home, queue, values)
    pool = f"the pool {values['target']}" if values["target"] else "the queue"
    told = f"{pool} is paused; running tasks continue" if is_paused else f"{pool} is resumed"
    out.talk(f"{told}; {forgotten}" if forgotten else told)
    if not is_paused and (why := day_budget.exceeded(home)):
        out.talk(why)
    return 0
