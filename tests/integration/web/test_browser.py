"""The pages of `holdfast serve` in a real Chromium."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from holdfast.testing import Scenario
from tests.support import kin
from tests.support.browser import browsing
from tests.support.packets import Written
from tests.support.relay import Relay
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually
from tests.support.web import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.timeout(240)

#: What an agent may print: nothing of it becomes markup, runs, or is a link.
HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script> [link](javascript:alert(3)) "
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eesrever\u202c &lt;b&gt; ${7*7} </textarea>"
)


@pytest.fixture
def served(home: str) -> Iterator[Served]:
    workspace()
    with serving() as server:
        yield server


def test_a_task_is_followed_through_crash_and_resume(served: Served) -> None:
    with browsing(served, "crash") as page:
        scenario = (
            Scenario()
            .usage(input_tokens=1200, output_tokens=300, cost_usd=0.05)
            .say("first words")
            .hang(once=True)
            .say("second words")
        )
        task = Task.play(scenario, "--id", "it", "--name", "Cross the sea")
        page.get_by_role("link", name="Cross the sea").click()
        page.get_by_text("first words").first.wait_for()
        page.locator(".state", has_text="running").wait_for()
        os.kill(task.agent_pid(), signal.SIGKILL)
        page.get_by_text("second words").first.wait_for()
        page.locator(".state", has_text="completed").wait_for()
        assert page.locator("svg .span:not(.chore)").count() == 2
        page.get_by_text("moments as a list").click()
        moments = page.locator(".moments").inner_text()
        assert "crash" in moments
        assert "resumed" in moments
        page.get_by_role("tab", name="Attempts").click()
        assert page.locator(".attempts tbody tr").count() == 2
        page.get_by_role("tab", name="Events").click()
        page.locator(".events").get_by_text("attempt.swept").first.wait_for()
        shown = page.locator(".events tbody tr").count()
        assert shown == len(task.events())


def test_the_slider_shows_the_task_as_it_was(served: Served) -> None:
    task = Task.shell(f"echo one; {kin.WAIT} echo two", "--id", "it")
    task.wait_for_log("one")
    until = time.monotonic() + 2.5  # times of the log are exact to a second
    eventually(lambda: time.monotonic() > until, 10)
    kin.go()
    task.wait_for("completed")
    with browsing(served, "replay") as page:
        page.goto(f"{served.base}/task/it")
        page.locator(".lines").get_by_text("two").wait_for()
        slider = page.get_by_role("slider", name="Replay")
        slider.evaluate(
            """(each) => { each.value = Math.round(each.max * 0.7);
                each.dispatchEvent(new Event("input", { bubbles: true })); }"""
        )
        replay = page.get_by_role("group", name="Replay")
        replay.locator(".state", has_text="running").wait_for()
        page.locator(".lines").get_by_text("one").wait_for()
        assert "two" not in page.locator(".lines").inner_text()
        slider.press("Home")
        replay.locator(".state", has_text="spawning").wait_for()
        page.locator(".lines").get_by_text("No output yet").wait_for()
        replay.get_by_role("button", name="Next change").click()
        replay.get_by_text("attempt 1").first.wait_for()
        page.get_by_role("button", name="Leave the replay").first.click()
        page.locator(".lines").get_by_text("two").wait_for()
        assert replay.count() == 0


def test_a_found_line_is_shown_and_stays_while_the_log_grows(served: Served) -> None:
    task = Task.shell(
        f"i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo row $i of the log; done; {kin.WAIT} echo more",
        "--id",
        "it",
    )
    task.wait_for_log("row 4000 of")
    with browsing(served, "found") as page:
        page.goto(f"{served.base}/task/it")
        page.locator(".lines").get_by_text("row 4000 of").wait_for()
        search = page.get_by_role("searchbox", name="Search the log")
        for wanted in ("row 3900 of", "row 20 of", "row 3900 of"):
            search.fill(wanted)
            search.press("Enter")
            page.locator(".hits li button", has_text=wanted).click()
            eventually(lambda wanted=wanted: _seen(page, wanted), 20, f"{wanted} is in sight")
            assert page.get_by_role("button", name="Follow", exact=True).is_visible()
        kin.go()
        task.wait_for("completed")
        page.locator(".state", has_text="completed").wait_for()
        assert _seen(page, "row 3900 of")
        page.get_by_role("button", name="End", exact=True).click()
        eventually(lambda: _seen(page, "more"), 20, "the end is in sight")


def _seen(page: Page, text: str) -> bool:
    """Whether a line of the log is within its box."""
    return page.locator(".lines").evaluate(
        """(box, text) => {
          const line = [...box.querySelectorAll(".line")].find((each) => each.textContent.includes(text));
          if (!line) return false;
          const [inner, outer] = [line.getBoundingClientRect(), box.getBoundingClientRect()];
          return inner.top >= outer.top && inner.bottom <= outer.bottom;
        }""",
        text,
    )


def test_a_question_is_answered(served: Served) -> None:
    task = Task.shell(
        '[ -e asked ] || { touch asked; echo "which database?" > "$INTERRUPT_FILE"; sleep 60; }; '
        "echo went on",
        "--id",
        "it",
    )
    task.wait_for("interrupted")
    with browsing(served, "answer") as page:
        page.locator("tr", has_text="which database?").click()
        page.get_by_role("textbox", name="Answer").fill("the test one")
        page.get_by_role("button", name="Answer and resume").click()
        page.locator(".state", has_text="completed").wait_for()
        page.locator(".lines").get_by_text("went on").wait_for()
        page.get_by_text("as a list").click()
        page.locator(".moments").get_by_text("question: answered after").wait_for()
    assert [event["answer"] for event in task.events("task.moved") if event.get("answer")] == ["the test one"]


def test_a_stage_is_approved(served: Served) -> None:
    packet = Written({"scripted_brief": None, "scripted_impl": None}, approval=["scripted_impl"])
    assert holdfast("run", "--packet", packet.path, cwd=packet.project.path).returncode == 4
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", packet.task_id))
    with browsing(served, "approve") as page:
        page.goto(f"{served.base}/task/{task.id}")
        page.get_by_text("Approve scripted_impl?").wait_for()
        assert page.locator("svg .ghost").count() == 1, "the stage that has not begun"
        page.get_by_role("button", name="Approve", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert not task.events("approval.given")
        page.get_by_role("button", name="Approve", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Approve", exact=True).click()
        page.locator(".state", has_text="completed").wait_for(timeout=60_000)
        page.get_by_role("tab", name="Gates").click()
        page.locator(".gate.tone-done").first.wait_for()
        page.get_by_role("tab", name="Changes").click()
        page.locator(".split .add").first.wait_for()
    assert len(task.events("approval.given")) == 1


def test_a_task_is_stopped_after_a_confirmation(served: Served) -> None:
    task = Task.shell("sleep 60", "--id", "it")
    task.wait_for("running")
    with browsing(served, "stop") as page:
        page.goto(f"{served.base}/task/it")
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("dialog").get_by_label("Reason").fill("wrong branch")
        page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
        page.locator(".state", has_text="killed").wait_for()
    assert task.manifest()["status_reason"].startswith("wrong branch")


_AGENT = """#!{python}
import json, sys
if "--version" in sys.argv:
    print("2.0.0 (Claude Code)"); sys.exit()
