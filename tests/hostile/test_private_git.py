"""The git directory that holdfast makes for its own calls: what an agent writes into it has no effect."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest

from holdfast.workspace import git
from tests.hostile.planting import ATTRIBUTES, Trap, write
from tests.support.fanouts import agent, item, plan, project, rows, start
from tests.support.loops import up
from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace

#: Where such directories are, of any process. (`$XDG_RUNTIME_DIR` is not set in tests.)
_FOLDER = f"/dev/shm/holdfast-{os.geteuid()}"


def _own_directories() -> list[str]:
    return [os.path.join(_FOLDER, name) for name in os.listdir(_FOLDER) if name.startswith(f"{os.getpid()}-")]


def _add_settings(path: str, trap: Trap) -> None:
    with open(os.path.join(path, "config"), "a", encoding="utf-8") as file:
        file.write(trap.config("private"))
    write(os.path.join(path, "info", "attributes"), ATTRIBUTES)


def _replace_settings(path: str, trap: Trap) -> None:
    """The directory stays as it is, but for a file that leads git to another one."""
    other = os.path.join(os.path.dirname(trap.sprung_at), "other")
    trap.git_dir(other, "other")
    write(os.path.join(other, "HEAD"), "ref: refs/heads/main\n")
    for name in ("objects", "refs/heads"):
        os.makedirs(os.path.join(other, name))
    write(os.path.join(path, "commondir"), f"{other}\n")


def _link_settings(path: str, trap: Trap) -> None:
    evil = os.path.join(os.path.dirname(trap.sprung_at), "config")
    with open(os.path.join(path, "config"), encoding="utf-8") as file:
        write(evil, file.read() + trap.config("linked"))
    write(os.path.join(path, "info", "attributes"), ATTRIBUTES)
    os.unlink(os.path.join(path, "config"))
    os.symlink(evil, os.path.join(path, "config"))


@pytest.mark.parametrize("plant", [_add_settings, _replace_settings, _link_settings])
def test_a_call_does_not_use_a_directory_that_was_changed(
    home: str, plant: Callable[[str, Trap], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    root = os.path.dirname(home)
    trap, repo = Trap(root), Repo(os.path.join(root, "project"))
    repo.commit("f")
    found = git.at(repo.path)
    assert found is not None
    with git.SharedDirectories():
        git.run(["status", "--porcelain"], of=found)
        made = _own_directories()
        assert made
        for path in made:
            plant(path, trap)
        repo.write("f", "changed\n")
        assert git.run(["status", "--porcelain"], of=found).decode() == " M f\n"
        git.run(["diff"], of=found)
    assert trap.sprung == []
    assert not _own_directories()


@pytest.mark.parametrize("plant", [_add_settings, _replace_settings, _link_settings])
def test_a_call_without_a_repository_does_not_use_it_either(
    home: str, plant: Callable[[str, Trap], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    root = os.path.dirname(home)
    trap, objects = Trap(root), os.path.join(root, "objects")
    write(os.path.join(root, "f"), "text\n")
    os.mkdir(objects)
    target = git.Target(objects=objects)
    words = ["hash-object", "-w", "--path=f", "f"]
    with git.SharedDirectories():
        name = git.work_on(target, words, known=git.settings.none(), cwd=root).stdout
        for path in _own_directories():
            plant(path, trap)
        assert git.work_on(target, words, known=git.settings.none(), cwd=root).stdout == name
    assert trap.sprung == []


def test_a_directory_that_nobody_changed_is_used_again(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where git has written in it: a reflog of a repository that has none."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("f")
    shutil.rmtree(os.path.join(repo.path, ".git/logs"))
    found = git.at(repo.path)
    assert found is not None
    with git.SharedDirectories():
        git.head(found)
        made = _own_directories()
        git.run(["update-ref", "--create-reflog", "-m", "x", "refs/heads/other", "HEAD"], of=found)
        git.run(["status", "--porcelain"], of=found)
        assert _own_directories() == made


@pytest.fixture
def loop(home: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    up("--slots", "2")
    yield
    holdfast("down")


def test_the_agent_of_an_item_gives_its_conductor_no_settings(loop: None) -> None:
    """The conductor lives for hours, and its agents know where its git directories are."""
    repo, trap = project(), Trap(workspace())
    settings = os.path.join(workspace(), "settings")
    write(settings, trap.config("conductor"))
    attributes = os.path.join(workspace(), "attributes")
    write(attributes, ATTRIBUTES)
    script = os.path.join(workspace(), "plant.sh")
    write(
        script,
        f"for d in {_FOLDER}/*-*; do tr '\\0' ' ' < /proc/$(basename $d | cut -d- -f1)/cmdline |"
        f" grep -q fanout && cat {settings} >> $d/config && mkdir -p $d/info && cp {attributes} $d/info;"
        " done; echo b >> shared.txt\n",
    )
    merged = f"until git -C {repo.path} show holdfast/f1:a.txt; do sleep 0.1; done"
    scenario = agent(("a", "echo a > a.txt"), ("b", f"{merged}; sh {script}"))
    task = start(repo, scenario, plan(item("a"), item("b")), "--accept", "true")
    task.wait_for("completed", within_s=60)
    assert {row["state"] for row in rows(task).values()} == {"merged"}
    assert trap.sprung == []
