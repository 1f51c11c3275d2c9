"""`--accept CMD`: acceptance commands of a plain run, judged in a clean room."""

from __future__ import annotations

import json
import os
import re

import pytest

from holdfast.testing import Scenario
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, trust, workspace

pytestmark = pytest.mark.usefixtures("home")

STAGE = "scripted_run"
ACCEPT = "cat b.txt; grep -q good b.txt"


def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("b.txt", "nothing\n")
    repo.commit("b.txt")
    return repo


def writes(content: str) -> Scenario:
    return Scenario().write("b.txt", content=f"{content}\n").say("done").result("ok")


def test_after_a_retry_views_say_what_is_of_all_runs_and_no_diff_of_nothing_is_suggested() -> None:
    scenario = Scenario().usage(input_tokens=100, output_tokens=10, cost_usd=0.5).say("no idea").result("ok")
    flags = ("--worktree", "--accept", ACCEPT, "--id", "it")
    task = Task.play(scenario, *flags, project=project().path)
    reason = task.wait_for("failed", within_s=40)["status_reason"]
    assert reason.startswith("acceptance failed after 2 repairs: ")
    # Nothing was changed, so there is nothing to compare.
    assert task.manifest()["stages"][0]["changed"] == 0
    for text in (holdfast("show", "it").stdout, holdfast("report").stdout, holdfast("retry", "it").stderr):
        assert "holdfast diff" not in text
    task.wait_for("failed", within_s=40)
    assert "holdfast logs it -n 40" in task.read("outputs", "_summary.md").decode()
    shown = holdfast("show", "it").stdout
    assert re.search(
        r"attempts +6 plus \d+ holdfast steps in 2 runs, no automatic retries in the last", shown
    )
    assert re.search(r"ended .* \(the last run took ", shown)
    assert re.search(r"usage .* cost \$[\d.]+, .* in 2 runs\n", shown)
    assert re.search(
        r"failed after [\d.]+s, 2 repairs, \$[\d.]+ in 2 runs, no changes", holdfast("report").stdout
    )
    assert (
        "- run: 2; attempts, paid calls, tokens and cost are of all runs"
        in task.read("outputs", "_summary.md").decode()
    )


@pytest.mark.req("GAT-10")
@pytest.mark.parametrize("flags", [(), ("--worktree",)])
def test_refused_work_goes_back_to_the_session_and_is_accepted_then(flags: tuple[str, ...]) -> None:
    scenario = writes("bad").resumed(writes("good"))
    task = Task.play(scenario, "--accept", ACCEPT, *flags, project=project().path)
    task.wait_for("completed", within_s=40)
    first, second = task.memory().starts()
    assert (first.is_resume, second.is_resume) == (False, True)
    assert f"`{ACCEPT}` failed with exit status 1" in second.prompt
    assert f"$ {ACCEPT}\nbad" in second.prompt
    (planned,) = task.events("repair.planned")
    assert (planned["stage"], planned["failed_stage"], planned["number"]) == (STAGE, STAGE, 1)
    assert [judged["passed"] for judged in task.events("gate.judged")] == [False, True]
    assert "- before the work: " in task.read("outputs", f"{STAGE}.artifact.md").decode()
    assert task.events("gate.judged")[-1]["changed"] == 1
    why = f"`{ACCEPT}` failed with exit status 1"
    (repair,) = task.manifest()["repairs"]
    # It counts when it begins.
    assert (repair["stage"], repair["failed_stage"]) == (STAGE, STAGE)
    assert repair["at"] in [opened["at"] for opened in task.events("attempt.opened")]
    assert why in repair["reason"]
    shown = holdfast("show", task.id).stdout
    assert f"repairs   by {STAGE}: " in shown
    assert why in shown
    assert "1 command, passed after 1 repair" in shown
    summary = task.read("outputs", "_summary.md").decode()
    assert "retries: 0, repairs: 1" in summary
    assert why.replace("`", "'") in summary
    report = holdfast("report").stdout
    assert ", 1 repair, " in report
    assert ", accepted" in report


@pytest.mark.req("GAT-10")
def test_what_the_agent_left_outside_the_tree_does_not_count() -> None:
    repo = project()
    repo.write(".gitignore", "*.cache\n")
    repo.commit(".gitignore")
    scenario = Scenario().write("pass.cache", content="x\n").say("done").result("ok")
    done = holdfast(
        *("run", "--agent", "scripted", "-o", f"scenario={scenario.write_to(workspace() + '/s.json')}"),
        *("--id", "t1", "--accept", "test -e pass.cache", "do it"),
        cwd=repo.path,
    )
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "t1"))
    assert (done.returncode, task.status()) == (1, "failed"), done.stderr
    assert "acceptance" in task.manifest()["status_reason"]
    assert len(task.events("repair.planned")) == 2
    assert not os.path.exists(task.path("done", f"{STAGE}.done"))
    assert "- next_action: **fix_work**" in task.read("outputs", "_summary.md").decode()
    shown = holdfast("show", "t1").stdout
    assert "holdfast diff t1" not in shown  # it would show nothing
    assert "holdfast retry t1 -m 'WHAT TO FIX'   go on, with a message to the agent" in shown


