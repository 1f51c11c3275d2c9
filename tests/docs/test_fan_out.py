"""docs/guides/fan-out.md: its plan is valid, and its console blocks run as shown."""

from __future__ import annotations

import os
import sys

import pytest

from tests.support import pages
from tests.support.fanouts import agent
from tests.support.repos import Repo
from tests.support.tasks import workspace


def page() -> str:
    return pages.read("docs/guides/fan-out.md")


@pytest.mark.req("GAT-13")
@pytest.mark.timeout(180)
def test_it_runs_as_shown(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=":")
    repo = Repo(workspace())
    repo.write(".gitignore", "*.json\n*.yaml\n")
    repo.commit(".gitignore")
    repo.write("plan.yaml", pages.fenced(page(), "yaml"))
    scenario = agent(
        ("greeting", "echo hello > greeting.txt"),
        ("farewell", "echo goodbye > farewell.txt"),
        ("letter", "cat greeting.txt farewell.txt > letter.txt"),
    )
    scenario.write_to(os.path.join(repo.path, "agent.json"))
    for command, expected in [step for block in pages.blocks(page()) for step in pages.steps(block)]:
        pages.check(["sh", "-c", command], command, expected, home=home)
    assert repo.read("letter.txt") == "hello\ngoodbye\n"


def test_links_resolve() -> None:
    for link in pages.links(page()):
        assert os.path.exists(os.path.join(pages.ROOT, "docs", "guides", link)), link
