"""A completed task is an accepted one: its commands always run, on a clean checkout of what is judged."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from holdfast.workspace import room_places
from tests.support.packets import WORK, Written, brief, calls, gate, played, summary
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace

pytestmark = pytest.mark.usefixtures("home")

IMPL = "scripted_impl"
#: Parts of a manifest: what fails is not sent back.
NO_REPAIR: dict[str, Any] = {}


def project(*files: str, ignored: str = "") -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write(".gitignore", ignored)
    repo.commit("README.md", *files)
    return repo


def accepted_by(*commands: str, **more: object) -> dict[str, object]:
    return {"commands": list(commands), "criteria": [], **more}


def artifact(task: Task, stage: str = IMPL) -> str:
    return task.read("outputs", f"{stage}.artifact.md").decode()


def rooms(task: Task) -> list[str]:
    """What is left of clean rooms."""
    return room_places.rooms_of(Packet(task.packet))


# ── the commands always run ──


@pytest.mark.req("GAT-2")
def test_without_a_verify_stage_the_commands_are_a_gate_of_the_last_stage_that_writes() -> None:
    packet = Written(
        {IMPL: None, "scripted_review": None},
        project=project(),
        acceptance=accepted_by("grep -q goodbye b.txt"),
        **NO_REPAIR,
    )
    task = packet.run(end="failed")
    assert gate(task, IMPL)["failed"] == "acceptance"
    assert "grep -q goodbye b.txt" in summary(task)
    assert not calls(task, "scripted_review")  # work that does not pass is not reviewed


@pytest.mark.req("GAT-2")
def test_a_pipeline_that_writes_nothing_is_accepted_at_its_end() -> None:
    stages = {"scripted_review": None, "scripted_test_design": None}
    packet = Written(
        stages, project=project(), intent="design_only", acceptance=accepted_by("test -e README.md", "exit 3")
    )
    task = packet.run(end="failed")
    assert gate(task, "scripted_review")["passed"]
    assert gate(task, "scripted_test_design")["failed"] == "acceptance"


@pytest.mark.req("GAT-2")
def test_a_stage_that_writes_after_the_verification_is_verified_too() -> None:
    fix = Scenario().tool("sh", command="echo worse > b.txt")
    stages = {IMPL: None, "scripted_verify": None, "scripted_fix": played("fix", before=fix)}
    packet = Written(
        stages,
        project=project(),
        acceptance=accepted_by("grep -q hello b.txt"),
        **NO_REPAIR,
    )
    task = packet.run(end="failed")
    assert gate(task, "scripted_verify")["passed"]
    assert gate(task, "scripted_fix")["failed"] == "acceptance"


def test_pipeline_check_names_the_gates_in_which_the_commands_run() -> None:
    with_verify = Written({IMPL: None, "scripted_verify": None}, task_id="a", project=project())
    done = holdfast("pipeline", "check", with_verify.path)
    assert "acceptance commands: 1, in the gate of scripted_verify" in done.stdout
    without = Written({IMPL: None, "scripted_review": None}, task_id="b", project=with_verify.project)
    done = holdfast("pipeline", "check", without.path)
    assert "acceptance commands: 1, in the gate of scripted_impl" in done.stdout
    none = Written({IMPL: None}, task_id="c", project=with_verify.project, acceptance=accepted_by())
    done = holdfast("pipeline", "check", none.path)
    assert "acceptance commands: none" in done.stdout


@pytest.mark.req("GAT-2")
def test_a_brief_adds_commands_and_replaces_none() -> None:
    packet = Written(
        {"scripted_brief": brief("test -e b.txt"), IMPL: None},
        project=project(),
        acceptance=accepted_by("grep -q goodbye b.txt"),
        **NO_REPAIR,
    )
    task = packet.run(end="failed")
    assert gate(task, IMPL)["reasons"] == ["`grep -q goodbye b.txt` failed with exit status 1"]
    assert "## $ test -e b.txt" in artifact(task)
    assert "1 from the manifest, 1 proposed by the brief" in artifact(task)
    (prompt,) = [name for name in os.listdir(task.path("inputs", "prompt")) if "impl" in name]
    text = task.read("inputs", "prompt", prompt).decode()
    assert "grep -q goodbye b.txt" in text
    assert "test -e b.txt" in text


# ── the clean room ──

FAKES = {
    "an ignored package": ("fake/__init__.py", "", f"{sys.executable} -c 'import fake'"),
    "sitecustomize": (
        "sitecustomize.py",
        "import os; os.environ['SAYS'] = 'all is well'",
        f"PYTHONPATH=. {sys.executable} -c 'import os; os.environ[\"SAYS\"]'",
    ),
    "an ignored result": ("result.txt", "ok", "cat result.txt"),
}


@pytest.mark.req("GAT-2")
@pytest.mark.parametrize("how", FAKES)
@pytest.mark.parametrize("where", ["in_place", "worktree"])
def test_ignored_files_of_the_agent_prove_nothing(how: str, where: str) -> None:
    name, content, command = FAKES[how]
    work = Scenario().write(WORK, content="hello\n").write(name, content=content)
    packet = Written(
        {IMPL: played("impl", before=work)},
        project=project(ignored="fake/\nsitecustomize.py\nresult.txt\n"),
        workspace=where,
        acceptance=accepted_by("test -e b.txt", command),
        **NO_REPAIR,
    )
    task = packet.run(end="failed")
    (reason,) = gate(task, IMPL)["reasons"]
    assert reason.startswith(f"`{command}` failed")
    assert rooms(task) == []


def test_the_commands_change_nothing_where_the_agent_works() -> None:
    packet = Written({IMPL: None}, project=project(), acceptance=accepted_by("rm README.md; touch made"))
    task = packet.run()
    assert sorted(os.listdir(packet.project.path)) == [".git", ".gitignore", ".holdfast", "README.md", WORK]
    assert rooms(task) == []


def test_the_room_is_a_repository_at_the_commit_of_the_start_with_its_own_temporary_directory() -> None:
    repo = project("a.txt")
    repo.git("tag", "v1")
    packet = Written(
        {IMPL: None},
        project=repo,
        acceptance=accepted_by(
            "test $(git rev-parse HEAD) = $(git rev-parse v1^0)",
            "git status --porcelain | grep -qx 'A  b.txt'",
            'test -n "$TMPDIR" && test "$TMPDIR" != /tmp && touch "$TMPDIR/x"',
        ),
    )
    task = packet.run()
    assert "## $ git status" in artifact(task)
    assert not [name for name in os.listdir("/tmp") if name.startswith("hf-") and _is_ours(name)]


def _is_ours(name: str) -> bool:
    return os.path.exists(os.path.join("/tmp", name, "x"))


@pytest.mark.parametrize("where", ["in_place", "worktree"])
def test_dependencies_come_from_the_project_or_from_setup(where: str) -> None:
    repo = project(ignored=".venv/\nnode_modules/\nbuilt\n")
    repo.write(".venv/bin/tool", "#!/bin/sh\necho tool\n")
    os.chmod(os.path.join(repo.path, ".venv/bin/tool"), 0o755)
    repo.write("node_modules/x/index.js", "x\n")
    packet = Written(
        {IMPL: None},
        project=repo,
        workspace=where,
        acceptance=accepted_by(
            ".venv/bin/tool", "test -e node_modules/x/index.js", "test -e built", setup=["touch built"]
        ),
    )
    task = packet.run()
    assert "## setup: $ touch built" in artifact(task)
    assert not os.path.exists(os.path.join(repo.path, "built"))


def test_a_setup_that_fails_is_the_reason() -> None:
    packet = Written(
        {IMPL: None},
        project=project(),
        acceptance=accepted_by("true", setup=["echo no network; exit 4"]),
        **NO_REPAIR,
    )
    task = packet.run(end="failed")
    expected = "setup: `echo no network; exit 4` failed with exit status 4: no network"
    assert gate(task, IMPL)["reasons"] == [expected]


@pytest.mark.req("GAT-2")
def test_commands_that_passed_before_the_work_are_reported_and_fail_nothing() -> None:
    packet = Written({IMPL: None}, project=project(), acceptance=accepted_by("true", "test -e README.md"))
    task = packet.run()
    told = "the acceptance commands passed before the work as well, so they prove nothing about it"
    assert told in gate(task, IMPL)["warnings"]
    assert told in summary(task)


def test_a_command_that_failed_before_the_work_proves_something() -> None:
    packet = Written({IMPL: None}, project=project(), acceptance=accepted_by("true", "test -e b.txt"))
    task = packet.run()
    assert gate(task, IMPL)["warnings"] == []
    assert "- before the work: exit code 1" in artifact(task)


def test_outside_git_the_commands_run_in_place_and_that_is_said() -> None:
    packet = Written(
        {IMPL: None},
        project=Repo(os.path.join(workspace(), "plain"), with_git=False),
        acceptance=accepted_by("test -e b.txt"),
    )
    task = packet.run()
    (told,) = gate(task, IMPL)["warnings"]
    assert told.startswith("the acceptance commands ran where the agent worked")
    assert told in summary(task)


@pytest.mark.req("GAT-2")
def test_what_is_out_of_scope_is_not_in_the_room() -> None:
    # In place, a change by a reader may be a person's: it is a warning, and it is not judged.
    spoil = Scenario().tool("sh", command="echo no > README.md")
    packet = Written(
        {IMPL: None, "scripted_verify": played("verify", before=spoil)},
        project=project(),
        acceptance=accepted_by("test -e b.txt", "! grep -q no README.md"),
    )
    task = packet.run()
    assert gate(task, "scripted_verify")["passed"]


def test_a_file_that_is_too_large_for_the_packet_is_in_the_room() -> None:
    work = Scenario().tool("sh", command=f"truncate -s 65M {WORK}")
    packet = Written(
        {IMPL: played("impl", before=work)},
        project=project(),
        acceptance=accepted_by(f"test $(stat -Lc %s {WORK}) -gt 60000000"),
    )
    packet.run()
