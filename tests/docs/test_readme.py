"""README: short, with valid links and all verbs, and its console blocks run as shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from holdfast.views.cli import verbs
from tests.support import pages


def readme() -> str:
    return pages.read("README.md")


def test_console_blocks_run_as_shown(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=":")
    steps = [step for block in pages.blocks(readme()) for step in pages.steps(block)]
    assert len(steps) >= 7
    for command, expected in steps:
        pages.check(["sh", "-c", command], command, expected, home=home)


@pytest.mark.parametrize(
    ("expected", "printed", "fits"),
    [
        (["a", "…", "b"], "a\nx\ny\nb\n", True),
        (["a", "…", "b"], "a\nb\n", True),
        (["a", "…"], "b\n", False),
        (["took 1.5s"], "took 22.75s\n", True),
        (["took 1.5s"], "took 22.75s too long\n", False),
        (["error: …"], "error: whatever\n", True),
        ([], "surprise\n", False),
    ],
)
def test_the_comparison_bites(expected: list[str], printed: str, fits: bool) -> None:
    assert pages.matches(expected, printed) is fits


def test_it_has_at_most_150_lines() -> None:
    assert len(readme().splitlines()) <= 150


def test_links_resolve() -> None:
    links = pages.links(readme())
    assert links
    for link in links:
        assert os.path.exists(os.path.join(pages.ROOT, link)), link


def test_every_verb_is_named() -> None:
    text = readme()
    for verb in verbs.VERBS:
        assert re.search(rf"`(holdfast )?{verb}\b", text), f"README does not name {verb}"


def test_make_help_fits_80_columns() -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=pages.ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout
    assert shown.isascii()
    assert [line for line in shown.splitlines() if len(line) > 80] == []
