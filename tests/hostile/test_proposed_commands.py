"""Commands of a gate: those that the brief of a sandboxed task proposes run in a sandbox, too, so that no
agent runs a command outside; and what a clean room gets is put nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from holdfast.gates import room_commands
from holdfast.model.spec import DEPENDENCIES
from holdfast.sandbox import machine
from holdfast.testing import Scenario
from holdfast.workspace.clean_room import Room
from holdfast.workspace.project_tree import locate
from tests.support.packets import Written, brief, gate, played
from tests.support.repos import Repo
from tests.support.tasks import Task, workspace
from tests.support.tools import need_sandbox

pytestmark = pytest.mark.req("SBX-1")
IMPL = "scripted_impl"


def run(home: str, *proposed: str, end: str, with_git: bool = True, **more: Any) -> Task:
    need_sandbox()
    project = Repo(os.path.join(workspace(), "project"), with_git=with_git)
    project.write("README.md")
    if with_git:
        project.write(".gitignore", "node_modules\n")
        project.commit()
        project.write("node_modules/dep", "dependency\n")
    acceptance = {"commands": [], "criteria": [], "links": list(DEPENDENCIES)}
    packet = Written(
        {"scripted_brief": brief(*proposed), IMPL: None},
        project=project,
        acceptance=acceptance,
        sandbox="on",
        **more,
    )
    return packet.run(end=end)


@pytest.mark.parametrize("where", ["worktree", "in_place", "without git"])
def test_a_proposed_command_writes_nothing_outside(home: str, where: str) -> None:
    root = os.path.dirname(home)
    evil = os.path.join(root, "evil")
    # In the sandbox, /tmp is another one, in which it may write.
    command = f'mkdir -p {root} && {sys.executable} -c \'open("{evil}", "w")\''
    is_git = where != "without git"
    task = run(home, command, end="completed", with_git=is_git, workspace=where if is_git else "in_place")
    assert gate(task, IMPL)["passed"]
    assert not os.path.lexists(evil)


def test_a_proposed_command_does_not_see_the_home(home: str) -> None:
    """Else it could change what holdfast believes about the task."""
    task = run(home, f'test -n "$(ls {home})"', end="failed", workspace="worktree")
    assert gate(task, IMPL)["failed"] == "acceptance"


def test_a_proposed_command_has_the_tree_its_history_and_the_dependencies(home: str) -> None:
    commands = (
        "test -e b.txt",
        "git status --porcelain | grep -q b.txt",
        "git log -1 --format=%H",
        "cat node_modules/dep",
        'touch "$TMPDIR/x"',
        "touch made-by-a-check",
    )
    task = run(home, *commands, end="completed", workspace="worktree")
    assert gate(task, IMPL)["passed"]


@pytest.mark.parametrize("has_bubblewrap", [True, False])
def test_dependencies_are_not_put_where_a_link_of_the_tree_leads(
    home: str, has_bubblewrap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_bubblewrap:
        need_sandbox()
    else:
        monkeypatch.setattr(machine, "program", lambda: None)
    root = os.path.dirname(home)
    project = Repo(os.path.join(root, "project"))
    project.write("packages/a/node_modules/dep")
    outside = os.path.join(root, "outside")
    top = os.path.join(root, "room")
    for folder in (f"{outside}/a", top, f"{root}/room-tmp"):
        os.makedirs(folder)
    os.symlink(outside, f"{top}/packages")
    room = Room(top=top, directory=top, temporary=f"{root}/room-tmp")
    links = room_commands.Links(names=("packages/a/node_modules",))
    setting = room_commands.of_room(room, locate(project.path), links)
    subprocess.run([*setting.before, "true"], cwd=setting.cwd, timeout=30, check=True)
    assert os.listdir(f"{outside}/a") == []


# ── what the sandbox hides ──

SECRET = "TOP-SECRET-KEY"


def hidden_key(home: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The folder of a user's ssh keys, which no sandbox shows."""
    user = os.path.join(os.path.dirname(home), "user")
    os.makedirs(f"{user}/.ssh")
    with open(f"{user}/.ssh/id_rsa", "w", encoding="utf-8") as file:
        file.write(f"{SECRET}\n")
    monkeypatch.setenv("HOME", user)
    return f"{user}/.ssh"


def judged(proposed: str, plant: str, *links: str, project: Repo, **more: Any) -> str:
    """What a proposed command printed, after an agent in place has planted something."""
    work = played("impl", before=Scenario().tool("Bash", command=plant).write("b.txt", content="hello\n"))
    packet = Written(
        {"scripted_brief": brief(proposed), IMPL: work},
        project=project,
        acceptance={"commands": [], "criteria": [], "links": list(links), **more.pop("acceptance", {})},
        sandbox="on",
        **more,
    )
    task = packet.start()
    task.wait_for("completed", "failed", within_s=40)
    return task.read("outputs", f"{IMPL}.artifact.md").decode()


@pytest.fixture
def project(home: str) -> Repo:
    need_sandbox()
    project = Repo(os.path.join(workspace(), "project"))
    project.write("README.md")
    project.write(".gitignore", "node_modules\n")
    project.commit()
    return project


