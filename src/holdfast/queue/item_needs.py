"""What a work item asks for that needs trust, if its source is a file or folder inside a project."""

from __future__ import annotations

import os

from holdfast import files
from holdfast.config import classes, needs
from holdfast.queue.work_item import BOOTSTRAPS, WorkItem
from holdfast.store.digest import sha256

_MAX_BYTES = 1024 * 1024


def part_of(work: WorkItem, contents: dict[str, bytes | None] | None = None) -> needs.Part:
    """An item is one part: to trust it does not mean to trust what is added to its file later.

    `contents` gets the files that it names, as they were read: real path → content, or None
    if it cannot be read.
    """
    contents = {} if contents is None else contents
    found: list[needs.Need] = []
    for field in WorkItem.fields:
        kind, value = classes.of_work_item(field), getattr(work, field)
        if not kind or not value or (field == "bootstrap" and value in BOOTSTRAPS):
            continue
        data, why = _named(field, value, contents)
        found.append(needs.Need(kind, field, needs.text(value) + why, data))
    if work.options and work.agent:
        # What is trusted for one agent is not for another one.
        found.append(needs.Need(classes.PROGRAMS, "agent", needs.text(work.agent)))
    name = os.path.basename(work.source)
    return needs.Part(name if name == f"{work.key}.md" else f"{name}: {work.key}", found)


def _named(
    field: str, value: str | tuple[str, ...], contents: dict[str, bytes | None]
) -> tuple[bytes | None, str]:
    """The digests of the files that a bootstrap or an option names, None if there are none; and why one of
    them cannot be trusted."""
    paths = [value] if isinstance(value, str) else [text.partition("=")[2] for text in value]
    found, why = b"", ""
    for path in paths if field in ("bootstrap", "options") else ():
        if not os.path.isfile(path):
            continue
        data, problem = _content(path)
        contents[os.path.realpath(path)] = data
        if data is None:
            why = f" (it cannot be trusted: {path}: {problem})"
        # Another one each time: what is not read is never the file that was trusted.
        digest = os.urandom(32) if data is None else sha256(data).encode()
        found += os.fsencode(path) + b"\0" + digest
    return found or None, why


def _content(path: str) -> tuple[bytes | None, str]:
    """The content of a file, or why there is none."""
    try:
        data = files.read(path, _MAX_BYTES, follow=True)
    except OSError as error:
        return None, str(error.strerror)
    if len(data) > _MAX_BYTES:
        return None, f"it has more than {_MAX_BYTES} bytes"
    return data, ""
