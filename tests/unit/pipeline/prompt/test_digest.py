"""The digest of a context pack."""

from __future__ import annotations

import pytest

from holdfast.pipeline.prompt.shorten import AUTO_CHARS, digest, needs_digest

PACK = """# Context Pack

## 0. Goal
Migrate.
### Why
Because.
## 1. Non-goals
None.
## 2. Scope
src/
### 6. Prohibited actions
Do not push.
## 3. Acceptance criteria
- passes
## 4. Fixed decisions
- pytest
## 5. Files to read
- a.py
## 7. Current state
It is bad.
## 9. Change History
- long ago
"""


@pytest.mark.req("CTX-1", "CTX-2")
@pytest.mark.parametrize(
    ("policy", "chars", "agent", "is_wanted"),
    [
        ("off", 10**6, "codex", False),
        ("auto", AUTO_CHARS, "codex", False),
        ("auto", AUTO_CHARS + 1, "codex", True),
        ("aggressive", 1, "codex", True),
        ("off", 1, "copilot", True),
        ("auto", 1, "copilot", True),
    ],
)
def test_the_policy_decides_and_copilot_always_gets_it(
    policy: str, chars: int, agent: str, is_wanted: bool
) -> None:
    assert needs_digest(policy, "x" * chars, agent) is is_wanted


@pytest.mark.req("CTX-2")
def test_it_keeps_the_sections_that_matter_and_their_parts_once() -> None:
    text = digest(PACK)
    for kept in ("Migrate.", "Because.", "None.", "src/", "Do not push.", "- passes", "- pytest", "- a.py"):
        assert text.count(kept) == 1, kept
    assert "It is bad." not in text
    assert "long ago" not in text


@pytest.mark.req("CTX-2")
def test_a_section_of_forty_lines_is_whole_and_a_longer_one_says_what_is_missing() -> None:
    lines = [f"line {number}" for number in range(50)]
    whole = digest("## Goal\n\n" + "\n".join(lines[:40]) + "\n\n## Other\nx")
    assert whole == "## Goal\n\n" + "\n".join(lines[:40]) + "\n"
    cut = digest("## Goal\n\n" + "\n".join(lines) + "\n\n## Scope\nsrc/")
    assert cut == (
        "## Goal\n\n"
        + "\n".join(lines[:40])
        + "\n[… 10 more lines of this section are left out …]\n\n## Scope\n\nsrc/\n"
    )


def test_a_code_block_that_is_cut_is_closed() -> None:
    text = digest("# Goal\n~~~python\n" + "x = 1\n" * 60 + "~~~\n# Scope\nsrc/\n")
    assert "x = 1\n~~~\n[… 22 more lines" in text
    assert text.endswith("## Scope\n\nsrc/\n")


@pytest.mark.req("CTX-2")
def test_without_a_known_section_the_opening_stays() -> None:
    lines = [f"line {number}" for number in range(130)]
    assert digest("\n".join(lines)) == "\n".join(
        [*lines[:100], "[… 30 more lines of the context are left out …]", ""]
    )
    assert digest("short\n") == "short\n"
    assert digest("") == "\n"


def test_a_line_without_end_is_cut_too() -> None:
    assert len(digest("# Goal\n" + "x" * 10**6)) < 5000
