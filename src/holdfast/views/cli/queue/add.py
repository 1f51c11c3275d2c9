"""Filling the queue: items that somebody typed, and those of a source."""

from __future__ import annotations

import sys

from holdfast import paths
from holdfast.errors import DuplicateTask, NotPossible, UsageError
from holdfast.packet import load
from holdfast.queue import sync
from holdfast.queue.engine import MOST, weights
from holdfast.queue.work_item import EXAMPLE
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.create import new_task
from holdfast.views.cli.queue import enqueue, work_items
from holdfast.views.cli.show import amounts, out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.local import LocalQueue


def add(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """All of them or none: whoever typed them is there to mend what is wrong."""
    from holdfast.queue import sources
    from holdfast.queue.sources import lines

    text = sys.stdin.read() if values["target"] == "-" else values["target"]
    found = lines.parse(
        text.encode("utf-8", "surrogateescape"),
        source="queue add",
        weights=weights(new_task.project_settings(paths.project(values["project"])).get("priorities", ())),
    )
    if not found:
        raise UsageError("no item that is ready", hint=EXAMPLE)
    ready, circles = sources.in_order(found)
    if circles:
        raise UsageError(circles[0], hint="leave out one of the 'after'")
    _refuse_known(home, [work.task_id for work in found])
    intakes = [
        work_items.check(work, agent=values["agent"], project=values["project"], pool=values["pool"])
        for work in ready
    ]
    made: list[Packet] = []
    try:
        for intake in intakes:
            made.append(work_items.create(home, intake))
    finally:
        # Those that are there are there, though the disk be full by now.
        sync.sync(home, queue)
        for packet in made:
            out.task_line(packet.task_id, load.read_manifest(packet) if values["json"] else None)
        if made:
            enqueue.wake_keeper(home)
    return 0


def _refuse_known(home: Home, names: list[str]) -> None:
    for at, name in enumerate(names):
        if sync.is_known(home, name):
            raise DuplicateTask(f"task {name} already exists", hint="give the item another id")
        if name in names[:at]:
            raise DuplicateTask(f"two items have the id {name}", hint="give one of them another id")


def import_from(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """What can be taken in is: a source is somebody else's, and one bad item must not block those behind it."""
    # It can run other programs; nothing else here does.
    from holdfast.queue import sources

    project = paths.project(values["project"])
    given = new_task.project_settings(project)
    found = sources.read(
        values["target"],
        project=project,
        most=_most(values["most"] or str(given.get("import_most", MOST))),
        weights=weights(given.get("priorities", ())),
        projects=given.get("project_order", ()),
        # Ended and archived ones too: what was done once is not done again because its source still lists it.
        is_known=lambda task_id: sync.is_known(home, task_id),
    )
    added: list[str] = []
    skipped, failed = list(found.known), list(found.wrong)
    try:
        for work in found.works:
            try:
                intake = work_items.check(work, agent=values["agent"], project=project, pool=values["pool"])
                work_items.create(home, intake)
                added.append(work.task_id)
            except DuplicateTask:
                skipped.append(work.task_id)
            except UsageError as error:
                failed.append(f"{work.task_id}: {error}")
    finally:
        sync.sync(home, queue)
        if added:
            enqueue.wake_keeper(home)
    _tell_import(values, added=added, skipped=skipped, failed=failed, left=found.left)
    if failed:
        kind = NotPossible if added else UsageError
        raise kind(
            f"{values['target']}: {amounts.plural(len(failed), 'item')} could not be taken in",
            hint="mend them at their source; the next import takes them in",
            details=tuple(failed),
        )
    return 0


def _tell_import(
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
    out.talk(f"{amounts.plural(len(added), 'item')} added, {len(skipped)} there already{more}")


def _most(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= MOST:
        raise UsageError(f"--most {text}: not a number from 1 to {MOST}", hint="for example --most 10")
    return int(text)
