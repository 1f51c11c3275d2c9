"""`holdfast share`: the page of a task as one file, in a real Chromium."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import jsonschema
import pytest

from contracts import schema
from holdfast.testing import Scenario
from tests.support import kin
from tests.support.axe import serious_findings
from tests.support.browser import from_file
from tests.support.packets import Written, played
from tests.support.tasks import Task, holdfast, workspace

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.timeout(240)

TABS = ("Changes", "Gates", "Usage", "Attempts", "Files", "Events", "Log")
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
OWN = "k7Hq2mZr9xW4-own"
HOSTILE = (
    "</script><script>alert(1)</script><!-- <script> --><img src=//evil.invalid/x onerror=alert(2)> "
    "[link](javascript:alert(3)) ![i](http://evil.invalid/i.png) \x1b[31mred\x1b[0m "
    "\u202eesrever\u202c \u2028"
)


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def shared(task_id: str, *words: str, **given: object) -> str:
    """Share a task; the path of the file."""
    path = os.path.join(workspace(), f"{task_id}.html")
    done = holdfast("share", task_id, "-o", path, "--force", *words, **given)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    return path


def text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def data_of(path: str) -> dict:
    (found,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', text_of(path), re.DOTALL
    )
    return json.loads(found)


def every_tab(page: Page) -> None:
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        page.locator("#panel").wait_for()


def test_a_file_shows_the_whole_task_and_requests_nothing() -> None:
    packet = Written({"scripted_brief": None, "scripted_impl": None})
    assert holdfast("run", "--packet", packet.path, cwd=packet.project.path).returncode == 0
    path = shared(packet.task_id)
    with from_file(path, "share") as (page, requested):
        page.locator(".state", has_text="completed").wait_for()
        assert page.locator("svg .span:not(.chore)").count() == 2
        assert page.locator(".lines .line").count() > 0
        page.get_by_role("tab", name="Changes").click()
        page.locator(".split .add").first.wait_for()
        page.get_by_label("Of").select_option("scripted_impl")
        page.locator(".split .add").first.wait_for()
        page.get_by_role("tab", name="Gates").click()
        page.locator(".gate.tone-done").first.wait_for()
        page.get_by_role("tab", name="Events").click()
        page.locator(".events").get_by_text("task.created").wait_for()
        page.get_by_role("tab", name="Files").click()
        page.locator(".files nav button", has_text="_summary.md").click()
        page.locator(".content .markdown").wait_for()
        page.get_by_role("tab", name="Attempts").click()
        for number in (0, 1):
            page.locator(".attempts input").nth(number).check()
        page.locator(".pair pre").nth(1).wait_for()
        every_tab(page)
        assert page.get_by_role("button", name="Stop").count() == 0, "a file cannot act"
        assert [each for each in requested if not each.startswith("data:")] == [f"file://{path}"]
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text_of(path))
    assert "default-src &#x27;none&#x27;" in policy
    assert "connect-src" not in policy
    assert "unsafe" not in policy
    # A link to a line, and the chosen tab, are in the address.
    with from_file(path, "share-tab", "?tab=events") as (page, _):
        page.locator(".events").get_by_text("task.created").wait_for()


def test_a_running_an_interrupted_and_an_archived_task() -> None:
    running = Task.shell(f"echo begun; {kin.WAIT}", "--id", "now")
    running.wait_for_log("begun")
    with from_file(shared("now"), "share-running") as (page, _):
        page.locator(".state", has_text="running").wait_for()
        page.get_by_text("begun").first.wait_for()
        before = page.locator(".task-head .num").first.inner_text()
        page.wait_for_timeout(1500)
        assert page.locator(".task-head .num").first.inner_text() == before, "its clock stands still"
    kin.go()
    running.wait_for("completed")
    asked = Task.shell('echo "which one?" > "$INTERRUPT_FILE"; sleep 60', "--id", "asked")
    asked.wait_for("interrupted")
    with from_file(shared("asked"), "share-asked") as (page, _):
        page.locator(".question").get_by_text("which one?").wait_for()
        assert page.get_by_role("textbox", name="Answer").count() == 0
    asked.stop()
    assert holdfast("archive", "now").returncode == 0
    with from_file(shared("now"), "share-archived") as (page, _):
        page.locator(".state", has_text="completed").wait_for()
        page.get_by_text("begun").first.wait_for()


def test_nothing_that_an_agent_writes_becomes_markup_or_ends_the_data(home: str) -> None:
    note = os.path.join(os.path.dirname(home), "hostile.txt")
    with open(note, "w", encoding="utf-8") as file:
        file.write(HOSTILE)
    script = f'cat {note}; echo; cp {note} made.txt; cat {note} > "$INTERRUPT_FILE"; sleep 60'
    task = Task.shell(
        script, "--id", "it", "--name", HOSTILE.replace("\u2028", ""), "--label", "team=</script><b>"
    )
    task.wait_for("interrupted", within_s=60)
    path = shared("it")
    assert text_of(path).count("</script>") == 2
    with from_file(path, "share-hostile") as (page, requested):
        page.locator(".line", has_text="</script><script>alert(1)</script>").first.wait_for()
        page.locator(".question").wait_for()
        every_tab(page)
        page.get_by_text("Goal").last.click()
        found = page.evaluate(
            """() => ({ images: document.images.length, scripts: document.scripts.length,
              links: [...document.links].filter((each) => !/^(https?|file):$/.test(each.protocol)).length,
              bidi: /[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.getElementById("app").textContent) })"""
        )
        assert found == {"images": 0, "scripts": 2, "links": 0, "bidi": False}
        assert [each for each in requested if not each.startswith("data:")] == [f"file://{path}"]
    task.stop()


@pytest.mark.req("CTX-4")
def test_secrets_in_every_field_are_masked() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEAabcdefgh0123456789\n" * 8
    key += "-----END RSA PRIVATE KEY-----\n"
    packet = Written(
        {"scripted_impl": played("impl", before=Scenario().write("b.txt", content=f"{TOKEN}\n{OWN}\n{key}"))}
    )
    done = holdfast("run", "--packet", packet.path, cwd=packet.project.path)
    assert done.returncode == 0, done.stderr
    words = ("--id", "cmd", "--name", f"name {TOKEN} {OWN}", "--label", f"l={OWN}", "--env", "MY_TOKEN")
    script = f"echo {TOKEN}; echo own $MY_TOKEN; echo {OWN} > f; cat f"
    Task.shell(script, *words, env={"MY_TOKEN": OWN}).wait_for("completed")
    # As older versions and other programs may have left it.
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "cmd"))
    with open(task.path("output.log"), "a", encoding="utf-8") as file:
        file.write(f"late {OWN} {TOKEN}\n{key}")
    with open(task.path("outputs", "_summary.md"), "a", encoding="utf-8") as file:
        file.write(f"\n{OWN} {TOKEN}\n{key}\n")
    for task_id in (packet.task_id, "cmd"):
        text = text_of(shared(task_id, env={"MY_TOKEN": OWN}))
        for secret in (TOKEN, OWN, "MIIEowIBAAKCAQEA"):
            assert secret not in text, (task_id, secret)
        assert "***" in text
    assert "b.txt" in text_of(shared(packet.task_id, env={"MY_TOKEN": OWN})), "the change itself is there"


def test_axe_finds_nothing_serious() -> None:
    """In a file with everything: stages, gates, a question, a diff, colours, and what was left out."""
    before = Scenario().usage(input_tokens=1200, cost_usd=0.05).write("b.txt", content="hello\n")
    before.say("\x1b[31mred\x1b[0m words")
    packet = Written(
        {"scripted_brief": None, "scripted_impl": played("impl", before=before), "scripted_review": None},
        approval=["scripted_review"],
    )
    assert holdfast("run", "--packet", packet.path, cwd=packet.project.path).returncode == 4
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", packet.task_id))
    with open(task.path("output.log"), "a", encoding="utf-8") as file:
        # More than fits. Long lines: axe looks at each element, and a page shows 64 kB of them.
        file.write(("a line of the log " * 40 + "\n") * 4_000)
    with from_file(shared(packet.task_id), "share-axe") as (page, _):
        found: list[str] = []

        def look(where: str) -> None:
            found.extend(f"{where}: {each}" for each in serious_findings(page))

        page.locator(".question").wait_for()
        page.locator(".left-out").wait_for()
        page.evaluate("() => document.body.append(document.createElement('img'))")
        assert [each.split(":")[0] for each in serious_findings(page)] == ["image-alt"], "it looks"
        page.evaluate("() => document.body.lastChild.remove()")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for width in (1300, 375):
                page.set_viewport_size({"width": width, "height": 800})
                for tab in TABS:
                    page.get_by_role("tab", name=tab).click()
                    page.locator("#panel").wait_for()
                    page.locator(".loading").wait_for(state="detached")
                    look(f"{scheme} {width} {tab}")
                wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, f"{wide} pixels too wide"
        page.get_by_role("slider", name="Replay").press("Home")
        page.get_by_role("group", name="Replay").wait_for()
        look("replay")
        assert found == []
    task.stop()


#: A text for each field that somebody else can write, and where it is in a packet.
PLANTED = f"{HOSTILE} {TOKEN} {OWN}"


def test_markup_and_secrets_in_every_field_of_a_packet(home: str) -> None:
    """As a forged packet, or one of another version, may have them: in each text of manifest and journal, and
    in each file that is shown."""
    packet = Written({"scripted_brief": None, "scripted_impl": None})
    assert holdfast("run", "--packet", packet.path, cwd=packet.project.path).returncode == 0
    task = Task(os.path.join(home, "tasks", packet.task_id))
    planted = {"manifest.json": _planted(task.read("manifest.json"))}
    lines = task.read("events.jsonl").splitlines()
    planted["events.jsonl"] = b"\n".join(map(_planted, lines)) + b"\n"
    for folder, _, names in os.walk(task.path("outputs")):
        for name in names:
            planted[os.path.relpath(os.path.join(folder, name), task.packet)] = PLANTED.encode()
    planted["output.log"] = f"{PLANTED}\n".encode() * 3
    for name, data in planted.items():
        with open(task.path(name), "wb") as file:
            file.write(data)
    task.reseal()
    path = shared(packet.task_id, env={"MY_TOKEN": OWN})
    text = text_of(path)
    assert (TOKEN in text, OWN in text) == (False, False)
    assert text.count("</script>") == 2
    assert "alert(1)" in text, "it is there, as text"
    with from_file(path, "share-planted") as (page, requested):
        page.locator(".line", has_text="alert(1)").first.wait_for()
        every_tab(page)
        found = page.evaluate(
            """() => ({ images: document.images.length, scripts: document.scripts.length,
              links: [...document.links].filter((each) => !/^(https?|file):$/.test(each.protocol)).length,
              handlers: document.querySelectorAll("[onerror], [onclick], [onload]").length,
              bidi: /[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.getElementById("app").textContent) })"""
        )
        assert found == {"images": 0, "scripts": 2, "links": 0, "handlers": 0, "bidi": False}
        assert [each for each in requested if not each.startswith("data:")] == [f"file://{path}"]


#: What decides how a packet is read. Everything else is planted.
_KEPT = (
    "id", "at", "type", "schema", "task_id", "status", "new", "old", "kind", "mode", "how", "begin", "end",
    "project_dir", "tmpdir", "stage", "name", "agent", "state", "outcome",
)  # fmt: skip


def _planted(data: bytes) -> bytes:
    def plant(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: plant(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [plant(each, key) for each in value]
        is_kept = key in _KEPT or key.endswith(("_at", "sha256", "_id"))
        return f"{value} {PLANTED}" if isinstance(value, str) and not is_kept else value

    return json.dumps(plant(json.loads(data))).encode()


def test_a_log_of_50_mb_is_cut_and_the_file_says_so() -> None:
    task = Task.shell("echo first; echo last", "--id", "it")
    task.wait_for("completed")
    line = "<a> & a line of the log that is as long as lines are, with some markup in it </a>\n"
    with open(task.path("output.log"), "w", encoding="utf-8") as file:
        file.write("the first line\n")
        for number in range(50_000_000 // (len(line) + 9)):
            file.write(f"{number:08} {line}")
        file.write("the last line\n")
    path = os.path.join(workspace(), "it.html")
    done = holdfast("share", "it", "-o", path, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    jsonschema.validate(facts, schema.schemas()["share"])
    assert facts["bytes"] == os.path.getsize(path) <= 5_000_000
    (left_out,) = facts["left_out"]
    assert re.fullmatch(r"the first [\d.]+ MB of [\d.]+ MB of the log", left_out)
    assert f"left out: {left_out}" in done.stderr
    with from_file(path, "share-large") as (page, _):
        page.get_by_text("the last line").first.wait_for()
        page.locator(".left-out", has_text="of the log").wait_for()
        page.get_by_label("Search the log").fill("with some markup")
        page.get_by_role("button", name="Search").click()
        page.locator(".hits li").first.wait_for()
        page.locator(".hits li button").first.click()
        page.locator(".line.marked").wait_for()


def test_a_flood_of_markup_everywhere_stays_within_the_limit() -> None:
    """What is shown as `<` takes six bytes in the file."""
    task = Task.shell("echo hi", "--id", "it", "--name", "<" * 200)
    task.wait_for("completed")
    flood = "<" * 9_000 + "\n"
    with open(task.path("output.log"), "w", encoding="utf-8") as file:
        file.write(flood * 600)
    for name in ("a", "b", "c", "d"):
        with open(task.path("outputs", f"{name}.md"), "w", encoding="utf-8") as file:
            file.write(flood * 40)
    assert os.path.getsize(shared("it")) <= 5_000_000
    assert len(data_of(shared("it"))["log"]["text"]) > 100_000


def test_files_that_exist_stdout_and_mistakes() -> None:
    Task.shell("echo hi", "--id", "it").wait_for("completed")
    folder = workspace()
    done = holdfast("share", "it", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert re.search(r"wrote it\.html \([\d.]+ kB\)", done.stderr)
    before = text_of(os.path.join(folder, "it.html"))
    again = holdfast("share", "it", cwd=folder)
    assert again.returncode == 3
    assert "it.html exists" in again.stderr
    assert text_of(os.path.join(folder, "it.html")) == before
    assert holdfast("share", "it", "--force", cwd=folder).returncode == 0
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]
    piped = holdfast("share", "it", "-o", "-")
    assert piped.returncode == 0
    assert piped.stdout.startswith("<!doctype html>")
    assert re.search("<title>.* – holdfast</title>", piped.stdout)
    assert piped.stderr == ""
    # A reader that leaves early is no error of ours.
    argv = [sys.executable, "-m", "holdfast", "share", "it", "-o", "-"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as early:
        assert early.stdout is not None
        assert early.stderr is not None
        early.stdout.read(10)
        early.stdout.close()
        errors = early.stderr.read().decode()
    assert "Traceback" not in errors
    os.mkdir(os.path.join(folder, "d"))
    assert "is a directory" in holdfast("share", "it", "-o", os.path.join(folder, "d"), "--force").stderr
    assert os.path.isdir(os.path.join(folder, "d"))
    missing = holdfast("share", "it", "-o", os.path.join(folder, "no", "x.html"))
    assert missing.returncode == 2
    assert "no such directory" in missing.stderr
    assert holdfast("share", "nosuch").returncode == 3


def test_a_file_can_be_replayed() -> None:
    task = Task.shell(f"echo early; {kin.WAIT} sleep 2; echo late", "--id", "it")
    task.wait_for_log("early")
    kin.go()
    task.wait_for("completed")
    with from_file(shared("it"), "share-replay") as (page, _):
        page.locator(".lines").get_by_text("late").wait_for()
        page.locator(".slider").fill("1")
        page.locator(".replay").wait_for()
        page.locator(".lines").get_by_text("late").wait_for(state="detached")
        page.get_by_role("button", name="Leave the replay").first.click()
        page.locator(".lines").get_by_text("late").wait_for()
