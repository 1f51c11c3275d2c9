"""Requirements and the tests that cover them, compared in both directions.

Markers are found by parsing the source, so nothing is imported or run. `python -m tests.support.requirements`
prints the state of each milestone.
"""

from __future__ import annotations

import ast
import os
import re
import tomllib
from typing import Any, NamedTuple

from tests.support import sources

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ID = re.compile(r"[A-Z]+-(?:[A-C]?)\d+")
STATUSES = ("open", "built")
#: In the order in which they are built.
MILESTONES = (
    "core",
    "command line",
    "agents",
    "pipelines",
    "queue",
    "house",
    "hardening",
    "trust",
    "daily use",
    "data layer",
    "views",
    "fleet",
    "release",
)


class Use(NamedTuple):
    """One `pytest.mark.req(...)` in the tests. `id` is None if an argument is not a plain string."""

    id: str | None
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def load(path: str = os.path.join(TESTS, "requirements.toml")) -> dict[str, dict[str, Any]]:
    """Requirements by id."""
    with open(path, "rb") as file:
        return tomllib.load(file)


def uses(root: str = TESTS) -> list[Use]:
    """Every use of the marker below `root`, in order of file and line."""
    found: list[Use] = []
    for path, text in sources.below(root):
        found += uses_in(text, os.path.relpath(path, os.path.dirname(root)))
    return found


def uses_in(source: str, file: str) -> list[Use]:
    """Every use of the marker in one source text: decorator, `pytestmark`, or `marks=` of a parameter."""
    found: list[Use] = []
    for node in ast.walk(ast.parse(source, file)):
        if isinstance(node, ast.Call) and _is_req(node.func):
            for arg in node.args:
                value = arg.value if isinstance(arg, ast.Constant) else None
                found.append(Use(value if isinstance(value, str) else None, file, arg.lineno))
    return sorted(found, key=lambda use: use.line)


def problems(listed: dict[str, dict[str, Any]], used: list[Use]) -> list[str]:
    """One sentence per mismatch; empty if list and tests agree."""
    found: list[str] = []
    for id_, entry in listed.items():
        if not ID.fullmatch(id_):
            found.append(f"{id_}: not an id")
        if set(entry) - {"also"} != {"text", "milestone", "status"}:
            found.append(f"{id_}: has {sorted(entry)}, needs text, milestone and status")
            continue
        if entry["status"] not in STATUSES:
            found.append(f"{id_}: unknown status {entry['status']!r}")
        found += [
            f"{id_}: unknown milestone {name!r}"
            for name in (entry["milestone"], *entry.get("also", ()))
            if name not in MILESTONES
        ]
    covered = {use.id for use in used}
    found += [
        f"{id_}: marked built, but no test names it"
        for id_, entry in listed.items()
        if entry.get("status") == "built" and id_ not in covered
    ]
    for use in used:
        if use.id is None:
            found.append(f"{use}: req() takes plain strings only")
        elif use.id not in listed:
            found.append(f"{use}: {use.id} is not in tests/requirements.toml")
    return found


def _is_req(func: ast.expr) -> bool:
    """`pytest.mark.req` or `mark.req`."""
    if not (isinstance(func, ast.Attribute) and func.attr == "req"):
        return False
    mark = func.value
    return (isinstance(mark, ast.Attribute) and mark.attr == "mark") or (
        isinstance(mark, ast.Name) and mark.id == "mark"
    )


def main() -> None:
    listed, used = load(), uses()
    counts: dict[str, int] = {}
    for use in used:
        if use.id is not None:
            counts[use.id] = counts.get(use.id, 0) + 1
    for milestone in MILESTONES:
        entries = {id_: entry for id_, entry in listed.items() if entry["milestone"] == milestone}
        built = sum(entry["status"] == "built" for entry in entries.values())
        print(
            f"{milestone}: {built} of {len(entries)} built"
            if entries
            else f"{milestone}: no requirements yet"
        )
        for id_, entry in entries.items():
            tests = counts.get(id_, 0)
            if entry["status"] == "open":
                print(f"  {id_:7} {tests or '-':>3}  {entry['text']}")
    for sentence in problems(listed, used):
        print(f"problem: {sentence}")


if __name__ == "__main__":
    main()
