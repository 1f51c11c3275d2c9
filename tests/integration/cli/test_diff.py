"""holdfast diff: exactly the changes of a task."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from contracts import schema
from holdfast import clock
from holdfast.workspace import checked_out
from tests.support.repos import Repo, packet_for, prepare
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.waiting import eventually

#: The files of a task in place can have been changed by others.
IN_PLACE = (
    "compared with the files as they are now, so changes of others since the task started are included\n"
)


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
    assert (done.returncode, done.stderr) == (0, IN_PLACE)
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
    assert done.stderr == IN_PLACE + "2 files outside the scope not shown; --all shows everything\n"
    assert "1 file changed" in holdfast("diff", "it", "--stat").stdout
    assert json.loads(holdfast("diff", "it", "--json").stdout)["left_out"] == ["cache.pyc", "src/secret"]
    whole = holdfast("diff", "it", "--all")
    assert (whole.stdout.count("diff --git"), whole.stderr) == (3, IN_PLACE)


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
    assert "hint: tasks with a scope or a worktree" in done.stderr


def test_a_plain_run_is_compared_with_the_commit_that_was_checked_out(home: str, repo: Repo) -> None:
    """A person has changed `b` before, which nobody touches."""
    repo.write("mine", "a person's own, untracked\n")
    past = clock.now()
    eventually(lambda: clock.now() - past > 0.5, what="time between the person's changes and the task")
    script = "echo changed > a; echo new > c; git commit -qm theirs a; rm gone"
    repo.commit("gone")
    task = Task.shell(script, "--id", "plain", "--project", repo.path)
    task.wait_for("completed")
    done = holdfast("diff", "plain")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("diff ")] == [
        "diff --git a/a b/a", "diff --git a/c b/c", "diff --git a/gone b/gone",
    ]  # fmt: skip
    assert "+changed" in done.stdout
    words = " ".join(done.stderr.split())
    assert words.startswith("compared with commit ")
    assert "changes of others are included" in words
    assert not os.path.exists(task.path("state", "workspace"))
    data = json.loads(holdfast("diff", "plain", "--json").stdout)
    jsonschema.validate(data, schema.schemas()["diff"])
    assert data["note"] in words
    # The agent cannot hide a change by what it writes to the user's index.
    repo.git("update-index", "--assume-unchanged", "gone", "a")
    assert holdfast("diff", "plain").stdout == done.stdout


def test_a_plain_run_outside_git_has_no_diff(home: str, repo: Repo) -> None:
    outside = workspace()
    Task.shell("true", "--id", "outside", "--project", outside).wait_for("completed")
    refused = holdfast("diff", "outside")
    assert refused.returncode == 3
    assert "plain runs in a git repository" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("layout", ["loose", "packed", "detached", "worktree", "unborn", "below"])
def test_the_commit_is_read_as_git_knows_it(layout: str, home: str, repo: Repo) -> None:
    place = repo.path
    if layout == "packed":
        repo.git("pack-refs", "--all")
    elif layout == "detached":
        repo.git("checkout", "-q", "--detach")
    elif layout == "worktree":
        place = os.path.join(os.path.dirname(home), "tree")
        repo.git("worktree", "add", "-q", "-b", "other", place)
    elif layout == "unborn":
        repo.git("checkout", "-q", "--orphan", "fresh")
    elif layout == "below":
        place = os.path.join(repo.path, "deep", "er")
        os.makedirs(place)
    wanted = "" if layout == "unborn" else repo.git("rev-parse", "HEAD").strip()
    assert checked_out.commit(place) == wanted


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
