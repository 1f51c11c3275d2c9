"""Markdown as agents write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.markdown import code_blocks, find, sections, unwrapped

BRIEF = """Here it is.

# Brief

## **Findings:** ##
one
```sh
# not a heading
## neither
```
## 2. Test gaps (3)
two
### Detail
three
## Updated Context
Pack

### 0) Goal
four
#include <stdio.h>
    # indented code
##Minimal fix
five
"""


def test_headings_come_in_order_with_level_and_line() -> None:
    assert [(found.level, found.title, found.line) for found in sections(BRIEF)] == [
        (1, "Brief", 3),
        (2, "**Findings:**", 5),
        (2, "2. Test gaps (3)", 11),
        (3, "Detail", 13),
        (2, "Updated Context", 15),
        (3, "0) Goal", 18),
        (2, "Minimal fix", 22),
    ]


def test_a_body_goes_to_the_next_heading_of_its_level_or_a_higher_one() -> None:
    gaps = find(sections(BRIEF), "Test gaps")
    assert gaps is not None
    assert gaps.body == "two\n### Detail\nthree"


@pytest.mark.req("GAT-5")
@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("findings", "one\n```sh\n# not a heading\n## neither\n```"),
        ("MINIMAL FIX", "five"),
        ("0. Goal", "four\n#include <stdio.h>\n    # indented code"),
        ("Goal", "four\n#include <stdio.h>\n    # indented code"),
        ("updated context pack", "### 0) Goal\nfour\n#include <stdio.h>\n    # indented code"),
    ],
)
def test_a_title_is_found_whatever_its_case_emphasis_number_or_wrapping(title: str, body: str) -> None:
    found = find(sections(BRIEF), title)
    assert found is not None
    assert found.body == body


@pytest.mark.parametrize(
    "title", ["not a heading", "neither", "Find", "Test", "1. Goal", "indented code", "one"]
)
def test_what_is_no_heading_is_not_found(title: str) -> None:
    assert find(sections(BRIEF), title) is None


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("## Go/No-Go: go", "Go/No-Go"),
        ("## Go/No-Go — no-go", "go/no-go"),
        ("# Pre-execution checks", "Pre-execution checks"),
        ("###### `Scope`", "Scope"),
        ("## __Scope__", "Scope"),
        ("   ## Scope\r", "Scope"),
        ("##\nScope", "Scope"),
        ("## 9\\. Change History", "9. Change History"),
        ("## Added or\nUpdated\nTests", "Added or Updated Tests"),
        ("## snake_case_name", "snake_case_name"),
    ],
)
def test_headings_that_agents_write(heading: str, title: str) -> None:
    assert find(sections(f"text\n\n{heading}\n\nbody"), title) is not None


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh",
        "#123",
        "####### seven",
        "    ## code",
        "> ## quoted",
        "## Scopes",
        "## Scope of it",
        "##\n\nScope",
    ],
)
def test_and_what_only_looks_like_one(text: str) -> None:
    assert find(sections(text), "Scope") is None


def test_a_fence_is_closed_only_by_its_own_kind_and_length() -> None:
    text = "````md\n```\n# a\n```\n~~~\n````\n# b\n~~~\n# c\n```\n~~~~\n# d"
    assert [found.title for found in sections(text)] == ["b", "d"]
    assert [(block.line, block.text, block.is_closed) for block in code_blocks(text)] == [
        (1, "```\n# a\n```\n~~~", True),
        (8, "# c\n```", True),
    ]


def test_three_backticks_in_one_line_open_nothing() -> None:
    assert [found.title for found in sections("```ls``` is a command\n# a")] == ["a"]


def test_a_block_without_its_end_goes_to_the_end() -> None:
    (block,) = code_blocks("```Bash title=x\nls\n# here")
    assert (block.language, block.text, block.is_closed) == ("bash", "ls\n# here", False)


def test_a_fence_around_the_whole_document_is_looked_through() -> None:
    text = "Here you are:\n\n```markdown\n# A\n```sh\n# x\n```\n## B\n```\n\n"
    assert [(found.title, found.line) for found in sections(text)] == [("A", 4), ("B", 8)]
    assert [block.text for block in code_blocks(text)] == ["# x"]
    assert unwrapped(text) == "# A\n```sh\n# x\n```\n## B"


def test_a_document_that_begins_with_a_sample_is_not_taken_for_one() -> None:
    text = "```markdown\n# sample\n```\n## Summary\n```sh\nls\n```"
    assert [found.title for found in sections(text)] == ["Summary"]
    assert unwrapped(text) == text


PIECES = st.sampled_from(
    ["# a", "## b", "```", "~~~", "```md", "text", "", "   ", "\r", "##", "> q", "\u2028"]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=30))
def test_any_text_is_read_and_its_sections_are_where_they_say(pieces: list[str]) -> None:
    text = "\n".join(pieces)
    lines = text.split("\n")
    found = sections(text)
    assert [one.line for one in found] == sorted({one.line for one in found})
    for one in found:
        assert lines[one.line - 1].lstrip(" ").startswith("#" * one.level)
        assert one.body in text.replace("\r", "") or "\r" in text
    for block in code_blocks(text):
        assert lines[block.line - 1].strip()[:3] in ("```", "~~~")
