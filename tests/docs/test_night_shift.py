"""docs/guides/night-shift.md: its settings read, its files play, and its console blocks are what really happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.docs.test_readme import ROOT, blocks, matches, steps
from tests.support import loops
from tests.support.tasks import workspace
from tests.support.tools import need
from tests.support.waiting import eventually


def page() -> str:
    with open(os.path.join(ROOT, "docs", "guides", "night-shift.md"), encoding="utf-8") as file:
        return file.read()


def fenced(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", page(), re.DOTALL | re.MULTILINE)
    return found


@pytest.mark.req("QUE-2", "INT-3", "AUD-6")
def test_the_night_goes_as_told(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need("jq")
    monkeypatch.delenv("HOLDFAST_KEEPER")
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=":")
    loops.settings(fenced("toml"))
    with open(os.path.join(workspace(), "review.json"), "w", encoding="utf-8") as file:
        file.write(fenced("json"))
    for command, expected in [step for block in blocks(page()) for step in steps(block)]:
        if "night.log" in command:
            eventually(lambda: os.path.exists(os.path.expanduser("~/night.log")), what="somebody is told")
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=workspace(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
        printed = done.stdout.decode().replace(home, "/home/you/.local/state/holdfast")
        wanted = "\n".join(expected)
        assert matches(expected, printed), f"$ {command}\n--- guide:\n{wanted}\n--- really:\n{printed}"


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", page()):
        assert os.path.exists(os.path.join(ROOT, "docs", "guides", link)), link
