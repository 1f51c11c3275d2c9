"""holdfast prune: lists first, removes with --yes, and keeps what is needed."""

from __future__ import annotations

import json
import os

import pytest

from tests.support import kin
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def make(*task_ids: str) -> None:
    for task_id in task_ids:
        Task.shell("true", "--id", task_id).wait_for("completed")


def age(home: str, task_id: str, days: int) -> None:
    """Make it look as if it ended so long ago."""
    path = os.path.join(home, "tasks", task_id, "manifest.json")
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    manifest["finished_at"] = f"2020-01-{31 - days:02d}T00:00:00.000Z"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(manifest, file)


def names(home: str, folder: str = "tasks") -> list[str]:
    path = os.path.join(home, folder)
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def prune(*words: str) -> list[str]:
    done = holdfast("prune", *words, "--json")
    assert done.returncode == 0, done.stderr
    return [row["task_id"] for row in json.loads(done.stdout)["tasks"]]


@pytest.mark.req("AUD-5", "AUD-6")
def test_nothing_goes_without_yes_and_only_old_tasks_by_default(home: str) -> None:
    make("new", "old")
    age(home, "old", 3)
    done = holdfast("prune")
    assert done.returncode == 0
    assert "old" in done.stdout
    assert "new" not in done.stdout
    assert "would be removed; --yes does it" in done.stderr
    assert names(home) == ["new", "old"]
    assert "1 task, " in holdfast("prune", "--yes").stderr
    assert names(home) == ["new"]
    assert holdfast("ls", "-q", "--all").stdout == "new\n"
    assert holdfast("prune").stderr == "nothing to remove\n"


def test_the_setting_says_how_long_tasks_are_kept(home: str) -> None:
    make("it")
    assert prune() == []
    path = os.path.join(os.environ["HOME"], ".config", "holdfast", "config.toml")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write("keep_for = 0\n")
    assert prune() == ["it"]


def test_keep_size_and_where(home: str) -> None:
    make("a", "b", "c")
    for number, task_id in enumerate("abc"):
        age(home, task_id, 9 - number)
    holdfast("archive", "b")
    assert prune("--keep", "1") == ["a", "b"]
    assert prune("--keep", "0", "--archived") == ["b"]
    assert prune("--keep", "0", "--ended") == ["a", "c"]
    assert prune("--max-size", "1GB") == []
    assert prune("--max-size", "0") == ["a", "b", "c"]
    assert prune("--keep", "0", "--yes") == ["a", "b", "c"]
    assert (names(home), names(home, "archive")) == ([], [])


@pytest.mark.req("AUD-5")
def test_summary_and_markers_may_stay(home: str) -> None:
    make("a", "b")
    holdfast("archive", "b")
    before = json.loads(holdfast("metrics", "--json").stdout)["home"]
    assert prune("--keep", "0", "--keep-summaries", "--yes") == ["a", "b"]
    for _ in range(2):
        assert json.loads(holdfast("metrics", "--json").stdout)["home"] == before
    os.unlink(os.path.join(home, "metrics.json"))
    assert json.loads(holdfast("metrics", "--json").stdout)["home"]["completed"] == 2
    assert names(home) == []
    for task_id in ("a", "b"):
        left = {name for _, _, found in os.walk(os.path.join(home, "archive", task_id)) for name in found}
        assert left == {"manifest.json", "manifest.yaml", "_summary.md", "_task.done", "command_run.done"}
        assert json.loads(holdfast("show", task_id, "--json").stdout)["status"] == "completed"
        shown = holdfast("show", task_id).stdout
        assert f"next      holdfast show {task_id} --summary   read its summary\n" in shown
        assert "holdfast logs" not in shown
        for verb in ("logs", "events"):
            gone = holdfast(verb, task_id)
            assert (gone.returncode, gone.stdout) == (3, "")
            assert gone.stderr == (
                f"error: of {task_id} only the summary is left\n"
                f"hint: 'holdfast show {task_id} --summary' prints it\n"
            )
    assert prune("--keep", "0", "--keep-summaries", "--yes") == []
    assert prune("--keep", "0", "--yes") == ["a", "b"]


def test_a_task_that_has_not_ended_never_goes(home: str) -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    assert prune("--keep", "0", "--yes") == []
    task.ask("interrupt")
    task.wait_for("interrupted")
    assert prune("--keep", "0", "--yes", "--max-size", "0") == []
    assert names(home) == ["it"]
    task.stop()


def test_a_failed_task_that_another_one_waits_for_is_kept(home: str) -> None:
    Task.shell("false", "--id", "bad").wait_for("failed")
    waiting = holdfast("submit", "--id", "next", "--after", "bad", "--", "true", cwd=workspace())
    assert waiting.returncode == 0, waiting.stderr
    age(home, "bad", 3)
    done = holdfast("prune", "--yes")
    assert "kept:" in done.stdout
    assert "next needs it to be completed" in " ".join(done.stdout.split())
    assert names(home) == ["bad", "next"]


def test_a_figure_that_is_none_is_refused() -> None:
    for words in (
        ["--keep", "x"],
        ["--max-size", "big"],
        ["--older-than", "soon"],
        ["--archived", "--ended"],
    ):
        assert holdfast("prune", *words).returncode == 2
    assert holdfast("prune", "--yes").stderr == "nothing to remove\n"


# ── work in worktrees ──

COMMIT = "git add new.txt && git -c user.name=a -c user.email=a@b commit -qm work"


def in_worktree(script: str) -> tuple[Repo, Task]:
    """A task that worked in a worktree, and its project."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md")
    task = Task.shell(script, "--worktree", "--id", "it", project=repo.path)
    task.wait_for("completed")
    return repo, task


@pytest.mark.parametrize("script", ["echo new > new.txt", f"echo new > new.txt && {COMMIT}"])
@pytest.mark.parametrize("flags", [(), ("--keep-summaries",)], ids=["whole", "summaries"])
def test_work_that_is_nowhere_else_is_never_removed(home: str, script: str, flags: tuple[str, ...]) -> None:
    repo, task = in_worktree(script)
    before = holdfast("diff", "it").stdout
    assert "+new" in before
    assert holdfast("archive", "it").returncode == 3
    done = holdfast("prune", "--keep", "0", "--yes", *flags)
    assert done.returncode == 0  # keeping it is not a failure
    assert "unmerged work" in done.stdout
    assert task.status() == "completed"
    assert holdfast("diff", "it").stdout == before
    # Once merged, it is removed with its branch.
    assert holdfast("apply", "it").returncode == 0
    assert holdfast("prune", "--keep", "0", "--yes", *flags).returncode == 0
    assert names(home, "worktrees") == []
    assert repo.git("branch", "--list", "holdfast/*") == ""
    assert repo.read("new.txt") == "new\n"


def test_work_that_was_brought_over_as_a_patch_may_go(home: str) -> None:
    repo, task = in_worktree("echo new > new.txt")
    assert holdfast("apply", "it", "--patch").returncode == 0
    assert holdfast("prune", "--keep", "0", "--yes").returncode == 0
    assert not os.path.exists(task.packet)
    assert names(home, "worktrees") == []
    assert repo.read("new.txt") == "new\n"


def test_what_changed_after_the_patch_stays(home: str) -> None:
    _, task = in_worktree("echo new > new.txt")
    assert holdfast("apply", "it", "--patch").returncode == 0
    with open(os.path.join(home, "worktrees", "it", "more.txt"), "w", encoding="utf-8") as file:
        file.write("more\n")
    assert "kept: " in holdfast("prune", "--keep", "0", "--yes").stdout
    assert os.path.exists(task.packet)
