"""The list of planted bugs: read, and checked against the tree."""

from __future__ import annotations

import ast
import os
import tomllib
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PACKAGE = os.path.join("src", "holdfast")


class Bug(NamedTuple):
    """One small edit of one file."""

    name: str
    says: str
    #: The file, from the root of the tree.
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted_in(self, text: str) -> str:
        """The file's text with the bug. Raises ValueError where its place is gone, or is there more than once."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"the old text is in {self.file} {count} times, not once")
        return text.replace(self.old, self.new)


def read_all(folder: str = os.path.join(HERE, "bugs")) -> list[Bug]:
    """Every bug of every list. Raises ValueError for two with one name."""
    bugs: dict[str, Bug] = {}
    for list_name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, list_name), "rb") as file:
            entries = tomllib.load(file)
        for name, entry in entries.items():
            if name in bugs:
                raise ValueError(f"{list_name}: there is another {name}")
            tests = entry["test"]
            bugs[name] = Bug(
                name=name,
                says=entry["says"],
                file=os.path.join(PACKAGE, entry["file"]),
                old=entry["old"],
                new=entry["new"],
                tests=tuple(tests) if isinstance(tests, list) else (tests,),
            )
    return list(bugs.values())


def problems(bug: Bug, root: str = ROOT) -> list[str]:
    """Why a bug cannot be planted, or its test not be run."""
    found: list[str] = []
    try:
        with open(os.path.join(root, bug.file), encoding="utf-8") as file:
            planted = bug.planted_in(file.read())
        compile(planted, bug.file, "exec", dont_inherit=True)
    except (OSError, ValueError, SyntaxError) as error:
        found.append(str(error))
    found += [f"there is no test {test}" for test in bug.tests if not _has_test(test, root)]
    return found


def _has_test(test: str, root: str) -> bool:
    path, _, name = test.partition("::")
    name = name.partition("[")[0]
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except OSError:
        return False
    return not name or any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)
