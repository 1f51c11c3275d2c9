"""Actions that add to the queue: add and import."""

from __future__ import annotations

import os
import sys

from holdfast import paths
from holdfast.errors import DuplicateTask, NotPossible, StorageError, UsageError
from holdfast.packet import load
from holdfast.queue import sync
from holdfast.queue.engine import MAX_IMPORT_ITEMS, weights
from holdfast.queue.work_item import EXAMPLE
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.queue import item_trust, work_items
from holdfast.views.cli.show import out
from holdfast.views.create import enqueue, new_task
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.local import LocalQueue


def add(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Add work items, all or none: the person who typed them can fix what is wrong."""
    from holdfast.queue import sources
    from holdfast.queue.sources import lines

    text = sys.stdin.read() if values["target"] == "-" else values["target"]
    _refuse_plain_text(values["target"])
    works = lines.parse(
        text.encode("utf-8", "surrogateescape"),
        source="queue add",
        weights=weights(new_task.project_settings(paths.project(values["project"])).get("priorities", ())),
    )
    if not works:
        raise UsageError("no work item in the input", hint=EXAMPLE)
    ready, circles = sources.in_order(works)
    if circles:
        raise UsageError(circles[0], hint="remove one of the 'after'")
    _refuse_known(home, [work.task_id for work in works])
    queued = [
        work_items.check(
            work,
            agent=values["agent"],
            project=values["project"],
            pool=values["pool"],
            trust_project=values["trust_project"],
            sandbox=values["sandbox"],
        )
        for work in ready
    ]
    made: list[Packet] = []
    try:
        for work_item in queued:
            made.append(work_items.create(home, work_item))
    finally:
        # Also after an error: what was created stays in the queue.
        sync.sync(home, queue)
        for packet in made:
            out.task_line(packet.task_id, load.read_manifest(packet) if values["json"] else None)
        if made:
            enqueue.wake_keeper(home, talk=out.talk)
    return 0


def _refuse_plain_text(target: str) -> None:
    """What is plainly not JSON: a prompt, or the name of a file."""
    if target == "-" or target.lstrip()[:1] in ("{", "[", ""):
        return
    from shlex import quote  # for a mistake only

    if target.endswith((".json", ".jsonl", ".md")) or os.path.exists(target):
        raise UsageError(
            f"{target!r} is not a work item", hint=f"did you mean 'holdfast queue import {quote(target)}'?"
        )
    raise UsageError(
        f"{target!r} is not a work item in JSON",
        hint=f"did you mean: holdfast submit {quote(target)}? Or {EXAMPLE}",
    )


def _refuse_known(home: Home, names: list[str]) -> None:
    for at, name in enumerate(names):
        if sync.is_known(home, name):
            raise DuplicateTask(f"task {name} already exists", hint="give the item another id")
        if name in names[:at]:
            raise DuplicateTask(f"two items have the id {name}", hint="give one of them another id")


def import_from(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """Import from a source. One bad item does not block the others."""
    # Loads what runs other programs; nothing else here needs it.
    from holdfast.queue import sources

    project = paths.project(values["project"])
    settings = new_task.project_settings(project)
    batch = sources.read(
        values["target"],
        project=project,
        most=_most(values["most"] or str(settings.get("import_most", MAX_IMPORT_ITEMS))),
        weights=weights(settings.get("priorities", ())),
        projects=settings.get("project_order", ()),
        # Ended and archived tasks count, too: a source may still list what was done.
        is_known=lambda task_id: sync.is_known(home, task_id),
    )
    judge = item_trust.judge_of(values["target"], project, by_flag=values["trust_project"])
    added: list[str] = []
    skipped, failed = list(batch.known), list(batch.wrong)
    try:
        for work in batch.works:
            try:
                work_item = work_items.check(
                    work,
                    agent=values["agent"],
                    project=project,
                    pool=values["pool"],
                    trust_project=values["trust_project"],
                    judge=judge,
                    sandbox=values["sandbox"],
                )
                work_items.create(home, work_item)
                added.append(work.task_id)
            except DuplicateTask:
                skipped.append(work.task_id)
            except StorageError:
                raise
            except (UsageError, NotPossible) as error:
                failed.append(f"{work.task_id}: {error}")
    finally:
        sync.sync(home, queue)
        if added:
            enqueue.wake_keeper(home, talk=out.talk)
    _print_import(values, added=added, skipped=skipped, failed=failed, left=batch.left)
    if failed:
        kind = NotPossible if added else UsageError
        raise kind(
            f"{values['target']}: {amounts.plural(len(failed), 'item')} could not be imported",
            hint="fix the source and import again",
            details=tuple(failed),
        )
    return 0


def _print_import(
    values: dict[str, Any], *, added: list[str], skipped: list[str], failed: list[str], left: int
) -> None:
    if values["json"]:
        out.data(
            {
                "schema": "holdfast.queue-import/1",
                "source": values["target"],
                "added": added,
                "skipped": skipped,
                "left": left,
                "failed": failed,
            }
        )
        return
    for task_id in added:
        print(task_id)
    more = f", {left} left for the next import" if left else ""
    out.talk(f"{amounts.plural(len(added), 'item')} added, {len(skipped)} already there{more}")


def _most(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= MAX_IMPORT_ITEMS:
        raise UsageError(f"--most {text}: must be from 1 to {MAX_IMPORT_ITEMS}", hint="for example --most 10")
    return int(text)
