"""Acceptance commands that cannot start: no failed work if they could not start before the work either."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from holdfast import clock, ids
from holdfast.model.request import Request
from holdfast.store import atomic
from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from tests.support.packets import REPORTS, WORK, Written, calls
from tests.support.repos import Repo
from tests.support.tasks import Task, trust, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")

TOOL = "hf-no-such-tool"


def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("b.txt", "nothing\n")
    repo.write(".gitignore", "build/\n")
    repo.commit("b.txt", ".gitignore")
    return repo


def writes(path: str, content: str) -> Scenario:
    return Scenario().write(path, content=f"{content}\n").say("done").result("ok")


def run(*commands: str, scenario: Scenario | None = None, project: str) -> Task:
    accept = [word for command in commands for word in ("--accept", command)]
    return Task.play(scenario or writes("b.txt", "good"), *accept, project=project)


def install(folder: str, name: str, *lines: str) -> None:
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(("#!/bin/sh", *lines, "")))
    os.chmod(path, 0o755)


@pytest.fixture
def bin_dir(monkeypatch: pytest.MonkeyPatch) -> str:
    """A directory on the PATH, empty for now."""
    folder = os.path.join(workspace(), "bin")
    os.makedirs(folder)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.mark.req("GAT-10")
def test_a_missing_program_is_no_failed_work_and_the_same_work_is_judged_after_it_was_installed(
    bin_dir: str,
) -> None:
    task = run(f"{TOOL} b.txt", "grep -q good b.txt", project=project().path)
    manifest = task.wait_for("interrupted", within_s=40)
    assert task.events("repair.planned") == []
    assert f"`{TOOL} b.txt` failed with exit status 127" in manifest["status_reason"]
    assert "could not start before the work either" in manifest["status_reason"]
    assert f"holdfast resume {task.id}" in manifest["status_reason"]
    assert manifest["status_cause"] == "setup"
    assert "- next_action: **fix_setup**" in task.read("outputs", "_summary.md").decode()
    assert f"holdfast resume {task.id}   go on" in task.ask("show").stdout
    artifact = task.read("outputs", "scripted_run.artifact.md").decode()
    assert "- before the work: exit code 127" in artifact
    install(bin_dir, TOOL, 'grep -q good "$1"')
    assert task.ask("resume").returncode == 0
    task.wait_for("completed", within_s=40)
    assert len(task.memory().starts()) == 1
    assert [judged["passed"] for judged in task.events("gate.judged")] == [False, True]


def judged_again(task: Task, times: int) -> None:
    """Wait until the gate has judged so many times, and the task asks."""
    eventually(
        lambda: len(task.events("gate.judged")) == times and task.status() == "interrupted",
        40,
        f"judgement {times}",
        journal=task.packet,
    )


def test_what_stays_missing_asks_again_and_a_message_sends_the_work_back() -> None:
    task = run(TOOL, project=project().path)
    task.wait_for("interrupted", within_s=40)
    assert task.ask("resume").returncode == 0
    judged_again(task, 2)
    assert len(task.memory().starts()) == 1
    assert task.ask("resume", "-m", "do without it").returncode == 0
    judged_again(task, 3)
    first, second = task.memory().starts()
    assert (first.is_resume, second.is_resume) == (False, True)
    assert "do without it" in second.prompt


def test_a_task_that_may_not_ask_fails_and_retry_judges_it_again(bin_dir: str) -> None:
    repo = project()
    repo.write(".holdfast/config.toml", 'interrupt_off = ["quality"]\n')
    repo.commit(".holdfast/config.toml")
    trust(repo.path)
    task = run(TOOL, project=repo.path)
    task.wait_for("failed", within_s=40)
    assert task.events("repair.planned") == []
    install(bin_dir, TOOL)
    assert task.ask("retry").returncode == 0
    task.wait_for("completed", within_s=40)
    assert len(task.memory().starts()) == 1


@pytest.mark.req("GAT-10")
def test_a_script_that_the_agent_had_to_write_is_failed_work() -> None:
    script = "printf '#!/bin/sh\\nexit 0\\n' > new.sh; chmod +x new.sh"
    again = Scenario().tool("sh", command=script).say("done").result("ok")
    scenario = writes("b.txt", "good").resumed(again)
    task = run("./new.sh", scenario=scenario, project=project().path)
    task.wait_for("completed", within_s=40)
    (planned,) = task.events("repair.planned")
    assert "`./new.sh` failed with exit status 127" in planned["reasons"][0]


def test_a_program_of_the_projects_environment_is_not_the_agents_work() -> None:
    """`.venv` is linked, `build/` is ignored: neither is in the tree that the agent hands over."""
    task = run(".venv/bin/pytest", "build/tool", project=project().path)
    manifest = task.wait_for("interrupted", within_s=40)
    assert "`.venv/bin/pytest` failed" in manifest["status_reason"]
    assert "`build/tool` failed" in manifest["status_reason"]


def test_a_command_that_could_start_before_the_work_is_failed_work() -> None:
    repo = project()
    install(repo.path, "check.sh", "exit 1")
    repo.commit("check.sh")
    breaks = Scenario().tool("sh", command="chmod -x check.sh").say("done").result("ok")
    mends = Scenario().tool("sh", command="printf '#!/bin/sh\\n' > check.sh; chmod +x check.sh")
    task = run("./check.sh", scenario=breaks.resumed(mends.say("done").result("ok")), project=repo.path)
    task.wait_for("completed", within_s=40)
    (planned,) = task.events("repair.planned")
    assert "exit status 126" in planned["reasons"][0]


def packet(impl: Scenario | None = None, *, repo: Repo | None = None, **acceptance: object) -> Written:
    if repo is None:
        repo = Repo(os.path.join(workspace(), "project"))
        repo.commit("README.md")
    impl = impl or Scenario().write(WORK, content="good\n")
    stages = {"scripted_impl": impl.say(REPORTS["impl"]).result("ok"), "scripted_verify": None}
    acceptance = {"commands": [TOOL], "criteria": [], **acceptance}
    return Written(stages, project=repo, repairs=2, acceptance=acceptance)


@pytest.mark.req("GAT-10")
@pytest.mark.parametrize(
    ("acceptance", "shown"),
    [
        ({}, f"`{TOOL}` failed"),
        ({"commands": ["true"], "setup": [f"{TOOL} ci"]}, f"setup: `{TOOL} ci` failed"),
    ],
    ids=["commands", "setup"],
)
def test_a_pipeline_asks_and_judges_again(bin_dir: str, acceptance: dict[str, object], shown: str) -> None:
    task = packet(**acceptance).start()
    manifest = task.wait_for("interrupted", within_s=40)
    assert shown in manifest["status_reason"]
    failure = task.json("state", "last_failure.json")
    assert (failure["class"], failure["next_action"]["name"]) == ("tooling", "fix_setup")
    assert task.events("repair.planned") == []
    install(bin_dir, TOOL)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed", within_s=40)
    assert [len(calls(task, stage)) for stage in ("scripted_impl", "scripted_verify")] == [1, 1]


# ── where the agent worked ──


@pytest.fixture(params=["clean_room: false", "outside git"])
def in_place(request: pytest.FixtureRequest) -> tuple[Repo, dict[str, object]]:
    """A project without a clean room, and what a packet says about that."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md")
    if request.param == "outside git":
        shutil.rmtree(os.path.join(repo.path, ".git"))
        return repo, {}
    return repo, {"clean_room": False}


