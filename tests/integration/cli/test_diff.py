"""holdfast diff: exactly the changes of a task."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.repos import Repo, packet_for, prepare
from tests.support.tasks import holdfast
from tests.support.terminal import Terminal


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a", "b")
    repo.write("b", "a person's own\n")
    return repo


def test_the_patch_has_the_tasks_changes_and_not_the_persons(home: str, repo: Repo) -> None:
    prepare(packet_for(home, repo.path, scope_allow=(".",)))
    repo.write("a", "changed\n")
    done = holdfast("diff", "it")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("diff --git a/a b/a\n")
    assert "+changed\n" in done.stdout
    assert "b/b" not in done.stdout
    short = holdfast("diff", "it", "--stat").stdout
    assert "1 file changed, 1 insertion(+), 1 deletion(-)" in short


def test_json_lists_the_changes(home: str, repo: Repo) -> None:
    prepare(packet_for(home, repo.path, scope_allow=(".",)))
    repo.write("new", b"\xff\0")
    data = json.loads(holdfast("diff", "it", "--json").stdout)
    assert data["schema"] == "holdfast.diff/1"
    assert (data["task_id"], data["path"]) == ("it", repo.path)
    assert [(change["path"], change["kind"]) for change in data["changes"]] == [("new", "added")]
    assert "GIT binary patch" in data["patch"]


def test_what_lies_outside_the_scope_is_counted_and_shown_on_demand(home: str, repo: Repo) -> None:
    prepare(packet_for(home, repo.path, scope_allow=("src/",), scope_deny=("src/secret",)))
    repo.write("src/new")
    repo.write("src/secret")
    repo.write("cache.pyc", b"\xff\0")
    done = holdfast("diff", "it")
    assert done.stdout.startswith("diff --git a/src/new b/src/new\n")
    assert (done.stdout.count("diff --git"), "GIT binary patch" in done.stdout) == (1, False)
    assert done.stderr == "2 files outside the scope not shown; --all shows everything\n"
    assert "1 file changed" in holdfast("diff", "it", "--stat").stdout
    assert json.loads(holdfast("diff", "it", "--json").stdout)["left_out"] == ["cache.pyc", "src/secret"]
    whole = holdfast("diff", "it", "--all")
    assert (whole.stdout.count("diff --git"), whole.stderr) == (3, "")


def test_one_stage_of_several(home: str, repo: Repo) -> None:
    stages = (("codex_impl", "impl"), ("codex_test_impl", "test_impl"))
    packet = packet_for(home, repo.path, stages=stages, scope_allow=(".",))
    prepare(packet, "codex_impl")
    repo.write("first")
    prepare(packet, "codex_test_impl")
    repo.write("second")

    def names(*flags: str) -> list[str]:
        return [
            change["path"]
            for change in json.loads(holdfast("diff", "it", "--json", *flags).stdout)["changes"]
        ]

    assert names("--stage", "codex_impl") == ["first"]
    assert names("--stage", "codex_test_impl") == ["second"]
    assert names() == ["first", "second"]
    done = holdfast("diff", "it", "--stage", "other")
    assert done.returncode == 3
    assert "stages with a snapshot: codex_impl, codex_test_impl" in done.stderr


def test_nothing_changed_is_said(home: str, repo: Repo) -> None:
    prepare(packet_for(home, repo.path, scope_allow=(".",)))
    done = holdfast("diff", "it")
    assert (done.returncode, done.stdout) == (0, "")
    assert "changed nothing" in done.stderr


def test_a_task_without_a_record_is_refused(home: str, repo: Repo) -> None:
    packet_for(home, repo.path)
    done = holdfast("diff", "it")
    assert done.returncode == 3
    assert "has no recorded workspace" in done.stderr
    assert "hint: only tasks with a scope or a worktree" in done.stderr


def on_terminal(*words: str, env: dict[str, str] | None = None) -> str:
    terminal = Terminal("diff", *words, env=env)
    assert terminal.finish() == 0
    return terminal.text


def test_a_terminal_shows_it_in_colour(home: str, repo: Repo) -> None:
    prepare(packet_for(home, repo.path, scope_allow=(".",)))
    repo.write("a", "changed\n--- not a header\n\x1b[31mred\n")
    shown = on_terminal("it")
    assert "\x1b[32m+changed\x1b[0m" in shown
    assert "\x1b[1m--- a/a\x1b[0m" in shown
    assert "\x1b[32m+--- not a header\x1b[0m" in shown
    assert "+\x1b[31mred" not in shown
    assert "| 4 \x1b[32m+++\x1b[0m\x1b[31m-\x1b[0m" in on_terminal("it", "--stat")
    assert "\x1b" not in on_terminal("it", env={"NO_COLOR": "1"})
