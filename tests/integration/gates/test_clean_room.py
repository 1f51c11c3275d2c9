"""A clean room has the files of the judged tree and nothing else, with bubblewrap and without."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.store.layout import Packet
from holdfast.workspace import clean_room, room_places
from tests.support import tools
from tests.support.repos import Repo, judge, judge_argv, module, packet_for, prepare, report

#: Runs the gate of a packet; returns its result.
Judge = Callable[[Packet], dict[str, Any]]


@pytest.fixture(params=["bubblewrap", "links"])
def mounts(request: pytest.FixtureRequest) -> str:
    """How the room is made; without bubblewrap as on a machine where it does not work."""
    if request.param == "bubblewrap":
        tools.need_sandbox()
    return request.param


@pytest.fixture
def judged(home: str, mounts: str) -> Judge:
    """Runs the gate with bubblewrap or without."""
    before = tools.broken_bwrap(os.path.dirname(home)) if mounts == "links" else []
    return lambda packet: judge(packet, before=before)[1]


@pytest.fixture
def repo(home: str) -> Repo:
    found = Repo(os.path.join(os.path.dirname(home), "project"))
    found.write(".gitignore", "*.pyc\nlocal/\n.venv/\n")
    found.commit("a")
    return found


def accepted(judged: Judge, home: str, repo: Repo, *commands: str, **asked: Any) -> dict[str, Any]:
    """What the gate of a stage says that wrote `b` and left an ignored directory."""
    asked = {"scope_allow": ("b",), **asked}
    project = asked.pop("project", repo.path)
    packet = packet_for(home, project, acceptance_commands=commands, **asked)
    prepare(packet)
    place = packet.home.worktrees + "/it" if asked.get("workspace") == "worktree" else repo.path
    with open(os.path.join(place, os.path.relpath(project, repo.path), "b"), "w", encoding="utf-8") as file:
        file.write("new\n")
    os.makedirs(os.path.join(place, "local"))
    report(packet, "done\n")
    result = judged(packet)
    assert room_places.rooms_of(packet) == []
    return result


@pytest.mark.parametrize("where", ["in_place", "worktree"])
def test_what_git_ignores_is_absent_and_what_is_in_scope_is_there(
    judged: Judge, home: str, repo: Repo, where: str
) -> None:
    result = accepted(judged, home, repo, "test ! -e local", "grep -q new b", "test -e a", workspace=where)
    assert result["passed"], result["reasons"]


def test_a_project_in_a_subdirectory(judged: Judge, home: str, repo: Repo) -> None:
    repo.commit("sub/c")
    commands = ("test -e c", "grep -q new b", "test -e ../a", "test $(basename $PWD) = sub")
    result = accepted(judged, home, repo, *commands, project=os.path.join(repo.path, "sub"))
    assert result["passed"], result["reasons"]


def test_paths_of_the_project_in_the_environment_lead_into_the_room(
    judged: Judge, home: str, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEPATH", f"/usr/lib:{repo.path}/local")
    result = accepted(judged, home, repo, "test ! -e ${SOMEPATH#*:}", "test -e $(dirname ${SOMEPATH#*:})/a")
    assert result["passed"], result["reasons"]


@pytest.mark.parametrize("mounts", ["bubblewrap"], indirect=True)
@pytest.mark.parametrize("where", ["in_place", "worktree"])
def test_absolute_paths_of_the_project_lead_into_the_room(
    judged: Judge, home: str, repo: Repo, where: str
) -> None:
    """Only a mount can do that."""
    result = accepted(
        judged, home, repo, f"grep -q new {repo.path}/b", f"test ! -e {repo.path}/local", workspace=where
    )
    assert result["passed"], result["reasons"]


def test_dependencies_can_be_used_and_with_bubblewrap_not_changed(
    judged: Judge, home: str, repo: Repo, mounts: str
) -> None:
    repo.write(".venv/lib", "x\n")
    change = "! touch .venv/new" if mounts == "bubblewrap" else "touch .venv/new"
    result = accepted(judged, home, repo, "grep -q x .venv/lib", "test -e b", change)
    assert result["passed"], result["reasons"]


def test_dependencies_of_which_a_part_is_denied(judged: Judge, home: str, repo: Repo) -> None:
    """Denied files are in the tree even if git ignores them, to be compared. Every venv has `tests/`."""
    repo.write(".venv/lib", "x\n")
    repo.write(".venv/site/tests/t.py", "y\n")
    commands = ("grep -q x .venv/lib", "grep -q y .venv/site/tests/t.py", "test -e b")
    result = accepted(judged, home, repo, *commands, scope_deny=("tests/",))
    assert result["passed"], result["reasons"]


def test_dependencies_that_are_in_the_tree_are_those_of_the_tree(
    judged: Judge, home: str, repo: Repo
) -> None:
    repo.write("node_modules/tests/t", "tracked\n")
    repo.write("node_modules/lib", "tracked\n")
    repo.commit()
    repo.write(".gitignore", "node_modules/\n.venv/\nlocal/\n")
    repo.write("node_modules/more", "ignored\n")
    commands = ("grep -q tracked node_modules/lib", "test ! -e node_modules/more", "test -e b")
    result = accepted(judged, home, repo, *commands, scope_deny=("tests/",))
    assert result["passed"], result["reasons"]


def test_submodules_are_checked_out(judged: Judge, home: str, repo: Repo) -> None:
    other = Repo(os.path.join(os.path.dirname(home), "other"))
    other.commit("inner")
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", other.path, "sub")
    repo.commit()
    result = accepted(judged, home, repo, "test -e sub/inner", "test -e b")
    assert result["passed"], result["reasons"]


def test_git_knows_its_history_and_what_changed(judged: Judge, home: str, repo: Repo) -> None:
    commands = ("git log --oneline | grep -q work", "test $(git diff --cached --name-only) = b")
    result = accepted(judged, home, repo, *commands)
    assert result["passed"], result["reasons"]
    assert repo.git("status", "--porcelain", "--", "b").startswith("??")


def test_the_rest_of_a_killed_room_is_removed_by_the_next(home: str, repo: Repo) -> None:
    noted = os.path.join(home, "noted")
    command = f'echo "$TMPDIR" > {noted}'
    packet = packet_for(home, repo.path, acceptance_commands=(command,), scope_allow=("b",))
    prepare(packet)
    repo.write("b", "new\n")
    report(packet, "done\n")
    env = {"HOLDFAST_FAILPOINT": "clean_room.used=kill"}
    killed = module("gates", *judge_argv(packet, "codex_impl"), cwd=packet.state, env=env)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with open(noted, encoding="utf-8") as file:
        temporary = file.read().strip()
    assert os.path.isdir(temporary)
    (room,) = room_places.rooms_of(packet)
    # Of another task: it may be in use.
    other = room_places.new_room(packet_for(home, repo.path, task_id="other"))
    clean_room.sweep(packet)
    assert not os.path.exists(room)
    assert not os.path.exists(temporary)
    assert os.path.isdir(other)


def test_a_room_is_where_agents_do_not_write(home: str, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the environment of the task leads elsewhere."""
    packet = packet_for(home, repo.path)
    prepare(packet)
    room = room_places.new_room(packet)
    assert room.startswith(os.path.join(os.environ["HOME"], ".cache/holdfast/rooms/"))
    for folder in (home, repo.path):
        monkeypatch.setenv("XDG_CACHE_HOME", os.path.join(folder, "cache"))
        room = room_places.new_room(packet)
        assert room.startswith(os.path.join(os.environ["HOME"], ".cache/holdfast/rooms/"))
    with open(os.path.join(os.path.dirname(home), "file"), "w", encoding="utf-8") as file:
        monkeypatch.setenv("HOME", file.name)
    room = room_places.new_room(packet)
    assert room.startswith("/tmp/holdfast-rooms-")
    clean_room.sweep(packet)
    assert not os.path.exists(room)
