"""Where work comes from. Each source is a pure `parse`; `read` runs or opens what a text such as `gh:label=agent` names."""

from __future__ import annotations

import json
import os

from holdfast.errors import UsageError
from holdfast.model.record import Record
from holdfast.queue import order
from holdfast.queue.engine import MOST, WEIGHTS
from holdfast.queue.sources import beads, folder, github, lines, run
from holdfast.queue.work import Work, rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: As far as a program is asked for more than it listed at first: what is known already comes first in its list.
_DEEPEST = 10_000


class Found(Record):
    """What a source has."""

    #: To be taken in: the most urgent first, but none before what it waits for.
    works: list[Work]
    #: Tasks that are there already.
    known: list[str]
    #: How many more are ready.
    left: int
    #: What cannot be taken in, and why.
    wrong: list[str]


def read(
    source: str,
    *,
    project: str,
    most: int = MOST,
    weights: Mapping[str, int] = WEIGHTS,
    projects: Sequence[str] = (),
    is_known: Callable[[str], bool] = lambda _: False,
) -> Found:
    """The items of a source that are ready and not known, `most` of them at most: the most urgent first, among equals by the
    order of `projects`. Raises UsageError, CommandNotFound, NotPossible."""
    wrong: list[str] = []
    limit = most
    while True:
        wrong.clear()
        works, is_all = _listed(source, project=project, limit=limit, weights=weights, wrong=wrong)
        known = [work.task_id for work in works if is_known(work.task_id)]
        if is_all or len(works) - len(known) >= most or limit >= _DEEPEST:
            break
        limit = min(limit * 4, _DEEPEST)
    there = set(known)
    new = [work for work in works if work.task_id not in there]
    new.sort(key=lambda work: (-work.priority, rank(work, projects)))
    ready, circles = in_order(new)
    return Found(works=ready[:most], known=known, left=len(ready[most:]), wrong=wrong + circles)


def in_order(works: list[Work]) -> tuple[list[Work], list[str]]:
    """(The works, each behind those that it waits for, and none twice; a sentence for each circle, whose works are left out)."""
    by_id: dict[str, Work] = {}
    for work in works:
        by_id.setdefault(work.task_id, work)
    names, circles = order.dependencies_first({name: work.after for name, work in by_id.items()})
    caught = {name for circle in circles for name in circle}
    return [by_id[name] for name in names if name not in caught], [order.words(each) for each in circles]


def _listed(
    source: str, *, project: str, limit: int, weights: Mapping[str, int], wrong: list[str]
) -> tuple[list[Work], bool]:
    """(What the source lists, whether that is all it has)."""
    kind, colon, rest = source.partition(":")
    if colon and kind == "gh":
        raw = run.output(github.argv(rest, most=limit), cwd=project)
        return github.parse(raw, rest, weights=weights, wrong=wrong), _count(raw) < limit
    if colon and kind in ("bd", "gt"):
        raw = run.output(beads.argv(kind, most=limit), cwd=project)
        found = beads.parse(raw, kind, rigs=rest, weights=weights, wrong=wrong)
        return found, kind == "gt" or _count(raw) < limit
    if colon and kind == "cmd":
        raw = run.output(["sh", "-c", rest], cwd=project)
    elif os.path.isdir(source):
        return folder.read(source, weights=weights, wrong=wrong), True
    elif os.path.isfile(source) or source == "-":
        raw = run.contents(source)
    else:
        raise UsageError(
            f"{source}: no such file or folder, and no source",
            hint="a .json, .jsonl or folder of .md files; gh:label=NAME[,repo=OWNER/NAME]; bd: ; gt:[RIG,…] ; cmd:COMMAND",
        )
    return lines.parse(raw, source=source, weights=weights, wrong=wrong), True


def _count(raw: bytes) -> int:
    """How many a program listed, whatever they are."""
    try:
        listed = json.loads(raw or b"[]")
    except (ValueError, RecursionError):
        return 0
    return len(listed) if isinstance(listed, list) else 0  # pyright: ignore[reportUnknownArgumentType]