sys.stdin.read() if not sys.stdin.isatty() else ""
words = sys.argv
session = words[words.index("--session-id") + 1] if "--session-id" in words else "s"
print(json.dumps({{"type": "system", "subtype": "init", "session_id": session, "model": "m", "tools": []}}))
print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "result": "the answer is 42",
    "session_id": session, "total_cost_usd": 0.01, "num_turns": 1,
    "usage": {{"input_tokens": 10, "output_tokens": 5}}}}))
"""


def test_a_task_is_started(home: str) -> None:
    folder = os.path.join(os.path.dirname(home), "bin")
    os.mkdir(folder)
    path = os.path.join(folder, "claude")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_AGENT.format(python=sys.executable))
    os.chmod(path, stat.S_IRWXU)
    with serving(env={"PATH": f"{folder}:{os.environ['PATH']}"}) as served, browsing(served, "start") as page:
        page.keyboard.press("n")
        page.get_by_label("What to do").fill("find the answer")
        page.get_by_label("Agent").select_option("claude")
        page.get_by_label("Project directory").fill("/nowhere")
        page.get_by_role("alert").get_by_text("/nowhere does not exist").wait_for()
        page.get_by_text("Limits, labels and more").click()
        page.get_by_label("Turns").fill("0")
        page.get_by_label("Budget in dollars").fill("much")
        page.locator("#p-budget_usd").get_by_text("must be a number").wait_for()
        page.locator("#p-max_turns").get_by_text("at least 1").wait_for()
        page.get_by_label("Turns").fill("7")
        page.get_by_label("Budget in dollars").fill("2.5")
        assert page.get_by_role("button", name="Start", exact=True).is_disabled()
        page.get_by_label("Project directory").fill(workspace())
        page.get_by_text("--budget-usd 2.5 --max-turns 7").wait_for()
        page.get_by_text("holdfast run -d --agent claude").wait_for()
        assert page.get_by_label("Permissions").locator("option").all_inner_texts() == ["read", "edit"]
        page.get_by_role("button", name="Start", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Start", exact=True).click()
        page.wait_for_url("**/task/*")
        page.locator(".state", has_text="completed").wait_for()
        (task_id,) = os.listdir(os.path.join(home, "tasks"))
        assert Task(os.path.join(home, "tasks", task_id)).manifest()["permissions"] == "edit"


def test_a_lost_connection_comes_back_without_missing_or_repeating(served: Served) -> None:
    task = Task.shell(f"echo one; {kin.WAIT} echo two", "--id", "it")
    relay = Relay(served.port)
    try:
        with browsing(served, "lost", relay=relay.port) as page:
            page.goto(f"{served.base}/task/it?tab=events")
            page.locator(".state", has_text="running").wait_for()
            page.locator(".connection.live").wait_for()
            relay.cut()
            page.locator(".connection.lost").wait_for()
            kin.go()
            task.wait_for("completed")
            relay.restore()
            page.locator(".connection.live").wait_for()
            page.locator(".state", has_text="completed").wait_for()
            count = len(task.events())
            eventually(lambda: page.locator(".events tbody tr").count() == count, 20, "every event, once")
            page.get_by_role("tab", name="Log").click()
            page.locator(".lines").get_by_text("two").wait_for()
            text = page.locator(".lines").inner_text()
            assert (text.count("one"), text.count("two")) == (1, 1)
    finally:
        relay.close()


def test_a_server_that_ends_and_tabs_that_ask_each_other(served: Served) -> None:
    Task.shell("echo hi", "--id", "it").wait_for("completed")
    with browsing(served, "tabs") as page:
        for _ in range(7):
            other = page.context.new_page()
            other.goto(f"{served.base}/task/it")
            other.locator(".state", has_text="completed").wait_for()
        assert page.evaluate("() => document.cookie") == ""
        assert "#" not in page.url
        served.stop()
        other.locator(".connection.lost").wait_for()


def test_nothing_that_an_agent_writes_becomes_markup(served: Served, home: str) -> None:
    note = os.path.join(os.path.dirname(home), "hostile.txt")
    with open(note, "w", encoding="utf-8") as file:
        file.write(HOSTILE)
    long_line = 'head -c 5000000 /dev/zero | tr "\\0" x; echo'
    script = f'cat {note}; echo; {long_line}; cat {note} > "$INTERRUPT_FILE"; sleep 60'
    task = Task.shell(script, "--id", "it", "--name", HOSTILE.replace("\n", " "), "--label", "team=<b>x</b>")
    task.wait_for("interrupted", within_s=60)
    with browsing(served, "hostile") as page:
        page.locator("tr", has_text="<img src=x onerror=alert(1)>").first.wait_for()
        page.get_by_role("button", name="Board").click()
        page.locator(".card.task").first.wait_for()
        _assert_harmless(page)
        page.locator(".card.task").first.click()
        page.locator(".question").wait_for()
        _assert_harmless(page)
        page.get_by_label("Search the log").fill("onerror")
        page.get_by_role("button", name="Search").click()
        page.locator(".hits li").first.wait_for()
        page.locator(".hits li button").first.click()
        page.locator(".line", has_text="<script>alert(2)</script>").wait_for()
        for tab in ("Changes", "Gates", "Usage", "Attempts", "Files", "Events", "Log"):
            page.get_by_role("tab", name=tab).click()
            page.locator("#panel").wait_for()
            _assert_harmless(page)
        page.get_by_text("Goal").last.click()
        _assert_harmless(page)
    task.stop()


def _assert_harmless(page: object) -> None:
    found = page.evaluate(  # type: ignore[attr-defined]
        """() => ({
          images: [...document.images].filter((each) => !each.src.endsWith('/icon.svg')).length,
          scripts: document.querySelectorAll('#app script').length,
          links: [...document.links].filter((each) => !/^https?:$/.test(each.protocol)).length,
          handlers: document.querySelectorAll('[onerror], [onclick], [onload]').length,
          bidi: /[\\u202a-\\u202e\\u2066-\\u2069\\x07]/.test(document.body.textContent),
        })"""
    )
    assert found == {"images": 0, "scripts": 0, "links": 0, "handlers": 0, "bidi": False}


def test_a_phone_and_the_keyboard(served: Served) -> None:
    for name in ("one", "two"):
        Task.shell("echo hi", "--id", name).wait_for("completed")
    with browsing(served, "phone") as page:
        page.locator("tr", has_text="two").first.wait_for()
        page.keyboard.press("j")
        page.locator("tr.chosen").wait_for()  # the page listens to keys
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/task/one")
        page.locator(".state", has_text="completed").wait_for()
        page.keyboard.press("5")
        page.locator(".attempts").wait_for()
        page.set_viewport_size({"width": 375, "height": 720})
        for address in ("/task/one", "/task/one?tab=files", "/", "/new", "/queue", "/metrics"):
            page.goto(served.base + address)
            page.locator("main h1").wait_for()
            wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{address} is {wide} pixels too wide"


def test_a_board_of_a_thousand_tasks(served: Served, home: str) -> None:
    """Shown within 1 s; here with room for a busy machine."""
    first = Task.shell('echo "go on?" > "$INTERRUPT_FILE"; sleep 60', "--id", "t0000")
    first.wait_for("interrupted")
    journal, manifest = first.read("events.jsonl"), first.manifest()
    for number in range(1, 1000):
        folder = os.path.join(home, "tasks", f"t{number:04d}")
        os.makedirs(folder)
        for name, data in (
            ("events.jsonl", journal),
            (
                "manifest.json",
                json.dumps({**manifest, "task_id": f"t{number:04d}", "tmpdir": folder}).encode(),
            ),
        ):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
    with browsing(served, "many") as page:
        rows = page.locator("tbody tr:not(.group)")
        page.locator("tr", has_text="t0999").wait_for()
        begun = time.monotonic()
        page.reload()
        page.locator("tr", has_text="t0999").first.wait_for()
        took_s = time.monotonic() - begun
        assert rows.count() == 1000
        print(f"board of 1,000 tasks: {took_s:.2f} s")
        assert took_s < 4
