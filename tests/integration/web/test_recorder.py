"""The flight recorder and what is around it, in a real Chromium: gaps, zoom, live edge, takeovers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from holdfast import clock
from holdfast.testing import Scenario
from tests.support import kin
from tests.support.browser import browsing
from tests.support.packets import REPORTS, Written
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.waiting import eventually
from tests.support.web import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def served(home: str) -> Iterator[Served]:
    workspace()
    with serving() as server:
        yield server


def _open(page: Page, served: Served, path: str) -> None:
    page.goto(served.base + path)
    page.locator("main h1").wait_for()
    page.locator(".loading").wait_for(state="detached")


def test_a_long_gap_is_folded_and_a_part_can_be_zoomed(served: Served) -> None:
    scenario = Scenario().say("hello").crash("KILL", times=1).result("done")
    task = Task.play(scenario, "--id", "it", "--base-interval", "0.1s")
    task.wait_for("completed", within_s=30)
    _sleep_for_two_hours(task)
    with browsing(served, "gap") as page:
        _open(page, served, "/task/it")
        fold = page.locator(".fold text")
        assert fold.all_text_contents() == ["2 h"]
        spans = page.locator("svg .span:not(.chore)")
        assert spans.count() == 2
        box = page.locator(".lanes svg").bounding_box()
        assert box is not None
        # From the left end of the lanes to the fold.
        place = page.locator(".fold rect").bounding_box()
        assert place is not None
        page.mouse.move(box["x"] + 134, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(place["x"] - 8, box["y"] + 60, steps=4)
        page.locator(".brush").wait_for()
        page.mouse.up()
        page.get_by_role("button", name="Show everything").wait_for()
        assert fold.count() == 0
        assert spans.count() == 1
        page.get_by_role("button", name="Show everything").click()
        assert fold.count() == 1
        # A phone has no room for the usual times: the first and the last are there.
        page.set_viewport_size({"width": 375, "height": 720})
        page.locator(".tick text").nth(1).wait_for()


def _sleep_for_two_hours(task: Task) -> None:
    """As if the machine had slept after the first attempt."""
    moved = False
    lines: list[bytes] = []
    for line in task.read("events.jsonl").splitlines():
        event = json.loads(line)
        if moved:
            for name in ("at", "started_at", "noticed_at"):
                if isinstance(event.get(name), str):
                    event[name] = clock.iso(clock.parse_iso(event[name]) + 7200)
        moved = moved or event["type"] == "retry.planned" or event.get("new") == "crashed"
        lines.append(json.dumps(event).encode())
    assert moved
    with open(task.path("events.jsonl"), "wb") as file:
        file.write(b"\n".join(lines) + b"\n")
    task.reseal()


def test_the_live_edge_and_when_a_budget_is_used_up(served: Served) -> None:
    scenario = Scenario()
    for number in range(4):
        scenario.say(f"part {number}")
    task = Task.play(scenario.crash("KILL", times=1).say("on").hang(), "--id", "it", "--max-turns", "90")
    eventually(lambda: "on" in task.log().splitlines(), 30, "it goes on")
    with browsing(served, "edge") as page:
        _open(page, served, "/task/it")
        edge = page.locator(".edge line")
        edge.wait_for(state="attached")
        page.locator(".budget", has_text="Turns").get_by_text("of 90").wait_for()
        page.locator(".budget", has_text="Turns").get_by_text("at this rate, used up in").wait_for()
        task.stop()
        page.locator(".state", has_text="killed").wait_for()
        edge.wait_for(state="detached")
        assert page.get_by_text("at this rate").count() == 0


def test_a_takeover_has_a_bar_marks_and_a_row(served: Served) -> None:
    scenario = Scenario().say("at work").hang(once=True).usage(input_tokens=900, cost_usd=0.25).say("thanks")
    task = Task.play(scenario.result("ok"), "--id", "it", "--stale", "none", "--budget-usd", "2")
    task.wait_for_log("at work")
    terminal = Terminal("takeover", task.id, "-m", "go on", cwd=workspace())
    try:
        terminal.read_until("after 1 processes")
        with browsing(served, "takeover") as page:
            _open(page, served, "/task/it?tab=attempts")
            page.locator(".span.takeover").wait_for()
            page.locator(".attempts tr", has_text="takeover by").get_by_text("now").wait_for()
            terminal.press("exit\n")
            assert terminal.finish() == 0
            page.locator(".state", has_text="completed").wait_for()
            row = page.locator(".attempts tr", has_text="takeover by")
            row.get_by_text("handed back").wait_for()
            assert "not reported" in row.inner_text()
            assert page.locator(".span.takeover").count() == 1
            page.get_by_text("moments as a list").click()
            moments = page.locator(".moments").inner_text()
            assert "takeover by a person: began by" in moments
            assert "takeover by a person: handed back by" in moments
            page.locator(".task-head").get_by_text("≥ $0.25").wait_for()
            page.locator(".budget", has_text="Cost").get_by_text("≥ $0.25").wait_for()
            _open(page, served, "/")
            page.locator("tr", has_text="it").get_by_text("≥ $0.25").wait_for()
            _open(page, served, "/metrics")
            page.locator(".agents tr", has_text="scripted").get_by_text("≥ $0.25").wait_for()
    finally:
        terminal.kill()


def test_two_attempts_beside_each_other_a_line_by_its_address_and_commands(served: Served) -> None:
    script = f"echo first; [ -e once ] || {{ touch once; kill -9 $$; }}; echo found it; {kin.WAIT}"
    task = Task.shell(script, "--id", "it", "--base-interval", "0.1s")
    task.wait_for_log("found it", within_s=30)
    at = task.read("output.log").index(b"found it")
    with browsing(served, "commands") as page:
        _open(page, served, "/task/it?tab=attempts")
        for number in (0, 1):
            page.locator(".attempts input").nth(number).check()
        page.locator(".pair article").nth(1).get_by_text("Attempt 2").wait_for()
        _open(page, served, f"/task/it?at={at}")
        page.locator(".line.marked", has_text="found it").wait_for()
        for command in ("takeover it", "diff it", "attach it"):
            page.get_by_role("button", name=f"Copy: holdfast {command}").wait_for()
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy: holdfast diff it").click()
        eventually(lambda: page.evaluate("() => navigator.clipboard.readText()") == "holdfast diff it")
        for address in ("/queue", "/metrics"):
            _open(page, served, address)
            page.get_by_role("button", name="Copy: holdfast").first.wait_for()
        kin.go()
    task.wait_for("completed", within_s=30)


def test_a_hidden_tab_has_no_stream_and_catches_up(served: Served) -> None:
    task = Task.shell(f"echo one; {kin.WAIT} echo two", "--id", "it")
    task.wait_for_log("one")
    hide = """(isHidden) => {
      Object.defineProperty(document, "hidden", { get: () => isHidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with browsing(served, "hidden") as page:
        _open(page, served, "/task/it")
        page.locator(".connection.live").wait_for()
        page.evaluate(hide, True)
        page.locator(".connection.idle").wait_for()
        kin.go()
        task.wait_for("completed", within_s=30)
        page.evaluate(hide, False)
        page.locator(".lines").get_by_text("two").wait_for()
        page.locator(".state", has_text="completed").wait_for()
        assert page.locator(".lines").inner_text().count("two") == 1


def test_a_phone_shows_a_diff_below_each_other_and_whole_rows(served: Served) -> None:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("a.txt", "one\ntwo\nthree\n")
    repo.commit("a.txt")
    done = holdfast(
        "run", "--id", "it", "--worktree", "--", "sh", "-c", "printf 'one\\nTWO\\nthree\\n' > a.txt",
        cwd=repo.path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with browsing(served, "phone-diff") as page:
        _open(page, served, "/task/it?tab=diff")
        page.locator(".split .add", has_text="TWO").wait_for()
        assert page.locator(".split tr", has_text="TWO").locator("td").count() == 4
        page.set_viewport_size({"width": 375, "height": 720})
        page.locator(".split.unified .add", has_text="TWO").wait_for()
        rows = page.locator(".split.unified tr:not(.hunk)").all_inner_texts()
        assert [row.split("\t") for row in rows] == [["1", "one"], ["2", "two"], ["2", "TWO"], ["3", "three"]]
        assert page.get_by_text("1 file,").count() == 1
        _open(page, served, "/")
        page.locator("tr", has_text="it").first.wait_for()
        table = """() => [...document.querySelectorAll(".scroll, main")]
          .map((each) => each.scrollWidth - each.clientWidth)"""
        assert max(page.evaluate(table)) <= 1, "no column is cut"


def test_checks_are_no_attempts_and_an_approval_offers_what_works(served: Served) -> None:
    usage = Scenario().usage(input_tokens=40_000, output_tokens=3_000, cost_usd=12.34)
    brief = usage.say(REPORTS["brief"]).result("ok")
    packet = Written({"scripted_brief": brief, "scripted_impl": None}, approval=["scripted_impl"])
    assert holdfast("run", "--packet", packet.path, cwd=packet.project.path).returncode == 4
    with browsing(served, "approval") as page:
        _open(page, served, "/task/it?tab=events")
        page.get_by_role("tab", name="Attempts 1").wait_for()  # besides, a preparation and a gate
        slider = page.get_by_role("slider", name="Replay")
        slider.press("End")
        slider.press("ArrowLeft")
        page.get_by_role("group", name="Replay").get_by_text("attempt 1").first.wait_for()
        page.get_by_role("button", name="Copy: holdfast approve it").wait_for()
        for verb in ("takeover", "attach", "resume"):
            assert page.get_by_role("button", name=f"Copy: holdfast {verb} it").count() == 0, verb
        assert page.get_by_text("at this rate").count() == 0, "calls are made by stages, not by time"
        page.set_viewport_size({"width": 375, "height": 720})
        cell = page.locator(".events .last").first.bounding_box()
        assert cell is not None
        assert cell["width"] > 280, "an event has the whole width of a phone"
        page.set_viewport_size({"width": 1280, "height": 720})
        _open(page, served, "/")
        page.get_by_role("button", name="Board", exact=True).click()
        page.locator(".card.task").wait_for()
        assert page.locator(".columns").evaluate("(each) => each.scrollWidth <= each.clientWidth")
        section = page.locator(".columns section").first
        assert section.evaluate("(each) => each.scrollWidth <= each.clientWidth"), "a card fits its column"


def test_marks_without_room_are_counted(served: Served) -> None:
    with browsing(served, "marks") as page:
        shown = page.evaluate(
            """async (places) => (await import("/recorder.js")).stack(places.map((each) => [each, each]))
                .map(({ place, level, more }) => [place, level, more])""",
            [0, 1, 2, 3, 4, 30, 44],
        )
    assert shown == [[0, 0, []], [1, 1, []], [2, 2, [3, 4]], [30, 0, []], [44, 0, []]]


def test_the_figures_change_while_they_are_shown(served: Served) -> None:
    with browsing(served, "figures") as page:
        _open(page, served, "/metrics")
        ended = page.locator(".figures").first.locator("div", has_text="Ended").locator("dd")
        assert ended.inner_text() == "0"
        Task.shell("echo hi", "--id", "it").wait_for("completed")
        page.locator(".agents tr", has_text="command").wait_for()
        eventually(lambda: ended.inner_text() == "1", 20, "the task is counted")
        sign = page.locator(".u-marker").nth(1)
        light = sign.evaluate("(each) => getComputedStyle(each).backgroundColor")
        page.emulate_media(color_scheme="dark")
        dark = "(each) => getComputedStyle(each).backgroundColor"
        eventually(lambda: sign.evaluate(dark) != light, 10, "plots have the colours of the dark page")
