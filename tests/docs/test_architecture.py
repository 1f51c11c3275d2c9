"""docs/architecture.md: the files, packages and steps that it names are those of the code."""

from __future__ import annotations

import os
import re

import pytest

from tests.support import pages

PACKAGE = os.path.join(pages.ROOT, "src", "holdfast")
STEPS = os.path.join(PACKAGE, "runner", "plan", "step.py")


def page() -> str:
    return pages.read("docs/architecture.md")


def _files() -> list[str]:
    return sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", page())))


@pytest.mark.parametrize("path", _files())
def test_files_exist(path: str) -> None:
    assert os.path.exists(os.path.join(PACKAGE, path))


def test_every_step_is_named() -> None:
    with open(STEPS, encoding="utf-8") as file:
        steps = re.findall(r"^class (\w+)\(Record\)", file.read(), re.MULTILINE)
    assert [step for step in steps if f"`{step}`" not in page()] == []


def test_the_tree_has_every_package() -> None:
    tree = page().partition("## The tree")[2]
    names = {name.removesuffix(".py") for name in os.listdir(PACKAGE) if not name.startswith("_")}
    assert [name for name in names - {"py.typed"} if not re.search(rf"\b{name}\b", tree)] == []
