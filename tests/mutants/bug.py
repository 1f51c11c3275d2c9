"""The list of planted bugs, and whether each can still be planted."""

from __future__ import annotations

import ast
import os
import tomllib
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LISTS = os.path.join(HERE, "bugs")
PACKAGE = os.path.join("src", "holdfast")


class Bug(NamedTuple):
    """A small edit of one file."""

    name: str
    effect: str
    #: The file, relative to the root of the tree.
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted_in(self, text: str) -> str:
        """The file's text with the bug. Raises ValueError unless the old text is there exactly once."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"the old text is in {self.file} {count} times, not once")
        return text.replace(self.old, self.new)


def read_all(folder: str = LISTS) -> list[Bug]:
    """All bugs of all lists. Raises ValueError if a name is used twice."""
    bugs: dict[str, Bug] = {}
    for list_name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, list_name), "rb") as file:
            entries = tomllib.load(file)
        for name, entry in entries.items():
            if name in bugs:
                raise ValueError(f"{list_name}: the name {name} is used twice")
            tests = entry["test"]
            bugs[name] = Bug(
                name=name,
                effect=entry["effect"],
                file=os.path.join(PACKAGE, entry["file"]),
                old=entry["old"],
                new=entry["new"],
                tests=tuple(tests) if isinstance(tests, list) else (tests,),
            )
    return list(bugs.values())


def problems(bug: Bug, root: str = ROOT) -> list[str]:
    """Why the bug cannot be planted, or its test cannot be run."""
    found: list[str] = []
    try:
        with open(os.path.join(root, bug.file), encoding="utf-8") as file:
            planted = bug.planted_in(file.read())
        compile(planted, bug.file, "exec", dont_inherit=True)
    except (OSError, ValueError, SyntaxError) as error:
        found.append(str(error))
    found += [f"there is no test {test}" for test in bug.tests if not _exists(test, root)]
    return found


def _exists(test: str, root: str) -> bool:
    path, _, name = test.partition("::")
    name = name.partition("[")[0]
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except OSError:
        return False
    return not name or any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)
