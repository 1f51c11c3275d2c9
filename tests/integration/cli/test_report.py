"""holdfast report: state, queue, results, interrupts, statistics."""

from __future__ import annotations

import json
import os
import re

import pytest

from holdfast import clock
from holdfast.testing import Scenario
from tests.support import kin
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def facts(*words: str) -> dict:
    done = holdfast("report", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.req("AUD-6")
def test_state_activity_interrupts_and_figures() -> None:
    Task.shell("true", "--id", "good").wait_for("completed")
    Task.shell("exit 3", "--id", "bad").wait_for("failed")
    asked = Task.shell(kin.WAIT, "--id", "asked")
    asked.agent_pid()
    asked.ask("interrupt", "-m", "which branch?")
    asked.wait_for("interrupted")
    busy = Task.shell("echo at it; " + kin.WAIT, "--id", "busy")
    busy.wait_for_log("at it")
    report = facts()
    assert report["schema"] == "holdfast.report/1"
    assert {row["task_id"]: row["status"] for row in report["ended"]} == {
        "good": "completed",
        "bad": "failed",
    }
    assert [(row["task_id"], row["last_line"]) for row in report["active"]] == [("busy", "at it")]
    (interrupt,) = report["interrupts"]
    assert (interrupt["task_id"], interrupt["reason"], interrupt["resolved_at"]) == (
        "asked",
        "which branch?",
        None,
    )
    assert report["statistics"]["success_rate"] == 0.5
    text = holdfast("report").stdout
    assert text.count("which branch?") == 1
    assert "asked  stopped: which branch?" in text
    assert "bad  failed after" in text
    assert "at it" not in text
    assert "at it" in holdfast("report", "--detailed").stdout
    kin.go()
    busy.wait_for("completed")
    asked.stop()
    assert facts()["interrupts"][0]["resolved_at"]


def test_a_cost_that_is_known_in_part_is_said_to_be_so() -> None:
    Task.shell("true").wait_for("completed")  # a command costs nothing
    for verb in ("report", "metrics"):
        text = holdfast(verb).stdout
        assert "no paid calls\n" in text
        assert "cost unknown" not in text
    Task.play(Scenario().usage(cost_usd=0.25).result()).wait_for("completed")
    text = holdfast("report").stdout
    assert "cost $0.25\n" in text
    assert "cost unknown" not in text
    Task.play(Scenario().crash("KILL", once=True).result(), "--id", "dear").wait_for("completed")
    assert re.search(r"dear  completed after .*, cost unknown", holdfast("report").stdout)
    for verb in ("report", "metrics"):
        assert "cost at least $0.25 (unknown for 1 task)\n" in holdfast(verb).stdout


def test_metrics_are_not_printed_twice_if_all_are_of_today() -> None:
    Task.shell("true").wait_for("completed")
    text = holdfast("metrics").stdout
    assert text.count("success") == 1
    assert text.endswith("last 24 h: the same\n")


def test_several_worktrees_are_told_in_order(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a")
    for number in range(3):
        script = f"echo hi > new-{number}"
        Task.shell(script, "--id", f"t{number}", "--worktree", project=repo.path).wait_for("completed")
    assert [(row["task_id"], row["diffstat"], row["next"]) for row in facts()["ended"]] == [
        (f"t{number}", "1 file changed, 1 insertion(+)", f"holdfast diff t{number}") for number in (2, 1, 0)
    ]


def test_a_task_that_has_not_run_has_no_unknown_cost() -> None:
    Task.play(Scenario().usage(cost_usd=0.25).result()).wait_for("completed")
    assert holdfast("submit", "--id", "next", "--", "true", cwd=workspace()).returncode == 0
    assert "cost $0.25\n" in holdfast("report").stdout


def test_a_result_names_a_command_only_if_there_is_something_to_do() -> None:
    Task.play(Scenario().say("## Findings\n\nNone.").result(), "--id", "good").wait_for("completed")
    text = holdfast("report").stdout
    assert "“Findings None.”\n" in text
    assert "holdfast logs" not in text


def test_it_says_how_an_interrupt_was_resolved() -> None:
    asked = Task.shell(kin.WAIT, "--id", "asked")
    asked.agent_pid()
    asked.ask("interrupt", "-m", "Which branch?")
    asked.wait_for("interrupted")
    assert holdfast("resume", "asked").returncode == 0
    (line,) = [each for each in holdfast("report").stdout.splitlines() if "Which branch?" in each]
    assert re.search(r"asked  Which branch\? \(resumed by \S+, \d\d:\d\d\)$", line)
    kin.go()
    asked.wait_for("completed")


def test_what_was_archived_is_in_it_and_what_is_old_is_not() -> None:
    Task.shell("true", "--id", "it").wait_for("completed")
    assert holdfast("archive", "it").returncode == 0
    assert [row["task_id"] for row in facts()["ended"]] == ["it"]
    assert facts("--since", "0s")["ended"] == []


def test_an_empty_home_none_at_all_and_errors(home: str) -> None:
    assert "- none" in holdfast("report").stdout
    os.rename(home, home + "-gone")
    assert holdfast("report").returncode == 0
    assert holdfast("report", "--since", "soon").returncode == 2
    os.path.exists(home) and os.rmdir(home)
    os.rename(home + "-gone", home)


def test_what_waits_for_its_turn_is_in_the_queue() -> None:
    done = holdfast("submit", "--id", "next", "--", "true", cwd=workspace())
    assert done.returncode == 0, done.stderr
    (row,) = facts()["queue"]
    assert (row["task_id"], row["state"]) == ("next", "queued")
    assert "next  queued since" in holdfast("report").stdout


def test_it_leads_with_what_needs_you_and_hides_nothing() -> None:
    for number in range(12):
        Task.shell("echo oh no; exit 3", "--id", f"bad-{number:02}").wait_for("failed")
    scenario = Scenario().say("All is well.").usage(cost_usd=0.5).result()
    Task.play(scenario, "--id", "good").wait_for("completed")
    asked = Task.shell(kin.WAIT, "--id", "asked")
    asked.agent_pid()
    asked.ask("interrupt", "-m", "which branch?")
    text = holdfast("report").stdout
    needs, results = text.index("## Needs you (13)"), text.index("## Results (13)")
    assert needs < results < text.index("## State")
    first = text[needs:results]
    assert "asked  stopped: which branch?" in first
    assert "holdfast resume asked (go on)" in first
    assert all(f"bad-{number:02}  failed" in first for number in range(12))
    leave = "- (retry, apply, archive or rm takes an ended task off this list; so do 24 hours)"
    assert first.rstrip().splitlines()[-1] == leave
    assert "good" not in first
    assert "more (--detailed)" not in text
    assert "All is well." in text[results:]
    assert "\n## Statistics (archive included)\n" in text
    assert "$0.50" in text[results:]
    found = facts()
    assert {row["kind"] for row in found["needs"]} == {"stopped", "failed"}
    good = next(row for row in found["ended"] if row["task_id"] == "good")
    assert (good["last_words"], good["next"]) == ("All is well.", "holdfast logs good")
    asked.stop()


def test_work_that_was_applied_is_not_to_be_looked_at_again(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a")
    Task.shell("echo hi > new", "--id", "it", "--worktree", project=repo.path).wait_for("completed")
    assert facts()["ended"][0]["next"] == "holdfast diff it"
    assert holdfast("apply", "it").returncode == 0
    assert facts()["ended"][0]["next"] == "holdfast logs it"


def test_a_login_that_was_refused_asks_for_a_login_and_not_for_an_answer() -> None:
    Task.play(Scenario().unauthorized("Invalid API key"), "--id", "it").wait_for("interrupted")
    (need,) = facts()["needs"]
    assert (need["kind"], need["next"]) == ("login", "holdfast resume it")
    assert "ANSWER" not in holdfast("show", "it").stdout


def test_what_was_archived_needs_nobody() -> None:
    Task.shell("exit 3", "--id", "bad").wait_for("failed")
    assert [need["task_id"] for need in facts()["needs"]] == ["bad"]
    assert holdfast("archive", "bad").returncode == 0
    assert facts()["needs"] == []
    assert [row["task_id"] for row in facts()["ended"]] == ["bad"]


def test_markdown_and_html_are_safe_to_publish() -> None:
    evil = "<script>alert(1)</script> [x](javascript:alert(2)) *a* `b` | c"
    asked = Task.shell(kin.WAIT, "--id", "asked")
    asked.agent_pid()
    asked.ask("interrupt", "-m", evil)
    text = holdfast("report", "--markdown").stdout
    assert "\\<script\\>" in text
    assert "\\[x\\](javascript" in text
    assert "→ `holdfast resume asked` (" in text  # a command is code
    assert "<script>" not in text.replace("\\<script\\>", "")
    path = os.path.join(workspace(), "report.html")
    done = holdfast("report", "--html", path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert path in done.stderr
    with open(path, encoding="utf-8") as file:
        page = file.read()
    assert page.startswith("<!doctype html>")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
    assert "://" not in page  # nothing is loaded
    assert "default-src 'none'" in page
    refused = holdfast("report", "--html", os.path.join(workspace(), "no", "such", "report.html"))
    assert refused.returncode == 2, refused.stderr
    assert holdfast("report", "--html", path, "--markdown").returncode == 2
    asked.stop()


def test_a_directory_is_never_replaced_by_a_page_and_a_link_is_followed() -> None:
    folder = os.path.join(workspace(), "project")
    os.mkdir(folder)
    done = holdfast("report", "--html", folder)
    assert done.returncode == 3, done.stdout
    assert "is a directory" in done.stderr
    assert os.listdir(workspace()) == ["project"]
    link = os.path.join(workspace(), "link.html")
    os.symlink("project/page.html", link)
    assert holdfast("report", "--html", link).returncode == 0
    assert os.path.islink(link)
    assert os.path.isfile(os.path.join(folder, "page.html"))
    assert holdfast("report", "--html", "-").stdout.startswith("<!doctype html>")
    done = holdfast("report", "--html", os.path.join(workspace(), "none/page.html"))
    assert "create it, or choose another file" in done.stderr


def test_a_queue_that_waits_for_a_person_leads_the_report(home: str) -> None:
    os.makedirs(home, exist_ok=True)
    with open(os.path.join(home, "interrupt-request.txt"), "w", encoding="utf-8") as file:
        file.write("5 failures in a row")
    text = holdfast("report").stdout
    needs = text.split("## Needs you (1)")[1].split("##")[0]
    assert "the queue  stopped: 5 failures in a row" in needs
    assert "holdfast queue resume" in needs
    assert "off this list" not in needs  # no task that has ended


def test_a_spent_budget_that_holds_the_queue_needs_you_and_removed_tasks_are_said_to_be_missing(
    home: str,
) -> None:
    assert holdfast("submit", "--id", "next", "--", "true", cwd=workspace()).returncode == 0
    why = "no task is started before midnight: $6.00 of $5.00 are spent (budget_per_day in your settings)"
    spent = {"spent": {"*": 6.0}, "spent_day": clock.local_day(clock.now())}
    for name, data in (
        ("loop.json", {"schema": "holdfast.loop/1", "short_of": why, **spent}),
        ("settings.json", {"loop": {"budget_usd": 5.0}}),
    ):
        with open(os.path.join(home, name), "w", encoding="utf-8") as file:
            json.dump(data, file)
    text = holdfast("report").stdout
    needs = text.split("## Needs you (1)")[1].split("##")[0]
    assert f"the queue  limit: {why} → holdfast config path" in needs
    assert text.count(why) == 1
    missing = "no paid calls; removed tasks (at least $6.00 today) are not included"
    assert missing in text
    assert missing in holdfast("metrics").stdout
    os.unlink(os.path.join(home, "settings.json"))  # also without a budget
    assert missing in holdfast("metrics").stdout
