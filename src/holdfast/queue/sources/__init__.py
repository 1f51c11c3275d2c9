"""Where work comes from. Each source is a pure `parse`; `read` runs or opens what a text such as `gh:label=agent` names."""

from __future__ import annotations

import os

from holdfast.errors import UsageError
from holdfast.queue.engine import MOST, WEIGHTS
from holdfast.queue.sources import beads, folder, github, lines, run
from holdfast.queue.work import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.queue.work import Work


def read(
    source: str,
    *,
    project: str,
    most: int = MOST,
    weights: Mapping[str, int] = WEIGHTS,
    order: Sequence[str] = (),
) -> list[Work]:
    """The items of a source that are ready: the most urgent first, among equals by `order` of their projects. Raises UsageError, CommandNotFound, NotPossible."""
    kind, colon, rest = source.partition(":")
    if colon and kind == "gh":
        argv = github.argv(rest, most=most)
        found = github.parse(run.output(argv, cwd=project), rest, weights=weights)
    elif colon and kind in ("bd", "gt"):
        argv = beads.argv(kind, most=most)
        found = beads.parse(run.output(argv, cwd=project), kind, rigs=rest, weights=weights)
    elif colon and kind == "cmd":
        found = lines.parse(run.output(["sh", "-c", rest], cwd=project), source=source, weights=weights)
    elif os.path.isdir(source):
        found = folder.read(source, weights=weights)
    elif os.path.isfile(source) or source == "-":
        found = lines.parse(run.contents(source), source=source, weights=weights)
    else:
        raise UsageError(
            f"{source}: no such file or folder, and no source",
            hint="a .json, .jsonl or folder of .md files; gh:label=NAME[,repo=OWNER/NAME]; bd: ; gt:[RIG,…] ; cmd:COMMAND",
        )
    return sorted(found, key=lambda work: (-work.priority, rank(work, order)))[:most]