def test_the_recommended_command_sends_it_back_again() -> None:
    counter = os.path.join(workspace(), "calls")
    command = f"echo x >> {counter}; if [ $(wc -l < {counter}) -gt 3 ]; then echo good > b.txt; fi"
    scenario = Scenario(on_resume="restart").tool("sh", command=command).say("done").result("ok")
    task = Task.play(scenario, "--accept", ACCEPT, project=project().path)
    task.wait_for("failed", within_s=40)
    assert task.ask("retry", "-m", "make it good").returncode == 0
    task.wait_for("completed", within_s=40)
    last = task.memory().starts()[-1]
    assert last.is_resume
    assert "make it good" in last.prompt
    assert "grep -q good b.txt` failed" in last.prompt


def test_a_command_is_judged_and_not_repaired() -> None:
    repo = project()
    task = Task.shell("echo bad > b.txt", "--accept", ACCEPT, project=repo.path)
    task.wait_for("failed", within_s=30)
    assert task.events("repair.planned") == []
    good = Task.shell("echo good > b.txt", "--accept", "true", "--accept", ACCEPT, project=repo.path)
    good.wait_for("completed", within_s=30)


def test_commands_that_passed_before_are_reported() -> None:
    task = Task.play(writes("good"), "--accept", "true", project=project().path)
    task.wait_for("completed", within_s=30)
    assert "prove nothing" in task.read("outputs", "_summary.md").decode()


def test_a_setting_that_only_warns_does_not_soften_acceptance() -> None:
    repo = project()
    repo.write(".holdfast/config.toml", 'on_quality = "warn"\npost_work = ["false"]\n')
    repo.commit(".holdfast/config.toml")
    trust(repo.path)
    task = Task.shell("echo bad > b.txt", "--accept", ACCEPT, project=repo.path)
    task.wait_for("failed", within_s=30)
    assert task.json("outputs", "command_run.gate_result.json")["failed"] == "acceptance"


def test_outside_git_and_with_a_packet_it_is_refused() -> None:
    folder = os.path.join(workspace(), "plain")
    os.makedirs(folder)
    done = holdfast("run", "--accept", "true", "--", "true", cwd=folder)
    assert done.returncode == 2
    assert "--accept" in done.stderr
    assert "git" in done.stderr
    assert holdfast("submit", "--accept", "", "--", "true", cwd=project().path).returncode == 2
    packet = holdfast("run", "--accept", "true", "--packet", folder, cwd=folder)
    assert packet.returncode == 2
    assert "acceptance.commands" in packet.stderr


def test_show_says_what_the_commands_concluded() -> None:
    task = Task.shell("echo good > b.txt", "--accept", ACCEPT, project=project().path)
    task.wait_for("completed", within_s=30)
    assert "1 command, passed (outputs/command_run.artifact.md)" in task.ask("show").stdout


# ── work items of the queue ──


def _item(**fields: object) -> str:
    return json.dumps({"id": "w1", "title": "write it", "agent": "scripted", **fields})


@pytest.mark.req("GAT-10")
def test_a_work_item_is_completed_only_if_its_commands_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    path = writes("bad").resumed(writes("good")).write_to(os.path.join(workspace(), "s.json"))
    text = _item(accept=[ACCEPT], options={"scenario": str(path)})
    done = holdfast("queue", "add", text, cwd=project().path)
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "w1"))
    task.wait_for("completed", within_s=60)
    assert [judged["passed"] for judged in task.events("gate.judged")] == [False, True]
    holdfast("down")


@pytest.mark.parametrize("wrong", [7, {"a": "b"}, [1], ["a\0b"]])
def test_a_work_item_with_other_things_than_commands_is_refused(wrong: object) -> None:
    done = holdfast("queue", "add", _item(accept=wrong), cwd=project().path)
    assert done.returncode == 2
    assert "accept" in done.stderr


def test_commands_of_a_work_item_in_a_project_need_trust() -> None:
    repo = project()
    repo.write("items.json", json.dumps({"id": "w1", "command": "true", "accept": "true"}))
    done = holdfast("queue", "import", os.path.join(repo.path, "items.json"), cwd=repo.path)
    assert done.returncode == 2
    assert "was not trusted yet: command, accept" in done.stderr


def test_new_attributes_do_not_change_the_tests() -> None:
    """In this encoding, the shell finds no `||` in the test."""
    repo = project()
    repo.write("check.sh", "grep -q good b.txt || exit 1\necho fine\n")
    repo.commit()
    script = Scenario().write(".gitattributes", content="*.sh working-tree-encoding=UTF-7\n")
    script.write("new.sh", content="exit 0\n").say("done").result("ok")
    flags = ("--accept", "sh check.sh", "--accept", "sh new.sh", "--worktree", "--id", "it")
    Task.play(script, *flags, project=repo.path)
    done = holdfast("wait", "it", "--timeout", "50s")
    assert done.returncode != 0, done.stdout
