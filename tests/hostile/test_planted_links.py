"""Links and empty repositories that an agent plants: nothing is deleted or written elsewhere, locks hold."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import LockHeld
from holdfast.store.layout import Home
from holdfast.workspace import lock
from tests.support.packets import StandIns
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("sub/f")
    return repo


def test_leftovers_are_not_removed_through_a_link(home: str, repo: Repo) -> None:
    root = os.path.dirname(home)
    photo = Repo(os.path.join(root, "photos"), with_git=False).write("99999999-summer/beach.jpg")
    run = os.path.join(root, "run")
    os.mkdir(run, 0o700)
    os.symlink(os.path.join(root, "photos"), os.path.join(run, "holdfast"))
    env = {"XDG_RUNTIME_DIR": run}
    done = holdfast("run", "--worktree", "--id", "l", "--", "true", cwd=repo.path, env=env)
    assert done.returncode == 0, done.stderr
    assert os.path.exists(photo)


def test_a_link_among_the_git_directories_is_not_followed(home: str, repo: Repo) -> None:
    root = os.path.dirname(home)
    victim = Repo(os.path.join(root, "victim"), with_git=False)
    kept = [victim.write("info/notes"), victim.write("refs/stash")]
    run = os.path.join(root, "run")
    os.makedirs(os.path.join(run, "holdfast"), 0o700)
    os.chmod(run, 0o700)
    link = os.path.join(run, "holdfast", "99999999-x")
    os.symlink(victim.path, link)
    env = {"XDG_RUNTIME_DIR": run}
    done = holdfast("run", "--worktree", "--id", "l", "--", "true", cwd=repo.path, env=env)
    assert done.returncode == 0, done.stderr
    assert not os.path.lexists(link)
    assert [path for path in kept if not os.path.exists(path)] == []


@pytest.mark.parametrize("name", ["logs", "refs/heads", "logs/refs"])
def test_a_branch_is_not_written_through_a_link_in_the_repository(home: str, repo: Repo, name: str) -> None:
    path = os.path.join(repo.path, ".git", name)
    elsewhere = os.path.join(os.path.dirname(home), "elsewhere")
    os.rename(path, elsewhere)
    os.symlink(elsewhere, path)
    before = sorted(os.walk(elsewhere))
    done = holdfast("run", "--worktree", "--id", "l", "--", "true", cwd=repo.path)
    assert done.returncode not in (0, 70), done.stderr
    assert sorted(os.walk(elsewhere)) == before
    holdfast("rm", "--force", "l", cwd=repo.path)
    assert sorted(os.walk(elsewhere)) == before


@pytest.mark.parametrize("planted", ["directory", "file", "link"])
def test_a_planted_git_directory_does_not_change_the_lock(home: str, repo: Repo, planted: str) -> None:
    sub = os.path.join(repo.path, "sub")
    held = lock.acquire(Home(home), sub, role="runner")
    link = os.path.join(sub, ".git")
    if planted == "directory":
        os.mkdir(link)
    elif planted == "link":
        os.symlink("/nowhere", link)
    else:
        with open(link, "w", encoding="utf-8") as file:
            file.write("gitdir: /nowhere\n")
    try:
        with pytest.raises(LockHeld):
            lock.acquire(Home(home), sub, role="runner", within_s=0.0)
    finally:
        held.release()


# ── directories of ours and results ──

#: A `codex` that puts a link in place of its config home, and dies.
_CODEX = r"""#!/bin/sh
[ "$1" = --version ] && { echo 99.0.0; exit; }
echo '{"type":"thread.started","thread_id":"01999999-9999-7999-8999-999999999999"}'
echo '{"type":"turn.started"}'
if [ ! -e $CODEX_HOME.old ]; then
    mv $CODEX_HOME $CODEX_HOME.old; ln -s $HOME/dots $CODEX_HOME
    kill -SEGV $$
fi
echo '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"done"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
"""


def test_a_config_home_is_not_filled_through_a_link(
    home: str, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links of the user there would be removed, too."""
    user = Repo(os.path.join(os.path.dirname(home), "user"), with_git=False)
    for name in (".codex/auth.json", ".codex/config.toml", ".codex/skills/one", "mine/two", "dots/notes"):
        user.write(name)
    os.symlink(f"{user.path}/mine", f"{user.path}/dots/skills")
    os.chmod(user.write("bin/codex", _CODEX), 0o755)
    monkeypatch.setenv("HOME", user.path)
    monkeypatch.setenv("PATH", f"{user.path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("CODEX_API_KEY", "none")
    words = ("--max-retries", "1", "--base-interval", "0.1s", "--max-interval", "0.2s", "do it")
    task = Task.start("--agent", "codex", *words, project=repo.path)
    task.wait_for("completed", within_s=40)
    assert sorted(os.listdir(f"{user.path}/dots")) == ["notes", "skills"]
    assert os.readlink(f"{user.path}/dots/skills") == f"{user.path}/mine"
    assert os.path.islink(task.path("state", "codex.aside-1"))


def test_the_end_of_an_earlier_run_is_not_moved_through_a_link(home: str, repo: Repo) -> None:
    elsewhere = os.path.join(os.path.dirname(home), "elsewhere")
    os.mkdir(elsewhere)
    script = f'test -e "$HOLDFAST_PACKET/runs" || ln -s {elsewhere} "$HOLDFAST_PACKET/runs"'
    task = Task.shell(script, project=repo.path)
    task.wait_for("completed")
    done = task.ask("retry", "--from", "command_run")
    assert done.returncode == 0, done.stderr
    task.wait_for_event("run.opened")
    task.wait_for("completed")
    assert os.listdir(elsewhere) == []


def test_results_of_a_review_are_not_written_where_a_link_leads(home: str, repo: Repo) -> None:
    """The name of their folder can be guessed, and it is made after the agents have worked."""
    root = os.path.dirname(home)
    outside = Repo(os.path.join(root, "outside"), with_git=False)
    outside.write("summary.md", "mine\n")
    given = [Repo(root, with_git=False).write(name) for name in ("context.md", "report.md")]
    agents = StandIns(["gemini_review", "codex_review", "copilot_review_consolidate"])
    agents.tell("codex_review.sh", f"ln -s {outside.path} {repo.path}/review-r\n")
    done = holdfast("review", "cross", *given, "--id", "r", env=agents.env, cwd=repo.path)
    assert done.returncode == 3, done.stderr
    assert "through a link" in " ".join(done.stderr.split())
    assert os.listdir(outside.path) == ["summary.md"]
    assert outside.read("summary.md") == "mine\n"
