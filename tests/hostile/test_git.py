"""git runs no command from an agent or a repository, wherever it is configured."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess

import pytest

from holdfast.model.status import Status
from holdfast.store import atomic
from holdfast.store.layout import Packet
from holdfast.workspace import git
from holdfast.workspace.git import settings
from tests.hostile.planting import ATTRIBUTES, COMMANDS, INERT, Trap, write
from tests.support.repos import Repo, judge, packet_for, prepare, report
from tests.support.tasks import Task, holdfast, workspace

_LOCAL = ("-c", "protocol.file.allow=always")


class Scene:
    """A project with a submodule, and a trap."""

    def __init__(self, home: str) -> None:
        self.root = os.path.dirname(home)
        self.trap = Trap(os.path.join(self.root, "trap"))
        library = Repo(os.path.join(self.root, "library"))
        library.commit("lib")
        self.repo = Repo(os.path.join(self.root, "project"))
        self.repo.write(".gitignore", "ignored\n")
        self.repo.commit("a", "src/b")
        self.repo.git(*_LOCAL, "submodule", "add", "-q", library.path, "vend")
        self.repo.commit()

    def plant(self, top: str, git_dir: str) -> None:
        """What an agent that can only write files can do in its directory and in its git directory."""
        self.trap.git_dir(git_dir, "repo")
        write(os.path.join(top, ".gitattributes"), ATTRIBUTES)
        self.trap.repository(os.path.join(top, "nested"), "nested")
        self.trap.repository(os.path.join(top, "bare.git"), "bare", is_bare=True)
        self.trap.repository(os.path.join(self.root, "elsewhere"), "elsewhere")
        write(os.path.join(top, "pointer", ".git"), f"gitdir: {self.root}/elsewhere/.git\n")
        write(os.path.join(top, "pointer", "file"), "text\n")
        vend = os.path.join(top, "vend")
        if os.path.isdir(vend):
            link = os.path.join(vend, ".git")
            if os.path.isfile(link):
                with open(link, encoding="utf-8") as file:
                    own = os.path.join(vend, file.read().removeprefix("gitdir: ").strip())
                self.trap.git_dir(os.path.normpath(own), "submodule")
            write(os.path.join(vend, "lib"), "changed\n")
            write(os.path.join(vend, ".gitattributes"), ATTRIBUTES)
        self.trap.user(os.environ["HOME"])
        # Everything is new, so git must read it.
        for name in ("a", "src/b"):
            write(os.path.join(top, name), "changed by the agent\n")
        write(os.path.join(top, "src", "new"), "new\n")

    def untouched(self) -> None:
        assert self.trap.sprung == []


@pytest.fixture
def scene(home: str) -> Scene:
    return Scene(home)


def verbs(scene: Scene, *rows: tuple[str, ...], cwd: str) -> None:
    """Run holdfast commands. They may fail, but must not crash."""
    for row in rows:
        done = holdfast(*row, cwd=cwd, env=scene.trap.environment())
        assert done.returncode != 70, done.stderr
        assert scene.trap.sprung == [], row


@pytest.mark.parametrize("replaced", [False, True], ids=("submodule", "replaced_submodule"))
def test_the_gate_and_every_verb_of_a_task_in_place(scene: Scene, home: str, replaced: bool) -> None:
    packet = ended(packet_for(home, scene.repo.path, scope_allow=("src/", "a"), status=Status.COMPLETED))
    prepare(packet)
    scene.plant(scene.repo.path, os.path.join(scene.repo.path, ".git"))
    if replaced:
        os.unlink(os.path.join(scene.repo.path, "vend", ".git"))
        scene.trap.repository(os.path.join(scene.repo.path, "vend"), "replaced")
    report(packet, "done\n")
    judge(packet)
    scene.untouched()
    prepare_again(packet)
    scene.untouched()
    verbs(
        scene,
        ("diff", "it"), ("diff", "it", "--all"), ("diff", "it", "--stat"), ("diff", "it", "--json"),
        ("show", "it"), ("report",), ("apply", "it"), ("status",), ("ls",), ("doctor",),
        ("archive", "it"), ("rm", "it"), ("rm", "--force", "it"),
        cwd=scene.repo.path,
    )  # fmt: skip


def ended(packet: Packet) -> Packet:
    """A packet whose task has ended."""
    atomic.write_json(packet.task_done, {"schema": "holdfast.done/1"}, durable=False)
    return packet


def prepare_again(packet: Packet) -> None:
    """The next stage; it may be refused."""
    try:
        prepare(packet)
    except AssertionError:
        return


@pytest.mark.parametrize("is_committed", [False, True], ids=("uncommitted", "committed"))
def test_the_gate_and_every_verb_of_a_worktree(scene: Scene, home: str, is_committed: bool) -> None:
    packet = ended(
        packet_for(home, scene.repo.path, workspace="worktree", scope_allow=(".",), status=Status.COMPLETED)
    )
    prepare(packet)
    path = os.path.join(home, "worktrees", "it")
    work = Repo(path, with_git=False)
    if is_committed:
        work.git(*_LOCAL, "submodule", "update", "-q", "--init")
        work.write("src/c")
        work.commit()
    scene.plant(path, os.path.join(scene.repo.path, ".git"))
    admin = os.path.join(scene.repo.path, ".git", "worktrees", "it")
    scene.trap.git_dir(admin, "admin")
    write(os.path.join(admin, "commondir"), f"{scene.root}/elsewhere/.git\n")
    report(packet, "done\n")
    judge(packet)
    scene.untouched()
    prepare_again(packet)
    scene.untouched()
    # Nested repositories were judged above; they cannot be applied.
    for name in ("nested", "bare.git", "pointer"):
        subprocess.run(["rm", "-rf", os.path.join(path, name)], check=True)
    verbs(
        scene,
        ("diff", "it"), ("show", "it"), ("report",), ("pr", "it", "--draft", "--yes", "--remote", "evil"),
        ("apply", "it"), ("diff", "it", "--all"), ("rm", "it"),
        cwd=scene.repo.path,
    )  # fmt: skip
    # No filter is run, so a file that has one is not committed. The other files are.
    for top in (path, os.path.join(scene.repo.path, ".git")):
        for folder, _, names in os.walk(top):
            for name in set(names) & {".gitattributes", "attributes"}:
                write(os.path.join(folder, name), "* diff=evil merge=evil\n")
    os.unlink(os.path.join(os.environ["HOME"], ".config", "git", "attributes"))
    applied = holdfast("apply", "it", env=scene.trap.environment())
    assert applied.returncode == 0, applied.stderr
    assert scene.repo.read("src/new") == "new\n"
    scene.untouched()
    write(os.path.join(path, "src", "later"), "later\n")
    verbs(
        scene,
        ("apply", "it", "--patch"), ("show", "it"), ("archive", "it"), ("rm", "--force", "it"),
        cwd=scene.repo.path,
    )  # fmt: skip
    assert not os.path.exists(path)


def test_a_hostile_clone(scene: Scene, home: str) -> None:
    """A cloned repository cannot have a `.git`, but it can contain a bare repository and attributes."""
    write(os.path.join(scene.repo.path, ".gitattributes"), ATTRIBUTES)
    scene.trap.repository(os.path.join(scene.repo.path, "sub", "bare.git"), "bare", is_bare=True)
    scene.trap.user(os.environ["HOME"])
    scene.repo.git("add", "-A")
    scene.repo.git("commit", "-q", "-m", "hostile")
    place = os.path.join(scene.repo.path, "sub", "bare.git")
    env = {**scene.trap.environment(), "HOLDFAST_KEEPER": "off"}
    task = Task.shell("echo work > work", "--worktree", "--id", "it", project=place, env=env)
    task.wait_for("completed")
    scene.untouched()
    verbs(scene, ("diff", "it"), ("show", "it"), ("apply", "it"), ("rm", "--force", "it"), cwd=place)


def test_an_interrupt_a_resume_and_clean_git(scene: Scene, home: str) -> None:
    write(os.path.join(scene.repo.path, ".holdfast", "config.toml"), "clean_git = true\n")
    scene.repo.commit()
    script = "test -e go || { echo ready; while ! test -e go; do sleep 0.05; done; }"
    task = Task.shell(script, "--id", "it", project=scene.repo.path)
    task.wait_for_log("ready")
    scene.plant(scene.repo.path, os.path.join(scene.repo.path, ".git"))
    task.ask("interrupt", "-m", "look")
    task.wait_for("interrupted")
    scene.untouched()
    write(os.path.join(scene.repo.path, "go"), "")
    done = holdfast("resume", "it", env=scene.trap.environment())
    assert done.returncode == 0, done.stderr
    task.wait_for("completed", "failed", "interrupted")
    scene.untouched()
    verbs(scene, ("show", "it"), ("stop", "it"), ("retry", "it"), cwd=scene.repo.path)
    task.ask("stop")


#: Stands in for gh and bd, which run git in the project.
RUNS_GIT = """#!/bin/sh
git status >&2 || exit 1
git remote -v >&2
echo '[]'
"""


@pytest.mark.parametrize("source", ["gh:label=x", "bd:"])
def test_a_source_whose_program_runs_git_in_the_project(scene: Scene, home: str, source: str) -> None:
    programs = os.path.join(os.path.dirname(home), "programs")
    os.makedirs(programs)
    name = source.partition(":")[0]
    write(os.path.join(programs, name), RUNS_GIT)
    os.chmod(os.path.join(programs, name), 0o755)
    folder = os.path.join(scene.repo.path, ".venv", "bin")
    os.makedirs(folder)
    os.symlink(scene.trap.program("path.source"), os.path.join(folder, name))
    scene.repo.git("config", "core.fsmonitor", scene.trap.program("fsmonitor"))
    scene.repo.git("config", "core.hooksPath", "hooks")
    env = {"PATH": os.pathsep.join((folder, programs, os.environ["PATH"])), "GIT_DIR": "/nowhere"}
    done = holdfast("queue", "import", source, cwd=scene.repo.path, env=env)
    assert done.returncode == 0, done.stderr
    scene.untouched()


def test_a_git_in_the_project_is_not_run(scene: Scene, home: str) -> None:
    """The user's virtual environment is in the project and in PATH: an agent can write there."""
    folder = os.path.join(scene.repo.path, ".venv", "bin")
    os.makedirs(folder)
    os.symlink(scene.trap.program("path.git"), os.path.join(folder, "git"))
    os.symlink(scene.trap.program("relative.git"), os.path.join(scene.repo.path, "git"))
    packet = packet_for(home, scene.repo.path, scope_allow=(".",), status=Status.COMPLETED)
    prepare(packet)
    for search in (folder, ".", ""):
        env = {"PATH": f"{search}:{os.environ['PATH']}"}
        for row in (("diff", "it"), ("show", "it"), ("doctor",)):
            assert holdfast(*row, cwd=scene.repo.path, env=env).returncode != 70
            scene.untouched()


