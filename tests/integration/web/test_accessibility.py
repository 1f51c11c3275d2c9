"""The pages of `holdfast serve` for everybody: axe-core, the keyboard alone, a phone, dark and light."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from holdfast.testing import Scenario
from tests.support.axe import serious_findings
from tests.support.browser import browsing
from tests.support.packets import Written
from tests.support.tasks import Task, holdfast, workspace
from tests.support.web import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.timeout(240)

_TABS = ("log", "diff", "gates", "usage", "attempts", "files", "events")


@pytest.fixture
def served(home: str) -> Iterator[Served]:
    workspace()
    with serving() as server:
        yield server


def _some_tasks() -> str:
    """A task with stages, gates and an approval that is due; one that ran, and one in the queue."""
    packet = Written({"scripted_brief": None, "scripted_impl": None}, approval=["scripted_impl"])
    assert holdfast("run", "--packet", packet.path, cwd=packet.project.path).returncode == 4
    scenario = (
        Scenario().usage(input_tokens=1200, cost_usd=0.05).say("\x1b[31mred\x1b[0m words").result("done")
    )
    Task.play(scenario, "--id", "ran", "--budget-usd", "1").wait_for("completed")
    assert holdfast("queue", "pause").returncode == 0
    assert holdfast("submit", "--id", "waits", "--", "true").returncode == 0
    return packet.task_id


def test_axe_finds_nothing_serious(served: Served) -> None:
    asks = _some_tasks()
    with browsing(served, "axe") as page:
        found: list[str] = []

        def look(where: str) -> None:
            found.extend(f"{where}: {each}" for each in serious_findings(page))

        page.evaluate("() => document.body.append(document.createElement('img'))")
        assert [each.split(":")[0] for each in serious_findings(page)] == ["image-alt"], "it looks"
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for address in ("/", "/new", "/queue", "/metrics", f"/task/{asks}", "/task/ran"):
                page.goto(served.base + address)
                page.locator("main h1").wait_for()
                page.locator(".loading").wait_for(state="detached")
                look(f"{scheme} {address}")
        page.goto(served.base)
        page.get_by_role("button", name="Board").click()
        look("board")
        page.keyboard.press("?")
        page.get_by_role("dialog", name="Keys").wait_for()
        look("keys")
        for tab in _TABS:
            page.goto(f"{served.base}/task/{asks}?tab={tab}")
            page.locator("#panel").wait_for()
            page.locator(".loading").wait_for(state="detached")
            look(tab)
        page.get_by_role("slider", name="Replay").press("Home")
        page.get_by_role("group", name="Replay").wait_for()
        look("replay")
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("dialog").wait_for()
        look("a dialog")
        page.set_viewport_size({"width": 375, "height": 720})
        for address in ("/", "/new", "/queue", "/metrics", f"/task/{asks}?tab=diff"):
            page.goto(served.base + address)
            page.locator("main h1").wait_for()
            page.locator(".loading").wait_for(state="detached")
            look(f"phone {address}")
            wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{address} is {wide} pixels too wide"
        assert found == []


def _tab_to(page: Page, role: str, name: str) -> None:
    """Press Tab until the element has the focus."""
    wanted = page.get_by_role(role, name=name, exact=True).first  # type: ignore[arg-type]
    wanted.wait_for()
    for _ in range(150):
        if wanted.evaluate("(each) => each === document.activeElement"):
            assert page.evaluate("() => document.activeElement.matches(':focus-visible')")
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {role} {name!r}")


def test_the_keyboard_is_enough(served: Served, home: str) -> None:
    """Find a task, look at its tabs, replay it, and stop another: without a mouse."""
    task = Task.shell("echo hi; sleep 120", "--id", "it", "--name", "Cross the sea")
    task.wait_for("running")
    with browsing(served, "keyboard") as page:
        page.locator("tr", has_text="Cross the sea").wait_for()
        _tab_to(page, "link", "Cross the sea")
        page.keyboard.press("Enter")
        page.wait_for_url("**/task/it")
        page.locator(".state", has_text="running").wait_for()
        _tab_to(page, "tab", "Events")
        page.keyboard.press("Enter")
        page.locator(".events").wait_for()
        page.goto(f"{served.base}/task/it")
        page.locator(".lines").get_by_text("hi").wait_for()
        slider = page.get_by_role("slider", name="Replay")
        _tab_to(page, "slider", "Replay: show the task as it was")
        page.keyboard.press("Home")
        page.get_by_role("group", name="Replay").wait_for()
        assert slider.evaluate("(each) => each === document.activeElement"), "the focus stays"
        page.keyboard.press("End")
        page.get_by_role("group", name="Replay").wait_for(state="detached")
        page.goto(f"{served.base}/task/it")
        _tab_to(page, "button", "Stop")
        page.keyboard.press("Enter")
        page.get_by_role("dialog").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
        assert not task.events("stop.intended")
        _tab_to(page, "button", "Stop")
        page.keyboard.press("Enter")
        page.get_by_role("dialog").get_by_label("Reason").wait_for()
        inside = "() => document.querySelector('dialog').contains(document.activeElement)"
        assert page.evaluate(inside), "a dialog has the focus"
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert page.evaluate("() => document.activeElement.textContent") == "Stop"
        page.keyboard.press("Enter")
        page.locator(".state", has_text="killed").wait_for()
    assert os.path.isdir(home)
