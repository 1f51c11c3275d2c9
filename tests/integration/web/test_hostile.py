"""Hostile text in every field that a page shows: nothing of it becomes markup, runs, or is a link."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from holdfast.testing import Scenario
from tests.support.browser import browsing
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.web import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.timeout(240)

HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script> [link](javascript:alert(3)) "
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eesrever\u202c &lt;b&gt; ${7*7} </textarea>"
)
LONG = "x" * 5_000_000
_MARK = "<script>alert(2)</script>"


@pytest.fixture
def served(home: str) -> Iterator[Served]:
    workspace()
    with serving() as server:
        yield server


def _assert_harmless(page: Page) -> None:
    found = page.evaluate(
        """() => ({
          images: [...document.images].filter((each) => !each.src.endsWith('/icon.svg')).length,
          scripts: document.querySelectorAll('#app script').length,
          links: [...document.links].filter((each) => !/^https?:$/.test(each.protocol)).length,
          handlers: document.querySelectorAll('[onerror], [onclick], [onload]').length,
          bidi: /[\\u202a-\\u202e\\u2066-\\u2069\\x07\\x1b]/.test(document.body.textContent),
          titles: [...document.querySelectorAll('[title], [aria-label], [value]')]
            .filter((each) => /[\\u202a-\\u202e\\u2066-\\u2069\\x07]/.test(each.outerHTML)).length,
        })"""
    )
    harmless = {"images": 0, "scripts": 0, "links": 0, "handlers": 0, "bidi": False, "titles": 0}
    assert found == harmless


def test_what_an_agent_changed_and_what_a_gate_said(served: Served) -> None:
    """Diff, gate evidence, files, attempts and events."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("a.txt", "a\n")
    repo.commit("a.txt")
    text = f"{HOSTILE}\n{LONG}\n"
    scenario = (
        Scenario()
        .say(HOSTILE)
        .tool(HOSTILE, command="true", arguments={"command": HOSTILE}, output=HOSTILE)
        .write("a.txt", content=text)
        .write("<img src=x onerror=alert(1)>.md", content=HOSTILE)
        .result(HOSTILE)
    )
    task = Task.play(scenario, "--id", "it", "--accept", "cat a.txt; false", project=repo.path)
    task.wait_for("failed", "abandoned", "interrupted", within_s=60)
    os.makedirs(task.path("outputs"), exist_ok=True)
    for name in ("note.md", "note.txt"):
        with open(task.path("outputs", name), "w", encoding="utf-8") as file:
            file.write(text)
    with browsing(served, "hostile-work") as page:
        page.goto(f"{served.base}/task/it?tab=diff")
        page.locator(".split .add", has_text=_MARK).first.wait_for()
        page.locator(".path", has_text="<img src=x onerror=alert(1)>.md").wait_for()
        _assert_harmless(page)
        page.get_by_role("tab", name="Gates").click()
        page.locator(".gate.tone-bad .evidence", has_text=_MARK).first.wait_for()
        _assert_harmless(page)
        page.get_by_role("tab", name="Files").click()
        for name in ("outputs/note.md", "outputs/note.txt"):
            page.locator(".files nav button", has_text=name).click()
            page.locator(".content", has_text=_MARK).wait_for()
            _assert_harmless(page)
        page.get_by_role("tab", name="Events").click()
        page.locator(".events", has_text=_MARK).wait_for()
        _assert_harmless(page)
        page.get_by_role("tab", name="Attempts").click()
        for box in page.locator(".attempts input[type=checkbox]").all()[:2]:
            box.click()
        _assert_harmless(page)
        page.get_by_role("slider", name="Replay").press("Home")
        page.get_by_role("group", name="Replay").wait_for()
        _assert_harmless(page)


def test_the_queue_the_figures_and_the_form(served: Served, home: str) -> None:
    name = HOSTILE.replace("\x07", "")
    Task.play(Scenario().tool(HOSTILE, command="true").result("ok"), "--id", "it").wait_for("completed")
    assert holdfast("queue", "pause").returncode == 0
    project = os.path.join(workspace(), "<b onclick=alert(4)>\u202e[x](javascript:alert(5))")
    os.mkdir(project)
    words = ("--id", "waits", "--name", name, "--label", "team=<b>x</b>", "--project", project)
    assert holdfast("submit", *words, "--", "true").returncode == 0
    with open(os.path.join(home, "interrupt-request.txt"), "w", encoding="utf-8") as file:
        file.write(f"{HOSTILE} {LONG[:100_000]}")
    with browsing(served, "hostile-queue") as page:
        page.goto(f"{served.base}/queue")
        page.locator(".queue .name", has_text="<img src=x onerror=alert(1)>").wait_for()
        page.locator(".attention", has_text=_MARK).wait_for()
        _assert_harmless(page)
        page.goto(f"{served.base}/metrics")
        page.locator(".tools", has_text=_MARK).wait_for()
        _assert_harmless(page)
        page.goto(f"{served.base}/new")
        page.get_by_label("What to do").fill(name)
        page.get_by_label("Project directory").fill(project)
        page.get_by_label("Name", exact=True).fill(name)
        page.get_by_label("Model").fill("javascript:alert(6)")
        page.locator(".command, .problem").first.wait_for()
        _assert_harmless(page)
        page.goto(f"{served.base}/task/waits")
        page.locator(".state", has_text="queued").wait_for()
        _assert_harmless(page)
        page.goto(f"{served.base}/task/%3Cimg%20src%3Dx%20onerror%3Dalert(7)%3E")
        page.get_by_text("All tasks").wait_for()
        _assert_harmless(page)