@pytest.mark.req("GAT-10")
def test_without_a_clean_room_a_missing_program_is_no_failed_work_either(
    bin_dir: str, in_place: tuple[Repo, dict[str, object]]
) -> None:
    repo, acceptance = in_place
    task = packet(repo=repo, commands=[f"{TOOL} {WORK}"], **acceptance).start()
    manifest = task.wait_for("interrupted", within_s=40)
    assert "could not start before the work either" in manifest["status_reason"]
    assert manifest["status_cause"] == "setup"
    assert task.events("repair.planned") == []
    artifact = task.read("outputs", "scripted_verify.artifact.md").decode()
    assert "- before the work: exit code 127" in artifact
    install(bin_dir, TOOL, 'grep -q good "$1"')
    assert task.ask("resume").returncode == 0
    task.wait_for("completed", within_s=40)
    assert [len(calls(task, stage)) for stage in ("scripted_impl", "scripted_verify")] == [1, 1]


def test_without_a_clean_room_what_the_work_made_unfindable_is_failed_work(
    bin_dir: str, in_place: tuple[Repo, dict[str, object]]
) -> None:
    """The program is found through a file of the tree, which the agent broke."""
    repo, acceptance = in_place
    install(os.path.join(workspace(), "tools"), TOOL)
    repo.write("env.sh", f"PATH={workspace()}/tools:$PATH\n")
    if os.path.isdir(os.path.join(repo.path, ".git")):
        repo.commit("env.sh")
    mended = (
        Scenario().write("env.sh", content=f"PATH={workspace()}/tools:$PATH\n").write(WORK, content="x\n")
    )
    broken = Scenario().write("env.sh", content="# nothing\n").write(WORK, content="good\n")
    broken.resumed(mended.say(REPORTS["impl"]).result("ok"))
    written = packet(broken, repo=repo, commands=[f". ./env.sh && {TOOL}"], **acceptance)
    written.manifest["scope"]["allow"].append("env.sh")
    written.put("manifest.yaml", json.dumps(written.manifest))
    task = written.start()
    task.wait_for("completed", within_s=40)
    assert len(task.events("repair.planned")) == 1


