"""What people asked about the output of their first night: the answer has to be in the output itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from holdfast.testing import Scenario
from tests.support import kin
from tests.support.packets import Written
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("a")
    return repo


def asking(task_id: str) -> Task:
    scenario = (
        Scenario()
        .say("I have read it.")
        .interrupt_request("May I delete a.txt?", once=True)
        .sleep(30, once=True)
        .result("It stays.")
    )
    task = Task.play(scenario, "--id", task_id)
    task.wait_for("interrupted")
    return task


def rows(text: str, name: str) -> list[str]:
    """The lines of `show` with this name, and those that continue it."""
    found: list[str] = []
    current = ""
    for line in text.splitlines():
        current = line[:10].strip() or current
        if current == name:
            found.append(line[10:])
    return found


# ── a budget whose cost comes with the result ──


def test_a_budget_that_was_exceeded_with_the_result_is_seen_everywhere() -> None:
    scenario = Scenario().usage(cost_usd=5.0).result("All done.")
    task = Task.play(scenario, "--id", "it", "--budget-usd", "1")
    assert task.wait_for("completed")["over_budget"] == "$5.00 of $1.00"
    assert "[over budget: $5.00 of $1.00] All done." in holdfast("ls").stdout
    done = holdfast("wait", "it")
    assert (done.returncode, done.stdout) == (4, "it completed: over budget: $5.00 of $1.00\n")
    # Notices and `show` have the reason of the state.
    assert task.manifest()["status_reason"] == "over budget: $5.00 of $1.00"
    (need,) = json.loads(holdfast("report", "--json").stdout)["needs"]
    assert (need["task_id"], need["kind"]) == ("it", "budget")


def test_a_budget_that_was_kept_is_no_concern() -> None:
    task = Task.play(Scenario().usage(cost_usd=0.5).result("ok"), "--id", "it", "--budget-usd", "1")
    assert "over_budget" not in task.wait_for("completed")
    assert holdfast("wait", "it").returncode == 0


# ── acceptance ──


@pytest.mark.parametrize(
    ("work", "command", "passed_before"),
    [
        ("echo hi > b.txt", "true", True),
        ("echo hi > b.txt", "test -e b.txt", False),
        (":", "true", True),
    ],
)
def test_acceptance_that_proves_nothing_is_seen(work: str, command: str, passed_before: bool) -> None:
    task = Task.shell(work, "--id", "it", "--accept", command, project=project().path)
    (stage,) = task.wait_for("completed")["stages"]
    assert stage.get("passed_before", False) is passed_before
    told = "acceptance passed before the work as well"
    assert (f"[{told}]" in holdfast("ls").stdout) is passed_before
    (row,) = json.loads(holdfast("report", "--json").stdout)["ended"]
    assert row["accepted"] == (told if passed_before else "accepted")
    (accepted,) = rows(holdfast("show", "it").stdout, "accept")[:1]
    assert accepted.startswith("1 command, passed, but" if passed_before else "1 command, passed (")
    assert holdfast("wait", "it").returncode == 0  # many tests pass before a change and after it


def test_a_packet_whose_acceptance_commands_passed_is_accepted() -> None:
    Written({"scripted_impl": None, "scripted_verify": None}).run()
    (row,) = json.loads(holdfast("report", "--json").stdout)["ended"]
    assert row["accepted"] == "accepted"
    assert "accepted" in holdfast("report").stdout
    (accepted,) = rows(holdfast("show", "it").stdout, "accept")
    assert accepted == "1 command, passed (outputs/scripted_verify.artifact.md)"


# ── the numbers of attempts ──


def test_attempts_are_numbered_without_the_steps_of_holdfast() -> None:
    scenario = Scenario().crash("KILL", tries=2).say("third time").result("ok")
    task = Task.play(
        scenario, "--id", "it", "--accept", "true", "--base-interval", "0.1s", project=project().path
    )
    task.wait_for("completed")
    numbers = [line.split()[:2] for line in rows(holdfast("show", "it").stdout, "attempts")[1:]]
    assert [number for number, name in numbers if "." not in name] == ["1", "2", "3"]
    assert {number for number, name in numbers if "." in name} == {"-"}
    assert "--- attempt 3 (resume) ---" in task.log()
    assert "third time" in holdfast("logs", "it", "--attempt", "3").stdout
    assert "third time" in holdfast("logs", "it", "--raw").stdout  # not what the gate printed
    chore = next(name for number, name in numbers if number == "-")
    assert holdfast("logs", "it", "--attempt", chore).returncode == 0
    none = holdfast("logs", "it", "--attempt", "4")
    assert (none.returncode, "it has 3 attempts" in none.stderr) == (3, True)
    detail = json.loads(holdfast("show", "it", "--json", "--detail").stdout)
    assert [each["ordinal"] for each in detail["attempts"] if each["kind"] == "agent"] == [1, 2, 3]
    assert detail["gates"][-1]["ordinal"] == 3


# ── questions and answers ──


@pytest.mark.parametrize(
    ("scenario", "word"),
    [
        (Scenario().unauthorized("Invalid API key"), "login"),
        (Scenario().interrupt_request("May I?", once=True).sleep(30), "question"),
        (Scenario().say("one").say("two").say("three").hang(), "budget"),
    ],
)
def test_what_a_task_needs_has_one_word_in_all_views(scenario: Scenario, word: str) -> None:
    Task.play(scenario, "--id", "it", "--max-turns", "2").wait_for("interrupted")
    assert holdfast("status").stdout.splitlines()[0].split()[:2] == [word, "it"]
    assert rows(holdfast("show", "it").stdout, word)
    (need,) = json.loads(holdfast("report", "--json").stdout)["needs"]
    assert need["kind"] == word
    assert ("ANSWER" in holdfast("show", "it").stdout) is (word == "question")


def test_a_time_limit_asks_for_time_and_not_for_an_answer() -> None:
    task = Task.shell("sleep 60", "--id", "it", "--timeout", "0.5s")
    assert task.wait_for("interrupted")["status_cause"] == "timeout"
    shown = holdfast("show", "it").stdout
    assert "ANSWER" not in shown
    again, more, _ = rows(shown, "next")
    assert again.split("  ")[0] == "holdfast resume it"
    assert more.startswith("holdfast stop it && holdfast retry it --set timeout=")
    assert rows(shown, "time") == ["the attempt exceeded its 0.5s limit"]
    with open(task.path("state", "interrupts", "1", "summary.md"), encoding="utf-8") as file:
        assert "ANSWER" not in file.read()
    task.stop()


def test_an_open_question_is_in_the_report_once() -> None:
    asking("it")
    report = holdfast("report").stdout
    assert report.count("May I delete a.txt?") == 1
    assert "it  question: May I delete a.txt? → holdfast resume it -m 'ANSWER'" in report
    assert holdfast("resume", "it", "-m", "No.").returncode == 0
    assert holdfast("wait", "it").returncode == 0
    report = holdfast("report").stdout
    assert report.count("May I delete a.txt?") == 1
    assert "it  May I delete a.txt? “No.” (resumed by " in report


def test_the_log_has_the_question_and_the_answer() -> None:
    task = asking("it")
    assert "it needs a person: May I delete a.txt?" in holdfast("logs", "it").stderr
    holdfast("resume", "it", "-m", "No,\nkeep it.")
    assert holdfast("wait", "it").returncode == 0
    lines = task.log().splitlines()
    at = lines.index("--- interrupted: May I delete a.txt? ---")
    assert lines[at + 1].startswith("--- resumed by ")
    assert lines[at + 1].endswith(": No, keep it. ---")
    assert lines[at + 2] == "--- attempt 2 (resume) ---"


def test_the_log_has_the_message_of_a_retry_though_nothing_is_printed() -> None:
    task = Task.shell("exit 3", "--id", "it", "--max-retries", "0")
    task.wait_for("failed")
    for message in ("once more", "and again"):
        task.ask_patiently("retry", "-m", message)
        assert holdfast("wait", "it").returncode == 1
    expected = [
        "--- attempt 1 ended: failed: exit status 3 ---",
        "--- retry: once more ---",
        "--- attempt 2 (again) ---",
        "--- attempt 2 ended: failed: exit status 3 ---",
        "--- retry: and again ---",
        "--- attempt 3 (again) ---",
    ]
    assert task.log().splitlines() == expected
    assert "retry" not in holdfast("ls").stdout  # what it says last is nothing of the agent's


def test_resume_without_an_answer_says_so() -> None:
    asking("it")
    done = holdfast("resume", "it")
    assert done.returncode == 0
    assert done.stderr.startswith("it gets no answer to: May I delete a.txt?\n")
    assert holdfast("wait", "it").returncode == 0
    # Nothing was asked here.
    task = Task.shell("test $HOLDFAST_RESUME_COUNT = 1 || " + kin.WAIT.rstrip("; "), "--id", "other")
    task.agent_pid()
    task.ask("interrupt")
    task.wait_for("interrupted")
    assert "no answer" not in holdfast("resume", "other").stderr
    task.wait_for("completed")


def test_an_answer_can_be_piped() -> None:
    task = asking("it")
    argv = [sys.executable, "-m", "holdfast", "resume", "it", "-m", "-"]
    empty = subprocess.run(argv, input=" \n", capture_output=True, text=True, timeout=30, check=False)
    assert (empty.returncode, "the message is empty" in empty.stderr) == (2, True)
    done = subprocess.run(
        argv, input="No,\nkeep it.\n", capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, "no answer" in done.stderr) == (0, False)
    assert task.wait_for("completed")["answers"][0]["answer"] == "No,\nkeep it."


def test_text_that_is_piped_and_not_asked_for_is_not_lost_in_silence() -> None:
    task = asking("it")
    argv = [sys.executable, "-m", "holdfast", "resume", "it"]
    done = subprocess.run(argv, input="No.\n", capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0
    assert "the text on stdin was not read; '-m -' sends it to the agent" in done.stderr
    task.wait_for("completed")


@pytest.mark.parametrize(("keys", "answer"), [("Yes.\r", "Yes."), ("\r", ""), ("\x04", None)])
def test_on_a_terminal_resume_asks_for_the_answer(keys: str, answer: str | None) -> None:
    task = asking("it")
    terminal = Terminal("resume", "it")
    terminal.read_until("May I delete a.txt?")
    terminal.read_until("> ")
    terminal.press(keys)
    assert terminal.finish() == 0
    if answer is None:
        assert "it stays interrupted" in terminal.text
        assert task.status() == "interrupted"
        task.stop()
        return
    assert ("gets no answer" in terminal.text) is (answer == "")
    assert task.wait_for("completed")["answers"][0]["answer"] == answer


# ── and the rest ──


def test_the_report_says_that_work_was_merged() -> None:
    Task.shell("echo hi > new", "--id", "it", "--worktree", project=project().path).wait_for("completed")
    assert "merged into" not in holdfast("report").stdout
    assert holdfast("apply", "it").returncode == 0
    (row,) = json.loads(holdfast("report", "--json").stdout)["ended"]
    assert row["applied"].startswith(("merged into ", "applied as a patch"))
    assert f", {row['applied']}" in holdfast("report").stdout


def test_a_stopped_queue_names_its_command_once(home: str) -> None:
    with open(os.path.join(home, "interrupt-request.txt"), "w", encoding="utf-8") as file:
        file.write("5 queued tasks failed in a row; nothing is started until 'holdfast queue resume'\n")
    assert holdfast("submit", "--id", "it", "--", "true").returncode == 0
    for text in (holdfast("status").stdout, holdfast("ls").stderr, holdfast("report").stdout):
        assert text.count("holdfast queue resume") == 1, text
    with open(os.path.join(home, "interrupt-request.txt"), "w", encoding="utf-8") as file:
        file.write("I look at the disk first\n")
    for text in (holdfast("status").stdout, holdfast("ls").stderr, holdfast("report").stdout):
        assert text.count("holdfast queue resume") == 1, text


def test_retry_need_not_wait_for_a_slot() -> None:
    Task.shell("exit 3", "--id", "it").wait_for("failed")
    done = holdfast("retry", "it", "--no-wait")
    assert (done.returncode, done.stderr.startswith("it runs again")) == (0, True)
    assert holdfast("wait", "it").returncode == 1


def test_eighty_columns_leave_room_for_the_question() -> None:
    asking("it").stop()
    question = "Two files look unused: may I delete?"
    scenario = Scenario().interrupt_request(question, once=True).sleep(30)
    task = Task.play(scenario, "--id", "asks")
    task.wait_for("interrupted")
    terminal = Terminal("ls")
    assert terminal.finish() == 0
    assert question in terminal.text
    task.stop()


def test_queued_tasks_are_listed_as_they_can_start() -> None:
    after, late = ("--priority", "high", "--after", "first"), ("--priority", "high", "--not-before", "+8h")
    for task_id, flags in (("first", ()), ("late", late), ("then", after)):
        assert holdfast("submit", "--id", task_id, *flags, "--", "true").returncode == 0
    assert holdfast("ls", "-q").stdout.split() == ["first", "then", "late"]
    shown = next(line for line in holdfast("ls").stdout.splitlines() if line.startswith("late"))
    assert re.search(r"not before \d\d:\d\d$", shown), shown


def test_a_failure_is_explained_once_and_with_what_its_command_does() -> None:
    Task.shell("echo no such header >&2; exit 3", "--id", "bad").wait_for("failed")
    crashed = Scenario().crash("KILL", once=True).result("Recovered.")
    Task.play(crashed, "--id", "good", "--base-interval", "0.1s").wait_for("completed")
    report = holdfast("report").stdout
    assert report.count("no such header") == 1
    assert "→ holdfast logs bad -n 40 (see what happened)" in report
    (good,) = [line for line in report.splitlines() if "good  completed" in line]
    assert ", 1 retry" in good


def test_paths_of_tools_are_relative_to_the_workspace(home: str) -> None:
    tree = os.path.join(os.path.realpath(home), "worktrees", "it")
    scenario = Scenario()
    for command in (f"cat {tree}/a", f"cd {tree} && ls", f"cat {tree}x/a /x{tree}/a"):
        scenario = scenario.tool("Bash", command=f"true || {command}")
    task = Task.play(scenario.result("ok"), "--id", "it", "--worktree", project=project().path)
    task.wait_for("completed")
    below, itself, others = [line for line in task.log().splitlines() if line.startswith("[tool]")]
    assert '"true || cat a"' in below
    assert '"true || cd . && ls"' in itself
    assert f"cat {tree}x/a /x{tree}/a" in others


def test_a_denied_tool_has_plain_words() -> None:
    task = Task.play(Scenario().result("I could not.", denied=["WebFetch"]), "--id", "it")
    task.wait_for("completed")
    assert "[tools denied] WebFetch" in task.log()
    assert any(
        "success, tools denied after" in line for line in rows(holdfast("show", "it").stdout, "attempts")
    )
