"""Sources of work.

Each has a pure `parse`; `read` runs or opens what a text such as `gh:label=agent` names.
"""

from __future__ import annotations

import json
import os

from holdfast.errors import UsageError
from holdfast.model.record import Record
from holdfast.queue import dependency_order
from holdfast.queue.engine import MAX_IMPORT_ITEMS, WEIGHTS
from holdfast.queue.sources import beads, folder, github, lines, run
from holdfast.queue.work_item import WorkItem, rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: How many more items a program is asked for: known ones come first in its list.
_DEEPEST = 10_000
#: What is before the colon of a source that is a program.
_PROGRAMS = ("gh", "bd", "gt", "cmd")


class SourceItems(Record):
    """The items of a source."""

    #: New items: the most urgent first, but each after its dependencies.
    works: list[WorkItem]
    #: Tasks that exist already.
    known: list[str]
    #: How many more are ready.
    left: int
    #: Items that cannot be imported, and why.
    wrong: list[str]


def read(
    source: str,
    *,
    project: str,
    most: int = MAX_IMPORT_ITEMS,
    weights: Mapping[str, int] = WEIGHTS,
    projects: Sequence[str] = (),
    is_known: Callable[[str], bool] = lambda _: False,
) -> SourceItems:
    """The new, ready items of a source, at most `most`: the most urgent first, equals in the order of
    `projects`.

    Raises UsageError, CommandNotFound, NotPossible.
    """
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
    ready, cycles = in_order(new)
    return SourceItems(works=ready[:most], known=known, left=len(ready[most:]), wrong=wrong + cycles)


def is_path(source: str) -> bool:
    """Whether a source is a file or folder: neither a program nor stdin."""
    kind, colon, _ = source.partition(":")
    return source != "-" and not (colon and kind in _PROGRAMS)


def in_order(works: list[WorkItem]) -> tuple[list[WorkItem], list[str]]:
    """The items, each after its dependencies and without duplicates; and a message for each cycle, whose
    items are left out."""
    by_id: dict[str, WorkItem] = {}
    for work in works:
        by_id.setdefault(work.task_id, work)
    names, cycles = dependency_order.dependencies_first({name: work.after for name, work in by_id.items()})
    caught = {name for cycle in cycles for name in cycle}
    return [by_id[name] for name in names if name not in caught], [
        dependency_order.cycle_text(each) for each in cycles
    ]


def _listed(
    source: str, *, project: str, limit: int, weights: Mapping[str, int], wrong: list[str]
) -> tuple[list[WorkItem], bool]:
    """What the source lists, and whether that is everything."""
    kind, colon, rest = source.partition(":")
    if colon and kind == "gh":
        from holdfast.workspace.git.for_gh import environment_for_gh

        with environment_for_gh(project, github.host_named(rest)) as env:
            raw = run.output(github.argv(rest, most=limit), cwd="/", env=env)
        return github.parse(raw, rest, weights=weights, wrong=wrong), _count(raw) < limit
    if colon and kind in ("bd", "gt"):
        raw = run.output(beads.argv(kind, most=limit), cwd=project, env=_environment(project))
        items = beads.parse(raw, kind, rigs=rest, weights=weights, wrong=wrong)
        return items, kind == "gt" or _count(raw) < limit
    if colon and kind == "cmd":
        _refuse_file_name(source)
        raw = run.output(["/bin/sh", "-c", rest], cwd=project)
    elif os.path.isdir(source):
        return folder.read(source, weights=weights, wrong=wrong), True
    elif os.path.isfile(source) or source == "-":
        raw = run.contents(source)
    else:
        raise UsageError(
            f"{source}: no such file, directory or source",
            hint="a .json, .jsonl or directory of .md files; gh:label=NAME[,repo=OWNER/NAME]; bd: ;"
            " gt:[RIG,…] ; cmd:COMMAND",
        )
    return lines.parse(raw, source=source, weights=weights, wrong=wrong), True


def _refuse_file_name(source: str) -> None:
    """Raises UsageError for a command that is the name of a file: a shell may have put it in place of `*`."""
    if os.path.lexists(source):
        raise UsageError(
            f"{source}: there is a file with this name, so the command is not run",
            hint="put ./ before the name of a file, or remove it",
        )


def _environment(project: str) -> dict[str, str]:
    """For programs that run git in the project, whose settings an agent can write."""
    from holdfast.workspace.git.execute import environment_for_others

    return environment_for_others(project)


def _count(raw: bytes) -> int:
    """How many items a program listed, valid or not."""
    try:
        listed = json.loads(raw or b"[]")
    except (ValueError, RecursionError):
        return 0
    return len(listed) if isinstance(listed, list) else 0  # pyright: ignore[reportUnknownArgumentType]
