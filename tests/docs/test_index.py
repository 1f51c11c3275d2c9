"""docs/README.md and docs/decisions/README.md: every page is in them, under its own title, and every link leads somewhere."""

from __future__ import annotations

import glob
import os
import re

import pytest

from tests.support import pages

DOCS = os.path.join(pages.ROOT, "docs")
INDEXES = ("docs/README.md", "docs/contracts/README.md", "docs/decisions/README.md")


def below(index: str) -> set[str]:
    """The files that an index links to, named from the root."""
    folder = os.path.dirname(index)
    return {os.path.normpath(os.path.join(folder, link)) for link in pages.links(pages.read(index))}


def test_every_page_is_in_an_index() -> None:
    found = {
        os.path.relpath(path, pages.ROOT)
        for path in glob.glob(os.path.join(DOCS, "**", "*.md"), recursive=True)
    }
    assert found - {"docs/README.md"} <= set[str]().union(*map(below, INDEXES))


def test_every_decision_is_listed_with_its_title() -> None:
    listed = re.findall(r"^\| \[(\d{4})\]\((.*?)\) \| (.*?) \| ", pages.read(INDEXES[2]), re.MULTILINE)
    titles = []
    for path in sorted(glob.glob(os.path.join(DOCS, "decisions", "[0-9]*.md"))):
        number, _, title = pages.read(path).partition("\n")[0].removeprefix("# ").partition(": ")
        titles.append((number, os.path.basename(path), title))
    assert listed == titles


@pytest.mark.parametrize(
    "page", sorted(glob.glob("**/*.md", root_dir=os.path.join(pages.ROOT, "docs"), recursive=True))
)
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", pages.read(f"docs/{page}"), flags=re.DOTALL | re.MULTILINE)
    for link in pages.links(text):
        if "://" not in link:
            assert os.path.exists(os.path.join(DOCS, os.path.dirname(page), link)), link
