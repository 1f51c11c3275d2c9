"""Gates check what an agent changed, not what it says; and after a kill in between, nothing runs twice."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from holdfast.testing import Scenario
from tests.support import processes
from tests.support.packets import WORK, Written, brief, calls, gate, played, summary
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")


def project(*files: str) -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md", *files)
    return repo


def implementing(scenario: Scenario, **manifest: Any) -> Written:
    """A packet whose one stage writes."""
    return Written({"scripted_impl": played("impl", before=scenario)}, project=project("old.txt"), **manifest)


def failed_by(packet: Written, check: str) -> Task:
    """Run it to the end at which this check refuses it."""
    task = packet.run(end="failed", within_s=20)
    assert gate(task, "scripted_impl")["failed"] == check
    assert not os.path.exists(task.path("done", "scripted_impl.done"))
    return task


# ── what was changed ──


@pytest.mark.req("GAT-3", "W-B3", "GAT-10")
def test_a_change_outside_the_scope_is_seen_though_the_report_hides_it() -> None:
    diff = f"```diff\n--- /dev/null\n+++ b/{WORK}\n@@ -0,0 +1 @@\n+hello\n```\n"
    scenario = Scenario().write(WORK, content="hello\n").write("elsewhere.txt", content="x\n")
    packet = Written(
        {"scripted_impl": played("impl", f"Only {WORK} was changed.\n{diff}", before=scenario)},
        project=project(),
    )
    task = failed_by(packet, "scope")
    assert any("elsewhere.txt" in reason for reason in gate(task, "scripted_impl")["reasons"])
    # In place, nothing is reverted: the change may be a person's.
    assert packet.project.read("elsewhere.txt") == "x\n"
    text = summary(task)
    assert "scope_violation" in text
    assert "- next_action: **fix_scope**" in text
    failure = task.json("state", "last_failure.json")
    assert (failure["class"], len(failure["signature"])) == ("scope_violation", 16)
    assert failure["signature"] in text
    assert len(calls(task)) == 1  # a retry cannot help


@pytest.mark.req("GAT-3")
def test_what_is_denied_is_refused_though_it_is_allowed() -> None:
    packet = implementing(
        Scenario().write("src/a.txt", content="a\n").write("src/secret/b.txt", content="b\n"),
        scope={"allow": ["src/"], "deny": ["src/secret/"]},
    )
    task = failed_by(packet, "scope")
    reasons = gate(task, "scripted_impl")["reasons"]
    assert any("src/secret/b.txt" in reason for reason in reasons)
    assert not any("src/a.txt" in reason for reason in reasons)


@pytest.mark.req("GAT-3")
def test_a_directory_that_is_allowed_is_the_one_at_the_top() -> None:
    work = Scenario().write("src/a.txt", content="a\n").write("vendor/src/b.txt", content="b\n")
    task = failed_by(
        implementing(work, scope={"allow": ["src/"], "deny": []}, acceptance={"commands": []}), "scope"
    )
    (reason,) = gate(task, "scripted_impl")["reasons"]
    assert "vendor/src/b.txt" in reason


@pytest.mark.req("GAT-3")
def test_a_directory_anywhere_is_written_with_two_stars() -> None:
    work = Scenario().write("src/a.txt", content="a\n").write("vendor/src/b.txt", content="b\n")
    implementing(work, scope={"allow": ["**/src/"], "deny": []}, acceptance={"commands": []}).run()


@pytest.mark.req("GAT-3")
@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("ln -s /etc b.txt", "b.txt"),
        ("git mv old.txt b.txt", "old.txt"),
        (
            "echo x > elsewhere.txt && git add -A && git -c user.name=a -c user.email=a@b commit -qm x",
            "elsewhere.txt",
        ),
        ("rm old.txt", "old.txt"),
    ],
    ids=("link", "rename", "commit", "removal"),
)
def test_other_ways_out_of_the_scope(command: str, named: str) -> None:
    task = failed_by(implementing(Scenario().tool("sh", command=command)), "scope")
    assert any(named in reason for reason in gate(task, "scripted_impl")["reasons"])


@pytest.mark.req("GAT-3")
def test_what_a_person_had_changed_before_is_not_blamed() -> None:
    packet = implementing(Scenario().write(WORK, content="hello\n"))
    packet.project.write("old.txt", "a person was here\n")
    packet.project.write("new.txt", "and here\n")
    task = packet.run()
    assert gate(task, "scripted_impl")["passed"]
    assert packet.project.read("old.txt") == "a person was here\n"


@pytest.mark.req("LCH-20")
def test_a_worktree_takes_back_what_lies_outside() -> None:
    packet = implementing(
        Scenario().write(WORK, content="hello\n").write("elsewhere.txt", content="x\n"),
        workspace="worktree",
        scope={"revert": True},
    )
    task = packet.run()
    verdict = gate(task, "scripted_impl")
    assert verdict["passed"]
    assert any("elsewhere.txt" in reason for reason in verdict["reasons"])
    assert b"elsewhere.txt" in task.read("outputs", "scripted_impl.reverted.patch")
    (prepared,) = task.events("workspace.prepared")
    assert sorted(name for name in os.listdir(prepared["path"]) if name.endswith(".txt")) == [WORK, "old.txt"]
    # The user's directory is unchanged.
    assert not os.path.exists(os.path.join(packet.project.path, WORK))


@pytest.mark.req("GAT-3")
def test_a_stage_that_is_named_again_is_judged_with_what_it_did_before() -> None:
    once = os.path.join(workspace(), "once")
    command = f"echo hello >> {WORK}; test -e {once} || echo x > elsewhere.txt; touch {once}"
    packet = implementing(Scenario().tool("sh", command=command))
    task = failed_by(packet, "scope")
    assert task.ask("retry", "--from", "scripted_impl").returncode == 0
    task.wait_for_event("gate.judged", count=2)
    task.wait_for("failed")
    assert any("elsewhere.txt" in reason for reason in gate(task, "scripted_impl")["reasons"])


@pytest.mark.req("GAT-3")
@pytest.mark.parametrize("where", ["in_place", "worktree"])
def test_changes_of_a_reviewer_are_reported_or_refused(where: str) -> None:
    work = Scenario().write("README.md", content="evil\n")
    stages = {"scripted_impl": None, "scripted_review": played("review", before=work)}
    packet = Written(stages, project=project(), workspace=where)
    task = packet.run(end="completed" if where == "in_place" else "failed")
    if where == "in_place":
        told = "README.md was modified while scripted_review ran, which must not change files"
        assert gate(task, "scripted_review")["warnings"] == [told]
        assert told in summary(task)
    else:
        assert gate(task, "scripted_review")["failed"] == "scope"
        assert task.json("state", "last_failure.json")["class"] == "scope_violation"


def test_reviews_side_by_side_are_compared_with_one_look() -> None:
    stages = {"scripted_review": None, "scripted_security_review": None}
    waves = [{"parallel": list(stages), "timeout_sec": 30}]
    packet = Written(
        stages,
        intent="review_cross",
        group="review",
        waves=waves,
        project=project(),
        acceptance={"commands": []},
    )
    task = packet.run()
    assert len(task.events("workspace.prepared")) == 1


# ── what was reported ──


@pytest.mark.req("GAT-4", "GAT-9", "GAT-1")
def test_missing_headings_stop_the_task() -> None:
    stages = {"scripted_brief": "## Summary\n\nall clear\n", "scripted_impl": None}
    task = Written(stages).run(end="failed")
    verdict = gate(task, "scripted_brief")
    assert verdict["failed"] == "headings"
    assert "the report has no heading 'Verify Commands'" in verdict["reasons"]
    assert calls(task, "scripted_impl") == []
    assert not os.path.exists(task.path("done", "scripted_brief.done"))
    assert task.json("state", "last_failure.json")["class"] == "contract_violation"
    assert "- next_action: **fix_contract**" in summary(task)
    # The person says what is missing; the agent gets it in its session, with the reasons of the gate.
    assert task.ask("retry", "-m", "use the headings of the template").returncode == 0
    task.wait_for_event("attempt.opened", count=len(task.events("attempt.opened")) + 1)
    told = eventually(lambda: task.read("attempts", _directory(calls(task)[1]), "prompt")).decode()
    assert "use the headings of the template" in told
    assert "the report has no heading 'Verify Commands'" in told
    task.wait_for("failed")


def _directory(opened: dict[str, Any]) -> str:
    return f"{opened['attempt']:03d}-{opened['stage']}"


# ── acceptance ──


def verifying(*commands: str, proposed: tuple[str, ...] = (), **acceptance: Any) -> Written:
    stages = {"scripted_brief": brief(*proposed), "scripted_verify": None}
    return Written(
        stages,
        intent="review_only",
        group="review",
        project=project(),
        acceptance={"commands": list(commands), **acceptance},
    )


@pytest.mark.req("GAT-2", "GAT-9")
def test_a_command_that_fails() -> None:
    task = verifying("echo before", "echo 'no such thing' >&2; exit 7", "echo behind").run(end="failed")
    verdict = gate(task, "scripted_verify")
    assert verdict["failed"] == "acceptance"
    assert "exit status 7: no such thing" in verdict["reasons"][0]
    artifact = task.read("outputs", "scripted_verify.artifact.md").decode()
    assert "exit code: 7" in artifact
    assert "behind" in artifact  # all of them run
    assert "contract_violation" in summary(task)


@pytest.mark.req("GAT-2", "W-B2", "W-B3")
def test_a_command_that_never_ends_is_ended_with_all_that_it_started() -> None:
    mark = os.path.join(workspace(), "pids")
    command = f"setsid sleep 3000 & echo $! > {mark}; sleep 3000 & echo $! >> {mark}; wait"
    task = verifying(command, timeout_sec=1).run(end="failed")
    (reason,) = gate(task, "scripted_verify")["reasons"]
    assert "timed out" in reason
    assert "timed out after" in task.read("outputs", "scripted_verify.artifact.md").decode()
    with open(mark, encoding="utf-8") as file:
        pids = [int(line) for line in file]
    assert len(pids) == 2
    eventually(lambda: not any(processes.is_alive(pid) for pid in pids), what="its processes are gone")


@pytest.mark.req("GAT-2")
def test_a_command_behind_a_loop_is_judged_by_itself() -> None:
    proposed = ("if true; then\n  echo hi\nfi", "false", "cat <<E\n  kept\nE", "echo end")
    task = verifying(proposed=proposed).run(end="failed")
    (reason,) = gate(task, "scripted_verify")["reasons"]
    assert reason == "`false` failed with exit status 1"
    assert "\n  kept\n" in task.read("outputs", "scripted_verify.artifact.md").decode()


@pytest.mark.req("GAT-2")
def test_an_agent_cannot_choose_the_commands_that_judge_it() -> None:
    cheat = Scenario().tool(command='echo true > "$HOLDFAST_PACKET/state/acceptance.commands.override"')
    stages = {
        "scripted_impl": played("impl", before=cheat.write(WORK, content="hello\n")),
        "scripted_verify": None,
    }
    task = Written(stages, acceptance={"commands": ["false"]}).run(end="failed")
    (reason,) = gate(task, "scripted_verify")["reasons"]
    assert reason == "`false` failed with exit status 1"
    assert "from the manifest" in task.read("outputs", "scripted_verify.artifact.md").decode()


@pytest.mark.req("GAT-6")
def test_a_dangerous_command_of_a_model_is_not_run() -> None:
    packet = verifying("true", proposed=("touch ran.txt", "rm -rf ./*", "sudo touch ran2.txt"))
    task = packet.run(end="failed")
    reasons = gate(task, "scripted_verify")["reasons"]
    assert [reason.startswith("refused to run") for reason in reasons] == [True, True]
    # The harmless command ran in the clean room, the others did not.
    assert (
        "## $ touch ran.txt\n\n- exit code: 0" in task.read("outputs", "scripted_verify.artifact.md").decode()
    )
    assert os.path.exists(os.path.join(packet.project.path, "README.md"))
    assert not os.path.exists(os.path.join(packet.project.path, "ran2.txt"))


# ── kills ──


def test_a_gate_that_is_killed_judges_again() -> None:
    began = os.path.join(workspace(), "began")
    # It stays only the first time.
    task = verifying(
        f"test -e {began} || {{ echo $$ > {began}.tmp; mv {began}.tmp {began}; sleep 3000; }}"
    ).start()
    eventually(lambda: os.path.exists(began), 20, "the gate runs its command")
    (opened,) = [
        e for e in task.events("attempt.opened") if e["kind"] == "gate" and e["stage"] == "scripted_verify"
    ]
    started = next(e for e in task.events("attempt.started") if e["attempt"] == opened["attempt"])
    os.kill(started["pid"], signal.SIGKILL)
    task.wait_for("completed", within_s=20)
    assert len(calls(task, "scripted_verify")) == 1
    (failed,) = task.events("chore.failed")
    assert (failed["stage"], failed["kind"]) == ("scripted_verify", "gate")
    with open(began, encoding="utf-8") as file:
        assert not processes.is_alive(int(file.read()))


@pytest.mark.req("TST-7")
def test_an_agent_that_is_killed_goes_on_in_its_session() -> None:
    scenario = Scenario().write(WORK, content="hello\n").crash("KILL", once=True)
    packet = Written(
        {"scripted_brief": None, "scripted_impl": played("impl", before=scenario)}, project=project()
    )
    task = packet.run()
    first, second = calls(task, "scripted_impl")
    assert (first["mode"], second["mode"]) == ("fresh", "resume")
    assert first["session_id"] == second["session_id"]
    assert len(calls(task, "scripted_brief")) == 1
    # The gate compares with the state before the first of them.
    prepared = [event["stage"] for event in task.events("workspace.prepared")]
    assert prepared == ["scripted_brief", "scripted_impl"]
    assert gate(task, "scripted_impl")["passed"]
    stats = task.json("state", "stats.json")
    assert [seen["class"] for seen in stats["signatures"].values()] == ["transient"]
    assert stats["paid_calls"] == 3


@pytest.mark.req("PIP-10", "TST-7", "CON-2")
def test_runners_that_are_killed_in_every_stage() -> None:
    ran = os.path.join(workspace(), "ran")
    go = os.path.join(workspace(), "go")
    stages: dict[str, Scenario | str | None] = {}
    names = ("scripted_brief", "scripted_impl", "scripted_verify", "scripted_review")
    for name in names:
        role = name.partition("_")[2]
        scenario = Scenario().write(ran, content=f"{name}\n", append=True)
        if role == "impl":
            scenario.write(WORK, content="hello\n")
        stages[name] = played(role, before=scenario.wait_file(f"{go}-{role}"))
    task = Written(stages, project=project()).start()
    for done, name in enumerate(names):
        eventually(lambda name=name: name in _lines(ran), 20, f"{name} is at work", journal=task.packet)
        # The summary is rewritten after every stage.
        assert done == 0 or f"({done} of 4 stages done)" in summary(task)
        task.kill_runner()
        with open(f"{go}-{name.partition('_')[2]}", "w", encoding="utf-8"):
            pass
        task.start_runner()
    task.wait_for("completed", within_s=30)
    assert _lines(ran) == list(names)
    assert [event["stage"] for event in calls(task)] == list(names)
    # A stage with its marker never runs again.
    task.start_runner()
    assert _lines(ran) == list(names)


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


@pytest.mark.req("PIP-10")
def test_a_failed_stage_ends_the_run_and_a_retry_skips_what_is_done() -> None:
    ran = os.path.join(workspace(), "ran")
    stages = {
        "scripted_brief": played("brief", before=Scenario().write(ran, content="brief\n", append=True)),
        "scripted_impl": played("impl", "nothing was done", before=Scenario(on_resume="restart").say("hm")),
        "scripted_review": played("review", before=Scenario().write(ran, content="review\n", append=True)),
    }
    packet = Written(stages, project=project())
    done = holdfast("run", "--packet", packet.path, cwd=packet.project.path)
    assert done.returncode == 1
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", packet.task_id))
    assert _lines(ran) == ["brief"]
    work = Scenario(on_resume="restart").write(WORK, content="hello\n")
    played("impl", before=work).write_to(os.path.join(packet.path, "scripted_impl.json"))
    assert task.ask("retry").returncode == 0
    task.wait_for_event("run.opened")
    task.wait_for("completed", within_s=20)
    assert _lines(ran) == ["brief", "review"]
    # --from drops the markers from there on, and no others.
    assert task.ask("retry", "--from", "scripted_review", "-m", "look once more").returncode == 0
    task.wait_for_event("run.opened", count=2)
    task.wait_for("completed", within_s=20)
    assert _lines(ran) == ["brief", "review", "review"]
    assert len(calls(task, "scripted_impl")) == 2
    again = calls(task, "scripted_review")[-1]
    assert again["mode"] == "fresh"
    assert "look once more" in task.read("attempts", _directory(again), "prompt").decode()
