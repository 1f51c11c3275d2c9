"""holdfast archive: archived tasks stay readable, and nothing needed is archived."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.support import kin
from tests.support.packets import Written
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, trust, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def ended(task_id: str = "it", script: str = "echo said") -> Task:
    task = Task.shell(script, "--id", task_id)
    task.wait_for("completed")
    return task


def ids(*words: str) -> list[str]:
    return holdfast("ls", "-q", *words).stdout.split()


@pytest.mark.req("AUD-2", "AUD-5")
def test_an_archived_task_is_moved_and_read_where_it_is(home: str) -> None:
    task = ended()
    events = task.events()
    for name in ("env.json", "bell"):  # removed at the task's end; put back for this test
        with open(task.path(name), "w", encoding="utf-8"):
            pass
    done = holdfast("archive", "it")
    assert (done.returncode, done.stdout) == (0, "")
    assert not os.path.exists(task.packet)
    folder = os.path.join(home, "archive", "it")
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert (ids("--all"), ids("--archived")) == ([], ["it"])
    assert json.loads(holdfast("show", "it", "--json").stdout)["status"] == "completed"
    assert holdfast("logs", "it").stdout == "said\n"
    assert holdfast("logs", "i", "--raw").stdout == "said\n"
    shown = [json.loads(line) for line in holdfast("events", "it", "--json").stdout.splitlines()]
    assert shown == events
    left = {name for _, _, names in os.walk(folder) for name in names}
    assert left >= {"events.jsonl", "manifest.json", "_summary.md", "_task.done", "stdout.log", "exit.json"}
    assert not left & {"env.json", "bell", "pid", "lock", "runner.lock"}
    assert os.stat(os.path.join(folder, "attempts", "001-command_run", "stdout.log")).st_mode & 0o077 == 0


def test_nothing_is_suggested_that_an_archived_task_refuses() -> None:
    Task.shell("exit 1", "--id", "bad", "--max-retries", "0").wait_for("failed")
    assert "holdfast retry bad" in holdfast("show", "bad").stdout
    assert holdfast("archive", "bad").returncode == 0
    assert "holdfast retry" not in holdfast("show", "bad").stdout
    report = holdfast("report").stdout
    assert "retry bad" not in report
    assert "  bad  failed" in report


def test_where_all_is_put_away_ls_says_where() -> None:
    assert holdfast("ls", "--archived").stderr == "no archived tasks\n"
    Task.shell("true", "--id", "it").wait_for("completed")
    assert holdfast("archive", "it").returncode == 0
    message = "no tasks, but 1 archived: 'holdfast ls --archived' lists it\n"
    assert holdfast("ls").stderr == message


def test_the_id_of_an_archived_task_never_means_another_one() -> None:
    ended("job")
    assert holdfast("archive", "job").returncode == 0
    other = Task.shell(kin.WAIT.rstrip("; "), "--id", "job-2")
    other.agent_pid()
    assert holdfast("stop", "job").stderr == "job has already ended: completed\n"
    for verb in ("retry", "resume", "interrupt", "approve", "attach", "takeover", "apply", "pr", "archive"):
        done = holdfast(verb, "job")
        assert done.returncode == 3
        assert "job is archived" in done.stderr
        assert "'holdfast archive --restore job' brings it back" in done.stderr
    assert json.loads(holdfast("show", "job", "--json").stdout)["task_id"] == "job"
    assert holdfast("logs", "job").stdout == "said\n"
    assert holdfast("wait", "job").stdout.startswith("job completed")
    assert holdfast("rm", "job").returncode == 0
    assert other.status() == "running"
    assert holdfast("show", "job", "--json").returncode == 0  # now it is a prefix
    assert holdfast("stop", "job").returncode == 0
    other.wait_for("killed")


def test_a_command_that_would_change_it_says_where_it_is(home: str) -> None:
    ended()
    holdfast("archive", "it")
    for verb in ("retry", "interrupt", "resume", "archive"):
        done = holdfast(verb, "it")
        assert done.returncode == 3
        assert "it is archived" in done.stderr
    assert holdfast("rm", "it").returncode == 0
    assert os.listdir(os.path.join(home, "archive")) == []
    assert holdfast("show", "it").returncode == 3


def test_who_waits_for_a_task_that_is_put_away_is_told_its_end() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    waiting = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "wait", "it"], stdout=subprocess.PIPE, text=True
    )
    kin.go()
    task.wait_for("completed")
    holdfast("archive", "it")
    assert waiting.communicate(timeout=20) == ("it completed\n", None)
    done = holdfast("wait", "it")
    assert (done.returncode, done.stdout) == (0, "it completed\n")


@pytest.mark.parametrize("state", ["running", "interrupted"])
def test_a_task_that_has_not_ended_stays(state: str) -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    if state == "interrupted":
        task.ask("interrupt")
        task.wait_for("interrupted")
    done = holdfast("archive", "it")
    assert done.returncode == 3
    assert f"it has not ended: it is {state}" in done.stderr
    assert holdfast("archive", "--all-ended").stderr == "nothing to archive\n"
    assert task.status() == state
    task.stop()


def test_all_that_ended_and_only_old_ones() -> None:
    for task_id in ("a", "b"):
        ended(task_id)
    assert holdfast("archive", "--all-ended", "--older-than", "1h").stderr == "nothing to archive\n"
    done = holdfast("archive", "--all-ended", "--older-than", "0s")
    assert done.returncode == 0
    assert done.stderr.endswith("2 tasks archived\n")
    assert sorted(ids("--archived")) == ["a", "b"]


@pytest.mark.parametrize("verb", ["run", "submit"])
def test_an_archived_task_keeps_its_id(home: str, verb: str) -> None:
    ended()
    holdfast("archive", "it")
    done = holdfast(verb, "--id", "it", "--", "echo", "second")
    assert done.returncode == 2
    assert "task it already exists, in the archive" in done.stderr
    assert "'holdfast rm it' removes the archived task" in done.stderr
    assert ids("--archived") == ["it"]
    assert holdfast("rm", "it").returncode == 0
    assert holdfast("run", "--id", "it", "--", "echo", "second").returncode == 0


def test_nothing_is_said_about_a_packet_whose_id_is_taken(home: str) -> None:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md")
    written = Written({"scripted_impl": None}, project=repo)
    first = holdfast("run", "--packet", written.path, "--worktree", cwd=repo.path)
    assert "note: not committed, so not in the worktree: .holdfast/" in first.stderr
    second = holdfast("run", "--packet", written.path, "--worktree", cwd=repo.path)
    assert second.stderr.startswith("error: task it already exists\nhint: change task_id in manifest.yaml")


def test_an_id_that_the_archive_has_already(home: str) -> None:
    task = ended()
    holdfast("archive", "it")
    shutil.copytree(os.path.join(home, "archive", "it"), task.packet)  # as an older version could make it
    done = holdfast("archive", "it")
    assert done.returncode == 3
    assert "the archive already has a task it" in done.stderr


def test_work_that_is_not_merged_stays(home: str) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", workspace()]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    task = ended()
    from holdfast.store.layout import Packet
    from holdfast.workspace.worktrees import worktree

    tree = worktree.make(Packet(task.packet), workspace())
    with open(os.path.join(tree.path, "new.txt"), "w", encoding="utf-8") as file:
        file.write("work")
    done = holdfast("archive", "it")
    assert done.returncode == 3
    assert "unmerged work" in done.stderr
    assert "'holdfast archive --force it'" in done.stderr
    other = worktree.make(Packet(ended("other").packet), workspace())
    with open(os.path.join(other.path, "new.txt"), "w", encoding="utf-8") as file:
        file.write("work")
    done = holdfast("archive", "--all-ended")
    assert done.returncode == 3
    for task_id in ("it", "other"):
        assert f"  {task_id} has unmerged work: 1 uncommitted file" in done.stderr
    assert done.stderr.count("hint: ") == 1
    assert "'holdfast archive --force it other' archives them" in " ".join(done.stderr.split())
    assert done.stderr.endswith("0 tasks archived, 2 not\n")
    os.unlink(os.path.join(other.path, "new.txt"))
    done = holdfast("prune", "--keep", "0", "--yes")
    assert done.returncode == 0  # keeping it is not a failure
    assert "kept: it has unmerged work" in done.stdout
    assert os.path.exists(task.packet)
    os.unlink(os.path.join(tree.path, "new.txt"))
    assert holdfast("archive", "it").returncode == 0
    assert holdfast("prune", "--keep", "0", "--yes").returncode == 0
    assert not os.path.exists(tree.path)


def test_links_of_an_agent_lead_nowhere(home: str, place) -> None:
    """`outputs` and an attempt may be links to other files by now."""
    task = ended()
    other = os.path.join(place.root, "other")
    os.mkdir(other)
    for name in ("lock", "pid", "precious"):
        with open(os.path.join(other, name), "w", encoding="utf-8"):
            pass
    os.rename(task.path("outputs"), task.path("outputs.real"))
    os.symlink(other, task.path("outputs"))
    os.symlink(other, task.path("attempts", "002-x"))
    assert holdfast("archive", "it").returncode == 0
    assert holdfast("prune", "--keep", "0", "--keep-summaries", "--yes").returncode == 0
    assert sorted(os.listdir(other)) == ["lock", "pid", "precious"]


@pytest.mark.req("INT-6")
def test_notes_go_where_the_project_keeps_them() -> None:
    ended("a")
    holdfast("archive", "a")
    assert not os.path.exists(os.path.join(workspace(), "docs"))
    ended("b")
    holdfast("archive", "b", "--notes")
    page = os.path.join(workspace(), "docs", "sessions", "b.md")
    with open(page, encoding="utf-8") as file:
        assert "completed" in file.read()
    settings = os.path.join(workspace(), ".holdfast", "config.toml")
    os.mkdir(os.path.dirname(settings))
    with open(settings, "w", encoding="utf-8") as file:
        file.write('knowledge = "docs"\n')
    ended("untrusted")
    holdfast("archive", "untrusted")
    assert not os.path.exists(os.path.join(workspace(), "docs", "sessions", "untrusted.md"))
    trust(workspace())
    ended("c")
    holdfast("archive", "c")
    assert os.path.exists(os.path.join(workspace(), "docs", "sessions", "c.md"))
    os.rename(os.path.join(workspace(), "docs"), os.path.join(os.environ["HOME"], "docs"))
    os.symlink(os.path.join(os.environ["HOME"], "docs"), os.path.join(workspace(), "docs"))
    ended("d")
    assert holdfast("archive", "d").returncode == 0
    assert not os.path.exists(os.path.join(os.environ["HOME"], "docs", "sessions", "d.md"))


def test_wrong_words_are_2_and_an_unknown_task_is_3() -> None:
    assert holdfast("archive").returncode == 2
    assert holdfast("archive", "a", "--all-ended").returncode == 2
    assert holdfast("archive", "--all-ended", "--older-than", "soon").returncode == 2
    done = holdfast("archive", "nobody")
    assert done.returncode == 3
    assert "no task 'nobody'" in done.stderr


def test_the_diff_of_an_archived_task_can_be_read() -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", workspace()]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    task = Task.shell("echo new > new.txt", "--worktree", "--id", "it")
    task.wait_for("completed")
    before = holdfast("diff", "it")
    assert "+new" in before.stdout, before.stderr
    assert holdfast("apply", "it").returncode == 0
    done = holdfast("archive", "it")
    assert done.returncode == 0, done.stderr
    assert holdfast("diff", "it").stdout == before.stdout


def test_json_says_where_its_files_are_now(home: str) -> None:
    Task.shell("true", "--id", "it").wait_for("completed")
    assert holdfast("archive", "it").returncode == 0
    shown = json.loads(holdfast("show", "it", "--json").stdout)
    assert shown["tmpdir"] == os.path.join(home, "archive", "it")
    assert os.path.isdir(shown["tmpdir"])


def test_a_restored_task_can_be_retried(home: str) -> None:
    Task.shell(
        "[ -e ../once ] && echo again || { touch ../once; exit 1; }", "--id", "it", "--max-retries", "0"
    )
    task = Task(os.path.join(home, "tasks", "it"))
    task.wait_for("failed")
    assert holdfast("archive", "it").returncode == 0
    done = holdfast("retry", "it")
    assert done.returncode == 3
    assert "holdfast archive --restore it" in done.stderr

    done = holdfast("archive", "--restore", "it")
    assert done.returncode == 0, done.stderr
    assert (ids("--all"), ids("--archived")) == (["it"], [])
    assert holdfast("retry", "it").returncode == 0
    task.wait_for("completed")
    with open(os.path.join(home, "audit.jsonl"), encoding="utf-8") as file:
        assert '"task.restored"' in file.read()


def test_what_cannot_be_restored_is_named(home: str) -> None:
    ended("there")
    for task_id in ("taken", "short"):
        ended(task_id)
        assert holdfast("archive", task_id).returncode == 0
    # As an older version could make it.
    shutil.copytree(os.path.join(home, "archive", "taken"), os.path.join(home, "tasks", "taken"))
    assert holdfast("prune", "--archived", "--keep-summaries", "--yes", "--older-than", "0s").returncode == 0
    done = holdfast("archive", "--restore", "there", "taken", "short", "nothing")
    assert done.returncode == 3
    assert "there is not archived" in done.stderr
    assert "left only its summary" in done.stderr
    assert "no task 'nothing'" in done.stderr
    done = holdfast("archive", "nothing", "neither")
    assert "nothing" in done.stderr
    assert "neither" in done.stderr
    assert holdfast("archive", "--restore").returncode == 2
    assert holdfast("archive", "--restore", "short", "--all-ended").returncode == 2


def test_a_failed_task_that_others_need_is_neither_archived_nor_removed() -> None:
    Task.shell("exit 1", "--id", "first", "--max-retries", "0").wait_for("failed")
    assert holdfast("submit", "--id", "second", "--after", "first", "--", "true").returncode == 0
    for words in (("first",), ("--all-ended",)):
        done = holdfast("archive", *words)
        assert done.returncode == 3
        assert "cannot archive first: second needs it to be completed" in done.stderr
        assert "holdfast queue retry second" in done.stderr
    assert done.stderr.endswith("0 tasks archived, 1 not\n")
    assert holdfast("submit", "--id", "third", "--after", "first", "--", "true").returncode == 0
    assert "second and 1 more need it to be completed" in holdfast("archive", "first").stderr
    assert holdfast("queue", "retry", "second").returncode == 0
    refused = holdfast("rm", "first")
    assert refused.returncode == 3
    assert "cannot remove first: third needs it to be completed" in refused.stderr
    assert "'holdfast rm --force first' removes it anyway" in refused.stderr
    assert "first failed" in holdfast("ls").stdout
    done = holdfast("rm", "--force", "first")
    assert done.returncode == 0
    assert (
        "third is held now: first is not in this home\n  holdfast queue retry third   run it anyway\n"
        in done.stderr
    )
    assert "second" not in done.stderr  # it was let run without it
    assert "first is not in this home" in holdfast("ls").stdout  # it cannot be retried any more