def test_every_setting_that_runs_a_command_is_planted() -> None:
    """A new git may document new ones."""
    looks = re.compile(
        r"command|cmd|program|helper|driver|textconv|clean|smudge|process|hook|editor|pager|askpass|proxy"
        r"|pack$|vcs|external|tunnel|httpd|browser|alias|templatedir|update$|fsmonitor|tool|\.path$|include",
        re.IGNORECASE,
    )
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True).stdout
    planted = {re.sub(r"<[^>]*>", "evil", key).lower() for key in COMMANDS}
    unknown = [
        key
        for key in listed.split()
        if looks.search(key)
        and not any(fnmatch.fnmatchcase(name, _pattern(key)) for name in planted)
        and not any(fnmatch.fnmatchcase(key, pattern) for pattern in INERT)
    ]
    assert unknown == []


def _pattern(key: str) -> str:
    return re.sub(r"<[^>]*>", "*", key).lower()


@pytest.mark.parametrize("way", ["setting", "included", "exclude", "attributes"])
def test_no_file_of_the_user_is_copied_because_a_repository_names_it(home: str, way: str) -> None:
    """An archive brings `.git/config`. What the user's own settings name, and what is inside, counts."""
    user = Repo(os.environ["HOME"], with_git=False)
    key = user.write(".ssh/key", "SECRET\n")
    user.write(".gitconfig", f"[core]\n\texcludesFile = {user.write('own', 'OWN')}\n")
    repo = Repo(os.path.join(workspace(), "archive"))
    named = f"[core]\n\texcludesFile = ~/.ssh/key\n\tattributesFile = {key}\n"
    if way == "setting":
        repo.write(".git/config", f"{repo.read('.git/config')}{named}")
    elif way == "included":
        repo.write("more", named)
        repo.git("config", "include.path", "../more")
    else:
        place = os.path.join(repo.path, ".git", "info", way)
        if os.path.lexists(place):
            os.unlink(place)
        os.symlink(key, place)
    found = git.at(repo.path)
    assert found is not None
    texts = settings.read(found)
    assert "SECRET" not in texts.exclude + texts.attributes + texts.user_attributes
    assert "OWN" in texts.exclude
    repo.git("config", "core.excludesFile", repo.write("rules", "INSIDE\n"))
    assert "INSIDE" in settings.read(found).exclude