@pytest.mark.parametrize("command", [".venv/bin/tool", "./new.sh", "sh -c 'exit 127'"])
def test_without_a_clean_room_every_file_of_the_project_is_the_agents_work(command: str) -> None:
    """It may have to install what git ignores, and a program that is there may end as it likes."""
    task = packet(commands=[command], clean_room=False).start()
    task.wait_for("failed", within_s=60)
    assert len(task.events("repair.planned")) == 2


# ── another setup ──


@pytest.mark.req("GAT-10")
def test_another_setup_lets_the_same_work_be_judged_again() -> None:
    task = packet(commands=[".venv/bin/check"]).start()
    task.wait_for("interrupted", within_s=40)
    task.stop()
    setup = "mkdir -p .venv/bin && cp /bin/true .venv/bin/check"
    done = task.ask("retry", "--set", f"acceptance.setup+={setup}")
    assert done.returncode == 0, done.stderr
    task.wait_for("completed", within_s=40)
    (opened,) = task.events("run.opened")
    assert opened["amended"] == [{"field": "acceptance.setup", "old": [], "new": [setup]}]
    assert [len(calls(task, stage)) for stage in ("scripted_impl", "scripted_verify")] == [1, 1]
    assert f"acceptance.setup: nothing → {setup}" in task.ask("show").stdout
    artifact = task.read("outputs", "scripted_verify.artifact.md").decode()
    assert f"## setup: $ {setup}" in artifact


def test_a_file_in_the_inbox_changes_no_setup() -> None:
    """Only a command of holdfast sends such a request, and its record says so."""
    task = packet().start()
    task.wait_for("interrupted", within_s=40)
    task.stop()
    mark = os.path.join(workspace(), "planted")
    args = {"env": {"env": dict(os.environ)}, "set": [f"acceptance.setup=touch {mark}"]}
    request = Request(id=ids.new_ulid(), verb="retry", args=args, by="agent", asker="", at=clock.iso_now())
    atomic.write_json(Packet(task.packet).request(request.id), request.to_json(), durable=True)
    task.start_runner()
    eventually(
        lambda: any(event["request"] == request.id for event in task.events("request.refused")),
        20,
        "the request is refused",
        journal=task.packet,
    )
    assert task.events("run.opened") == []
    assert not os.path.exists(mark)
