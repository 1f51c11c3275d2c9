"""A directory of Markdown files: the front matter has title, priority, agent, after …, and the body is the
prompt."""

from __future__ import annotations

import os

from holdfast.errors import UsageError
from holdfast.pipeline.define import yaml_file
from holdfast.queue.engine import WEIGHTS
from holdfast.queue.sources import run
from holdfast.queue.work_item import CollectErrors, from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.pipeline.define.problem import Problem
    from holdfast.queue.work_item import WorkItem


def read(
    path: str, *, weights: Mapping[str, int] = WEIGHTS, wrong: list[str] | None = None
) -> list[WorkItem]:
    """One item per `.md` file, sorted by name.

    Errors go to `wrong`; without it, raises UsageError, UnreadableFile.
    """
    items: list[WorkItem] = []
    for name in sorted(name for name in os.listdir(path) if name.endswith(".md") and name[0] != "."):
        each = os.path.join(path, name)
        with CollectErrors(wrong):
            work = parse(run.contents(each, inside=path), each, weights=weights)
            items += [work] if work is not None else []
    return items


def parse(raw: bytes, path: str, *, weights: Mapping[str, int] = WEIGHTS) -> WorkItem | None:
    """The item of one file. Its id comes from the front matter or the file name."""
    head, body = split(raw.decode("utf-8-sig", "replace"))
    fields = front_matter(head, path)
    title = fields.get("title") or _first_heading(body)
    item = {"id": os.path.basename(path).removesuffix(".md"), **fields}
    if title:
        item["title"] = title
    if body.strip():
        item["prompt"] = body.strip()
    return from_json(item, source=path, where=path, weights=weights)


def split(text: str) -> tuple[str, str]:
    """Split into front matter (may be empty) and body."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return "", text
    for at, line in enumerate(lines[1:], 1):
        if line.strip() == "---":
            return "".join(lines[1:at]), "".join(lines[at + 1 :])
    return "", text


def front_matter(text: str, path: str) -> dict[str, Any]:
    """Parse the front matter."""
    if not text.strip():
        return {}
    problems: list[Problem] = []
    # Add a line for the `---` above it, so that line numbers in problems are those of the file.
    node = yaml_file.parse(b"\n" + text.encode(), path, problems)
    if problems:
        first = problems[0]
        raise UsageError(
            f"{path}:{first.line}: {first.message}", hint=first.hint or "write one `name: value` per line"
        )
    if node is None or not isinstance(node.value, dict):
        raise UsageError(
            f"{path}: the front matter has no `name: value` lines", hint="write one `name: value` per line"
        )
    fields: dict[str, Any] = yaml_file.plain(node)
    return fields


def _first_heading(body: str) -> str:
    for line in body.splitlines():
        if line.startswith("# "):
            return line[2:].strip()
        if line.strip():
            return line.strip()[:80]
    return ""
