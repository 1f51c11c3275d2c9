"""A folder of Markdown files: the front matter says title, priority, agent, after …, and the body is the prompt."""

from __future__ import annotations

import os

from holdfast.errors import UsageError
from holdfast.pipeline.define import yaml_file
from holdfast.queue.engine import WEIGHTS
from holdfast.queue.sources import run
from holdfast.queue.work import Aside, from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.pipeline.define.problem import Problem
    from holdfast.pipeline.define.yaml_file import Node
    from holdfast.queue.work import Work


def read(path: str, *, weights: Mapping[str, int] = WEIGHTS, wrong: list[str] | None = None) -> list[Work]:
    """One item for each `.md` file, in the order of their names. What is none goes into `wrong`; without one it raises
    UsageError, UnreadableFile."""
    found: list[Work] = []
    for name in sorted(name for name in os.listdir(path) if name.endswith(".md") and name[0] != "."):
        each = os.path.join(path, name)
        with Aside(wrong):
            work = parse(run.contents(each), each, weights=weights)
            found += [work] if work is not None else []
    return found


def parse(raw: bytes, path: str, *, weights: Mapping[str, int] = WEIGHTS) -> Work | None:
    """The item of one file. Its id is in the front matter, or else the file's name."""
    head, body = split(raw.decode("utf-8-sig", "replace"))
    given = front_matter(head, path)
    title = given.get("title") or _first_heading(body)
    item = {"id": os.path.basename(path).removesuffix(".md"), **given}
    if title:
        item["title"] = title
    if body.strip():
        item["prompt"] = body.strip()
    return from_json(item, source=path, where=path, weights=weights)


def split(text: str) -> tuple[str, str]:
    """(front matter, body); the first is empty where there is none."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return "", text
    for at, line in enumerate(lines[1:], 1):
        if line.strip() == "---":
            return "".join(lines[1:at]), "".join(lines[at + 1 :])
    return "", text


def front_matter(text: str, path: str) -> dict[str, Any]:
    """The YAML of a head."""
    if not text.strip():
        return {}
    problems: list[Problem] = []
    # The rule above it is line 1 of the file: the numbers in problems are those of the file.
    node = yaml_file.parse(b"\n" + text.encode(), path, problems)
    if problems:
        first = problems[0]
        raise UsageError(
            f"{path}:{first.line}: {first.message}", hint=first.hint or "name: value, one a line"
        )
    if node is None or not isinstance(node.value, dict):
        raise UsageError(f"{path}: the front matter has no names", hint="name: value, one a line")
    return {name: _plain(each) for name, each in node.value.items()}


def _plain(node: Node) -> Any:
    value = node.value
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _first_heading(body: str) -> str:
    for line in body.splitlines():
        if line.startswith("# "):
            return line[2:].strip()
        if line.strip():
            return line.strip()[:80]
    return ""
