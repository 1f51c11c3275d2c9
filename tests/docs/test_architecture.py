"""docs/architecture.md and its recipes name only files, packages and steps of the code."""

from __future__ import annotations

import glob
import os
import re

import pytest

from tests.support import pages

PACKAGE = os.path.join(pages.ROOT, "src", "holdfast")
STEPS = os.path.join(PACKAGE, "runner", "plan", "step.py")


def page() -> str:
    return pages.read("docs/architecture.md")


def both() -> str:
    return page() + pages.read("docs/guides/where-to-add.md")


def _root(path: str) -> str:
    return pages.ROOT if path.startswith(("tests/", "contracts/")) else PACKAGE


def _files() -> list[str]:
    return sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", both())))


@pytest.mark.parametrize("path", _files())
def test_files_exist(path: str) -> None:
    assert os.path.exists(os.path.join(_root(path), path))


def test_every_step_is_named() -> None:
    with open(STEPS, encoding="utf-8") as file:
        steps = re.findall(r"^class (\w+)\(Record\)", file.read(), re.MULTILINE)
    assert [step for step in steps if f"`{step}`" not in page()] == []


def _names() -> list[tuple[str, str]]:
    """`name` in `file.py`: the tables, functions and classes that the pages refer to."""
    return re.findall(r"`([A-Za-z_]{3,})`\s+in\s+`([a-z_/]+\.py)`", both())


def test_names_are_found() -> None:
    names = [name for name, _ in _names()]
    assert len([name for name in names if name.isupper()]) >= 30
    assert len([name for name in names if name.islower()]) >= 10


@pytest.mark.parametrize(("name", "path"), _names())
def test_names_exist(name: str, path: str) -> None:
    with open(os.path.join(_root(path), path), encoding="utf-8") as file:
        assert re.search(rf"^(?:\s*(?:def|class) {name}\b|{name}\b.*=)", file.read(), re.MULTILINE)


@pytest.mark.parametrize(
    "pattern", sorted(set(re.findall(r"`((?:agents|gates|views|config)/[a-z_/]*<[a-z]+>[a-z_./]*)`", both())))
)
def test_patterns_match_a_file(pattern: str) -> None:
    assert glob.glob(os.path.join(PACKAGE, re.sub(r"<[a-z]+>", "*", pattern)))


@pytest.mark.parametrize("folder", ["", "views", "views/cli", "runner"])
def test_the_tree_has_every_package(folder: str) -> None:
    tree = (
        page().partition("## Inside the runner")[2]
        if folder == "runner"
        else page().partition("## The tree")[2]
    )
    names = {name for name in os.listdir(os.path.join(PACKAGE, folder)) if not name.startswith("_")}
    if folder:  # their modules are not listed
        names = {name for name in names if os.path.isdir(os.path.join(PACKAGE, folder, name))}
    names = {name.removesuffix(".py") for name in names - {"py.typed"}}
    assert [name for name in names if not re.search(rf"\b{name}\b", tree)] == []
