"""docs/guides/night-shift.md: its settings and files are valid, and its console blocks run as shown."""

from __future__ import annotations

import os
import sys

import pytest

from tests.support import loops, pages
from tests.support.tasks import workspace
from tests.support.tools import need
from tests.support.waiting import eventually


def page() -> str:
    return pages.read("docs/guides/night-shift.md")


@pytest.mark.req("QUE-2", "INT-3", "AUD-6")
def test_the_night_runs_as_shown(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need("jq")
    monkeypatch.delenv("HOLDFAST_KEEPER")
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=":")
    loops.settings(pages.fenced(page(), "toml"))
    with open(os.path.join(workspace(), "review.json"), "w", encoding="utf-8") as file:
        file.write(pages.fenced(page(), "json"))
    for command, expected in [step for block in pages.blocks(page()) for step in pages.steps(block)]:
        if "night.log" in command:
            eventually(
                lambda: os.path.exists(os.path.expanduser("~/night.log")), what="a notice is delivered"
            )
        pages.check(["sh", "-c", command], command, expected, home=home)


def test_links_resolve() -> None:
    for link in pages.links(page()):
        assert os.path.exists(os.path.join(pages.ROOT, "docs", "guides", link)), link