@pytest.mark.parametrize("planted", ["node_modules", "node_modules/inner"])
@pytest.mark.parametrize("target", ["folder", "around"])
def test_a_link_among_the_dependencies_shows_nothing_that_is_hidden(
    home: str, project: Repo, planted: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place, an agent can replace a dependency by a link; a proposed command would print what it shows."""
    folder = hidden_key(home, monkeypatch)
    leads, key = (folder, "id_rsa") if target == "folder" else (os.path.dirname(folder), ".ssh/id_rsa")
    plant = f"mkdir -p $(dirname {planted}); ln -s {leads} {planted}"
    printed = judged(f"cat {planted}/{key}; ls -la {planted}", plant, planted, project=project)
    assert os.path.islink(os.path.join(project.path, planted))
    assert SECRET not in printed


def test_objects_of_a_repository_that_are_a_link_show_nothing_that_is_hidden(
    home: str, project: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive can have such a `.git`; a clean room borrows the objects of the repository."""
    folder = hidden_key(home, monkeypatch)
    project.git("checkout", "-q", "--orphan", "other")
    os.rename(f"{project.path}/.git/objects", f"{project.path}/.git/objects-before")
    os.unlink(f"{project.path}/.git/index")
    os.symlink(folder, f"{project.path}/.git/objects")
    printed = judged("cat .git/borrowed/*/id_rsa", "true", project=project)
    assert "exit code:" in printed
    assert SECRET not in printed


def test_a_link_to_proc_among_the_dependencies_does_not_lead_out(home: str, project: Repo) -> None:
    """Through the root of a process outside, everything could be written."""
    evil = os.path.join(os.path.dirname(home), "evil")
    command = f"for each in node_modules/[0-9]*; do echo x > $each/root{evil}; done; true"
    printed = judged(command, "ln -s /proc node_modules", "node_modules", project=project)
    assert "exit code: 0" in printed
    assert not os.path.lexists(evil)


def test_a_link_among_the_dependencies_still_leads_to_what_the_sandbox_shows(
    home: str, project: Repo
) -> None:
    shared = Repo(os.path.join(os.path.dirname(home), "user", "shared"), with_git=False)
    shared.write("dep", "dependency\n")
    plant = f"ln -s {shared.path} node_modules"
    assert "dependency" in judged("cat node_modules/dep; ls -l", plant, "node_modules", project=project)


@pytest.mark.parametrize("where", ["room", "dependencies", "without a room", "without git"])
@pytest.mark.parametrize(
    "reads", ["cat {}", "git cat-file -p :{}", "git cat-file --batch-all-objects --batch"]
)
def test_a_proposed_command_does_not_see_forbidden_paths(
    home: str, project: Repo, where: str, reads: str
) -> None:
    if where == "without git":
        project = Repo(os.path.join(workspace(), "plain"), with_git=False)
    path = "node_modules/.env" if where == "dependencies" else ".env"
    project.write(path, f"{SECRET}\n")
    printed = judged(
        reads.format(path),
        "true",
        "node_modules",
        project=project,
        acceptance={"clean_room": where != "without a room"},
        security={"redaction_patterns": [], "forbidden_paths": [".env"]},
    )
    assert SECRET not in printed


def test_a_link_in_the_place_of_the_project_opens_nothing(home: str) -> None:
    """In a worktree, the project may be a folder below the root, which the agent can replace by a link."""
    need_sandbox()
    outer = Repo(os.path.join(workspace(), "project"))
    project = Repo(os.path.join(outer.path, "sub"), with_git=False)
    project.write("README.md")
    outer.commit()
    programs = os.path.join(os.path.dirname(home), "user", "bin")
    os.makedirs(programs)
    plant = f"cd .. && mv sub /tmp/other && ln -s {programs} sub"
    work = played("impl", before=Scenario().tool("Bash", command=plant))
    packet = Written(
        {"scripted_brief": brief("touch evil; pwd"), IMPL: work},
        project=project,
        acceptance={"commands": [], "criteria": [], "clean_room": False},
        scope={"allow": ["."], "deny": []},
        sandbox="on",
        workspace="worktree",
    )
    task = packet.start()
    task.wait_for("completed", "failed", within_s=40)
    assert os.listdir(programs) == []


def test_without_a_room_a_submodule_gets_no_other_git(home: str, project: Repo) -> None:
    """The user's next git in the project would run what its settings name."""
    library = os.path.join(os.path.dirname(home), "library")
    Repo(library).commit("file")
    project.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", library, "lib")
    project.commit()
    link = project.read("lib/.git")
    command = "rm lib/.git && git init -q lib; mv lib lib2; ls -d lib*; touch lib/made"
    printed = judged(command, "true", project=project, acceptance={"clean_room": False})
    assert "exit code: 0" in printed
    assert project.read("lib/.git") == link
    assert os.path.exists(os.path.join(project.path, "lib", "made"))


def test_without_a_room_a_forbidden_path_stays_hidden_after_a_rename(home: str, project: Repo) -> None:
    project.write("node_modules/conf/prod.json", f"{SECRET}\n")
    printed = judged(
        "cat node_modules/moved/prod.json; ls node_modules/moved",
        "mv node_modules/conf node_modules/moved",
        project=project,
        acceptance={"clean_room": False},
        security={"redaction_patterns": [], "forbidden_paths": ["node_modules/conf/prod.json"]},
    )
    assert "prod.json" in printed
    assert SECRET not in printed
