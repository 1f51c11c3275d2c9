"""The indexes list every page, links resolve, pages named in the code exist, and prose is wrapped."""

from __future__ import annotations

import glob
import os
import re

import pytest

from tests.support import pages

DOCS = os.path.join(pages.ROOT, "docs")
INDEXES = ("docs/README.md", "docs/contracts/README.md", "docs/decisions/README.md")


#: Written by programs.
GENERATED = {
    "docs/agents.md",
    "docs/benchmarks.md",
    "docs/conformance.md",
    "docs/reference/manifest.md",
}


def _by_hand() -> list[str]:
    found = glob.glob("docs/**/*.md", root_dir=pages.ROOT, recursive=True)
    return sorted(set(found) - GENERATED)


def _prose(page: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", pages.read(page), flags=re.DOTALL | re.MULTILINE)


def below(index: str) -> set[str]:
    """The files that an index links to, relative to the root."""
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
def test_links_resolve(page: str) -> None:
    for link in pages.links(_prose(f"docs/{page}")):
        if "://" not in link:
            assert os.path.exists(os.path.join(DOCS, os.path.dirname(page), link)), link


def _anchors(page: str) -> set[str]:
    """What GitHub makes of the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *_by_hand()])
def test_links_to_headings_resolve(page: str) -> None:
    for link, anchor in re.findall(r"\]\(([^)#]*)#([^)]+)\)", _prose(page)):
        if "://" not in link:
            target = os.path.normpath(os.path.join(os.path.dirname(page), link)) if link else page
            assert anchor in _anchors(target), f"{link}#{anchor}"


def test_pages_named_in_the_code_exist() -> None:
    missing = []
    for folder in ("src", "tests", "benchmarks", "contracts"):
        for path in glob.glob(os.path.join(pages.ROOT, folder, "**", "*.py"), recursive=True):
            with open(path, encoding="utf-8") as file:
                named = re.findall(
                    r"\bdocs/(?:decisions|reference|contracts|guides)/[\w/-]+\.md", file.read()
                )
            missing += [
                f"{os.path.relpath(path, pages.ROOT)}: {page}"
                for page in named
                if not os.path.exists(os.path.join(pages.ROOT, page))
            ]
    assert missing == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *_by_hand()])
def test_prose_has_at_most_110_columns(page: str) -> None:
    text = re.sub(r"<!-- generated: .*?<!-- end -->", "", _prose(page), flags=re.DOTALL)
    wide = [
        line for line in text.splitlines() if len(line) > 110 and not line.startswith("|") and " " in line
    ]
    assert wide == []


def test_nothing_says_to_install_holdfast_by_name() -> None:
    # The package index has another project of this name.
    texts = [*_by_hand(), "README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
    texts += glob.glob("src/holdfast/**/*.py", root_dir=pages.ROOT, recursive=True)
    texts += glob.glob("src/holdfast/**/*.md", root_dir=pages.ROOT, recursive=True)
    by_name = re.compile(
        r"\b(?:pipx?|uv|uvx)\b[^\n]*\b(?:install|inject|add|run)\s[^\n]*(?<![\w./-])holdfast\b(?!/)"
    )
    found = {text: match[0] for text in texts if (match := by_name.search(pages.read(text)))}
    assert not found
