"""What a work item asks for that needs trust, if its source is a file or folder inside a project."""

from __future__ import annotations

import os

from holdfast import files
from holdfast.config import classes, needs
from holdfast.queue.work_item import BOOTSTRAPS, WorkItem

_MAX_BYTES = 1024 * 1024


def part_of(work: WorkItem) -> needs.Part:
    """An item is one part: to trust it does not mean to trust what is added to its file later."""
    found: list[needs.Need] = []
    for field in WorkItem.fields:
        kind, value = classes.of_work_item(field), getattr(work, field)
        if not kind or not value or (field == "bootstrap" and value in BOOTSTRAPS):
            continue
        found.append(needs.Need(kind, field, needs.text(value), _named(field, value)))
    if work.options and work.agent:
        # What is trusted for one agent is not for another one.
        found.append(needs.Need(classes.PROGRAMS, "agent", needs.text(work.agent)))
    name = os.path.basename(work.source)
    return needs.Part(name if name == f"{work.key}.md" else f"{name}: {work.key}", found)


def _named(field: str, value: str | tuple[str, ...]) -> bytes | None:
    """The content of files that a bootstrap or an option names; None if there are none."""
    paths = [value] if isinstance(value, str) else [text.partition("=")[2] for text in value]
    if field not in ("bootstrap", "options"):
        return None
    found = [_content(path) for path in paths if os.path.isfile(path)]
    return b"\0".join(found) if found else None


def _content(path: str) -> bytes:
    """A file that cannot be read is reported when the task is made."""
    try:
        return files.read(path, _MAX_BYTES, follow=True)
    except OSError:
        return b""
