"""holdfast queue: what waits, in which order, and where work comes from."""

from __future__ import annotations

import os
import sys

from holdfast import clock, paths
from holdfast.errors import CorruptFile, DuplicateTask, HoldfastError, NotFound, NotPossible, UsageError
from holdfast.packet import load
from holdfast.queue import owner, sync
from holdfast.queue.engine import ALL, MOST, Item, is_ready, parse_priority, weights
from holdfast.queue.work import EXAMPLE
from holdfast.store import atomic, audit
from holdfast.store.layout import Home, Packet
from holdfast.views.cli import asked, asking, enqueue, grid, out, turn, words
from holdfast.views.cli.spec import JSON, Argument, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.queue.local import LocalQueue

ACTIONS = (
    "ls", "show", "next", "check", "add", "import", "claim", "release", "done", "priority", "retry", "rm", "pause", "resume",
    "clear",
)  # fmt: skip

#: As much of a reason as is shown.
_REASON_BYTES = 4096

COMMAND = Command(
    name="queue",
    summary="Show the queue, add work to it, or change its order of things.",
    description="Actions: ls, which is what it does without an action; show [TASK]; next: the task whose turn it is; check: how many wait; add JSON (- is stdin): a work "
    "item; import SOURCE: a .json or .jsonl file, a folder of .md files, gh:label=NAME[,repo=OWNER/NAME], bd:, gt:[RIG,…] or "
    "cmd:COMMAND, and what is there already is left alone; claim [TASK]: take it for a worker outside; release TASK: give it "
    "back; done TASK: it was done outside; priority TASK PRIORITY: high, medium, low or a number; retry TASK: let a held or poison one go again; rm TASK; pause and resume [POOL]; clear: remove all that waits.",
    examples=(
        "holdfast queue ls",
        """holdfast queue add '{"id": "issue-123", "title": "Fix the tests", "priority": "high"}' --agent claude""",
        "holdfast queue import --from gh:label=agent --agent claude",
        "holdfast queue pause nightly",
    ),
    arguments=(
        Argument(dest="action", metavar="[ACTION]", choices=ACTIONS, required=False),
        Argument(dest="what", metavar="[TASK|JSON|SOURCE|POOL]", required=False, completes="task"),
        Argument(dest="value", metavar="[PRIORITY]", required=False),
    ),
    options=(
        Option(
            flags=("--agent",),
            dest="agent",
            metavar="NAME",
            completes="agent",
            help="For add and import: the agent of items that name none.",
        ),
        Option(
            flags=("--project",),
            dest="project",
            metavar="DIR",
            completes="folder",
            help="For add and import: where the work is done (default: here).",
        ),
        Option(flags=("--pool",), dest="pool", metavar="NAME", help="For add and import: the pool."),
        Option(
            flags=("--most",), dest="most", metavar="N", help="For import: so many items at a time (100)."
        ),
        Option(
            flags=("--from",),
            dest="source",
            metavar="SOURCE",
            help="For import: the source, said with a flag.",
        ),
        Option(flags=("--by",), dest="by", metavar="NAME", help="For claim: who takes it (you)."),
        Option(flags=("--yes",), dest="yes", kind="flag", help="For clear: yes, remove them."),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """One of the actions."""
    home = Home(paths.home())
    values = {**values, "action": values["action"] or "ls"}
    if values["source"] is not None:
        if values["action"] != "import" or values["what"] is not None:
            raise UsageError(
                "--from names the source of an import", hint="'holdfast queue import --from SOURCE'"
            )
        values = {**values, "what": values["source"]}
    action, what = values["action"], values["what"]
    if values["value"] is not None and action != "priority":
        raise UsageError(
            f"'queue {action}' takes no {values['value']!r}", hint=f"'holdfast queue {action} …'"
        )
    if action in _NEEDS and not what:
        raise UsageError(f"'queue {action}' needs {_NEEDS[action]}", hint=f"'holdfast queue {action} …'")
    if action in _LOOKS and not os.path.isdir(home.tasks):
        # Nobody has worked here yet: whoever only looks makes nothing.
        if action == "show" and what is not None:
            load.find(home, what)  # which says that there is none
        return _LOOKS[action](home, _Nothing(), values)
    paths.ensure_home(home.path)
    with sync.open_queue(home) as queue:
        return _ACTS[action](home, queue, values)


_NEEDS = {
    "add": "an item",
    "import": "a source",
    "release": "a task",
    "done": "a task",
    "priority": "a task",
    "retry": "a task",
    "rm": "a task",
}

# ── looking ──


class _Nothing:
    """The queue of a home that is not there."""

    def items(self) -> list[Item]:
        """None."""
        return []

    def paused(self) -> list[str]:
        """None."""
        return []


def _ls(home: Home, queue: LocalQueue | _Nothing, values: dict[str, Any]) -> int:
    items, paused = queue.items(), queue.paused()
    if values["json"]:
        out.data(
            {"schema": "holdfast.queue/1", "paused": paused, "items": [item.to_json() for item in items]}
        )
        return 0
    rows = [
        [item.task_id, item.state, str(item.priority), item.pool, item.agent, turn.why(item, paused)]
        for item in items
    ]
    if rows:
        grid.show(("TASK", "STATE", "PRIORITY", "POOL", "AGENT", ""), rows)
    else:
        out.talk("the queue is empty")
    if paused:
        what = "everything" if ALL in paused else ", ".join(paused)
        pool = "" if ALL in paused else f" {paused[0]}" if len(paused) == 1 else " POOL"
        out.talk(f"paused: {what} ('holdfast queue resume{pool}' goes on)")
    asked_for = atomic.read_small(home.interrupt_request, _REASON_BYTES)
    if asked_for is not None:
        out.talk(f"the queue waits for a person: {out.brief(asked_for)} (remove {home.interrupt_request})")
    if rows and os.path.exists(home.down):
        out.talk(asking.IS_DOWN)
    elif any(item.state == "queued" for item in items) and turn.held_back(home):
        out.talk(out.printable(turn.held_back(home)))
    return 0


def _show(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    if values["what"] is None:
        return _ls(home, queue, values)
    item = _find(home, queue, values["what"])
    if values["json"]:
        return _tell(item, values)
    for name, value in item.to_json().items():
        if name != "schema" and value not in (None, "", [], False):
            text = ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)  # pyright: ignore
            out.fact(f"{name}:", text, at=14)
    return 0


def _next(home: Home, queue: LocalQueue | _Nothing, values: dict[str, Any]) -> int:
    paused, now = queue.paused(), clock.now()
    for item in queue.items():
        if is_ready(item, now=now, paused=paused):
            return _tell(item, values)
    raise NotFound("no task is ready", hint="'holdfast queue ls' shows what waits, and for what")


def _check(home: Home, queue: LocalQueue | _Nothing, values: dict[str, Any]) -> int:
    items, paused, now = queue.items(), queue.paused(), clock.now()
    counts = {
        state: sum(item.state == state for item in items) for state in ("queued", "claimed", "held", "poison")
    }
    ready = sum(is_ready(item, now=now, paused=paused) for item in items)
    if values["json"]:
        out.data({"schema": "holdfast.queue-check/1", "ready": ready, **counts, "paused": paused})
    else:
        print(ready)
    return 0


# ── putting in ──


def _add(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """All of them or none: whoever typed them is there to mend what is wrong."""
    from holdfast.queue import sources
    from holdfast.queue.sources import lines

    text = sys.stdin.read() if values["what"] == "-" else values["what"]
    found = lines.parse(
        text.encode("utf-8", "surrogateescape"),
        source="queue add",
        weights=_weights(asked.settings_of(paths.project(values["project"]))),
    )
    if not found:
        raise UsageError("no item that is ready", hint=EXAMPLE)
    ready, circles = sources.in_order(found)
    if circles:
        raise UsageError(circles[0], hint="leave out one of the 'after'")
    _refuse_known(home, [work.task_id for work in found])
    intakes = [
        enqueue.check(work, agent=values["agent"], project=values["project"], pool=values["pool"])
        for work in ready
    ]
    made: list[Packet] = []
    try:
        for intake in intakes:
            made.append(enqueue.take_in(home, intake))
    finally:
        # Those that are there are there, though the disk be full by now.
        sync.sync(home, queue)
        for packet in made:
            out.made(packet.task_id, load.read_manifest(packet) if values["json"] else None)
        if made:
            enqueue.wake(home)
    return 0


def _refuse_known(home: Home, names: list[str]) -> None:
    for at, name in enumerate(names):
        if sync.is_known(home, name):
            raise DuplicateTask(f"there is a task {name} already", hint="give the item another id")
        if name in names[:at]:
            raise DuplicateTask(f"two items have the id {name}", hint="give one of them another id")


def _import(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """What can be taken in is: a source is somebody else's, and one bad item must not block those behind it."""
    # It can run other programs; nothing else here does.
    from holdfast.queue import sources

    project = paths.project(values["project"])
    given = asked.settings_of(project)
    found = sources.read(
        values["what"],
        project=project,
        most=_most(values["most"] or str(given.get("import_most", MOST))),
        weights=_weights(given),
        projects=given.get("project_order", ()),
        # Ended and archived ones too: what was done once is not done again because its source still lists it.
        is_known=lambda task_id: sync.is_known(home, task_id),
    )
    added: list[str] = []
    skipped, failed = list(found.known), list(found.wrong)
    try:
        for work in found.works:
            try:
                intake = enqueue.check(work, agent=values["agent"], project=project, pool=values["pool"])
                enqueue.take_in(home, intake)
                added.append(work.task_id)
            except DuplicateTask:
                skipped.append(work.task_id)
            except UsageError as error:
                failed.append(f"{work.task_id}: {error}")
    finally:
        sync.sync(home, queue)
        if added:
            enqueue.wake(home)
    _tell_import(values, added=added, skipped=skipped, failed=failed, left=found.left)
    if failed:
        kind = NotPossible if added else UsageError
        raise kind(
            f"{values['what']}: {words.plural(len(failed), 'item')} could not be taken in",
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
                "source": values["what"],
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
    out.talk(f"{words.plural(len(added), 'item')} added, {len(skipped)} there already{more}")


def _most(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= MOST:
        raise UsageError(f"--most {text}: not a number from 1 to {MOST}", hint="for example --most 10")
    return int(text)


def _weights(given: dict[str, Any]) -> dict[str, int]:
    return weights(given.get("priorities", ()))


# ── moving ──


def _claim(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    who = values["by"] or os.environ.get("USER") or str(os.getuid())
    by = owner.outside(who)
    if values["what"] is None:
        taken = queue.claim(by)
        if taken is None:
            raise NotFound("no task is ready", hint="'holdfast queue ls' shows what waits, and for what")
        _note(home, "claimed", taken, reason=f"for {who}")
        return _tell(taken, values)
    item, paused = _find(home, queue, values["what"]), queue.paused()
    is_its_time = is_ready(item, now=clock.now(), paused=paused)
    taken = queue.claim(by, task_id=item.task_id) if is_its_time else None
    if taken is None:
        said = turn.why(item, paused) or f"it is {item.state}"
        raise NotPossible(
            f"{item.task_id} cannot be claimed: {said}",
            hint="'holdfast queue next' names the task whose turn it is",
        )
    _note(home, "claimed", taken, reason=f"for {who}")
    return _tell(taken, values)


def _claimed_outside(home: Home, queue: LocalQueue, text: str, *, hint: str) -> Item:
    item = _find(home, queue, text)
    if item.state != "claimed" or not owner.is_outside(item.claimed_by):
        raise NotPossible(
            f"{item.task_id} is not claimed by a worker outside", hint=hint.replace("TASK", item.task_id)
        )
    return item


def _done(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    """A worker outside has done it: the task is completed, and what waits for it goes on."""
    item = _claimed_outside(
        home,
        queue,
        values["what"],
        hint="'holdfast queue claim TASK' takes it for one; then it can be done there",
    )
    by = (item.claimed_by or "").partition(":")[2]
    asking.request(home.packet(item.task_id), "done", {"reason": f"done by {by}, outside"})
    queue.ack(item.task_id, status="completed")
    enqueue.wake(home)
    return _tell(item, values)


def _priority(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    item = _find(home, queue, values["what"])
    if values["value"] is None:
        raise UsageError(
            "'queue priority' needs a priority", hint=f"'holdfast queue priority {item.task_id} high'"
        )
    try:
        priority = parse_priority(values["value"], _weights(asked.settings_of(paths.project(None))))
    except ValueError as error:
        raise UsageError(f"{error}", hint=f"'holdfast queue priority {item.task_id} high'") from error
    if not queue.prioritize(item.task_id, priority):
        raise NotPossible(f"{item.task_id} is claimed already: it has had its turn")
    return _tell(queue.items(item.task_id)[0], values)


def _release(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    item = _claimed_outside(
        home,
        queue,
        values["what"],
        hint="'holdfast stop TASK' ends it, 'holdfast interrupt TASK' stops it for a while",
    )
    queue.release(item.task_id, owner=item.claimed_by)
    _note(home, "released", item)
    enqueue.wake(home)
    return _tell(queue.items(item.task_id)[0], values)


def _retry(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    item = _find(home, queue, values["what"])
    if not queue.retry(item.task_id):
        raise NotPossible(
            f"{item.task_id} is {item.state}, neither held nor poison",
            hint="'holdfast queue ls' shows what waits, and for what",
        )
    _note(home, "retried", item, reason=item.reason)
    enqueue.wake(home)
    return _tell(queue.items(item.task_id)[0], values)


def _rm(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    item = _find(home, queue, values["what"])
    if item.state == "claimed" and not owner.is_outside(item.claimed_by):
        raise NotPossible(f"{item.task_id} runs already", hint=f"'holdfast stop {item.task_id}' ends it")
    _drop(home, queue, item)
    _note(home, "removed", item)
    return _tell(item, values)


def _clear(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    waiting = [item for item in queue.items() if item.state != "claimed"]
    if not values["yes"]:
        raise UsageError(
            f"this ends {words.plural(len(waiting), 'task')} that never ran",
            hint="'holdfast queue clear --yes'",
        )
    _note(home, "cleared", reason=words.plural(len(waiting), "task"))
    status, removed = 0, list[Item]()
    for item in waiting:
        try:
            _drop(home, queue, item)
            removed.append(item)
        except HoldfastError as error:  # the others go all the same
            out.complain(error)
            status = status or error.exit_status
    if values["json"]:
        out.data(
            {
                "schema": "holdfast.queue/1",
                "paused": queue.paused(),
                "items": [each.to_json() for each in removed],
            }
        )
    else:
        out.talk(f"{words.plural(len(removed), 'task')} removed")
    return status


def _drop(home: Home, queue: LocalQueue, item: Item) -> None:
    """The packet says that it has ended, and the queue follows: otherwise the next look would add it again."""
    from holdfast.views.ask import ask

    if (
        queue.claim(owner.me(), task_id=item.task_id) is None
        and item.state == "queued"
        and not item.waits_for
    ):
        return  # somebody was faster: it runs
    try:
        ask(home.packet(item.task_id), "stop", {})
    except CorruptFile:
        # It is never taken in again: nobody can read that it waits.
        out.talk(f"{item.task_id} cannot be read; 'holdfast rm --force {item.task_id}' removes it")
    queue.ack(item.task_id, status="killed")


def _pause(home: Home, queue: LocalQueue, values: dict[str, Any]) -> int:
    is_paused = values["action"] == "pause"
    queue.pause(values["what"] or ALL, is_paused=is_paused)
    _note(home, "paused" if is_paused else "resumed", reason=values["what"] or "everything")
    if not is_paused:
        enqueue.wake(home)
    if values["json"]:
        return _check(home, queue, values)
    what = f"the pool {values['what']}" if values["what"] else "the queue"
    out.talk(f"{what} is paused; what runs goes on" if is_paused else f"{what} goes on")
    return 0


def _note(home: Home, what: str, item: Item | None = None, *, reason: str = "") -> None:
    """Who did this, for those who have to account for it."""
    entry: dict[str, Any] = {"operation": f"queue.{what}", "by": audit.whoami()}
    if item is not None:
        entry["task_id"] = item.task_id
    audit.append(home, {**entry, **({"reason": reason} if reason else {})})


def _tell(item: Item, values: dict[str, Any]) -> int:
    out.data(item.to_json()) if values["json"] else print(item.task_id)
    return 0


def _find(home: Home, queue: LocalQueue, text: str) -> Item:
    """An item by its id or a unique prefix. Raises NotFound, AmbiguousId."""
    exact = queue.items(text)
    if exact:
        return exact[0]
    task_id = load.find(home, text).task_id
    found = queue.items(task_id)
    if not found:
        raise NotFound(f"{task_id} is not in the queue", hint="'holdfast queue ls' shows what is")
    return found[0]


_LOOKS = {"ls": _ls, "show": _ls, "next": _next, "check": _check}
_ACTS = {
    "ls": _ls,
    "show": _show,
    "next": _next,
    "check": _check,
    "add": _add,
    "import": _import,
    "claim": _claim,
    "release": _release,
    "done": _done,
    "priority": _priority,
    "retry": _retry,
    "rm": _rm,
    "clear": _clear,
    "pause": _pause,
    "resume": _pause,
}
