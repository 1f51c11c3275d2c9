"""docs/security.md names every option that gives up protection, and tests that exist."""

from __future__ import annotations

import os
import re

import pytest

from holdfast.views.cli import verbs

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
#: Options that sound as if they gave up protection, but only change what is shown or awaited.
HARMLESS = {"--no-wait", "--no-tmux", "--no-inhibit"}
SOUNDS_LIKE_BYPASS = re.compile(
    r"--(adopt|no-.*|.*force.*|yolo|.*trust.*|yes|allow-.*|.*unsafe.*|.*insecure.*)"
)


def page() -> str:
    with open(os.path.join(ROOT, "docs", "security.md"), encoding="utf-8") as file:
        return file.read()


def table() -> set[str]:
    """The options in the first column of the section about bypasses."""
    section = page().partition("## What you can switch off")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return {flag for row in rows for flag in re.findall(r"--[a-z-]+", row.split("|")[1])}


def all_flags() -> set[str]:
    options = [option for verb in verbs.VERBS for option in verbs.load(verb).COMMAND.options]
    return {flag for option in options for flag in option.flags if flag.startswith("--")}


@pytest.mark.req("CTX-8")
def test_every_option_that_gives_up_protection_is_listed() -> None:
    sounding = {flag for flag in all_flags() if SOUNDS_LIKE_BYPASS.fullmatch(flag)}
    assert sounding >= {"--yolo", "--force", "--trust-project"}
    assert sounding - HARMLESS == table() - {"--permissions"}


@pytest.mark.req("CTX-8")
def test_the_page_says_what_holds_with_and_without_the_sandbox() -> None:
    section = page().partition("## What only the sandbox guarantees")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and line.count("|") == 4]
    assert "without" in rows[0]
    assert "--sandbox" in rows[0]
    assert len(rows) > 10
    assert all(cell.strip() for row in rows[1:] for cell in row.split("|")[1:4])
    assert "What the sandbox does not do" in section


def test_the_tests_that_it_names_exist() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", page())
    assert len(named) > 4
    assert [path for path in named if not os.path.exists(os.path.join(ROOT, path))] == []
