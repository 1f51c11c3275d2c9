"""holdfast apply, and rm of a task with a worktree."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.model.status import Status
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet
from tests.support.repos import Repo, packet_for, prepare
from tests.support.tasks import holdfast
from tests.support.terminal import Terminal


class Case:
    def __init__(self, home: str, status: Status = Status.COMPLETED) -> None:
        self.repo = Repo(os.path.join(os.path.dirname(home), "project"))
        self.repo.commit("a")
        self.packet: Packet = packet_for(
            home, self.repo.path, workspace="worktree", status=status, scope_allow=(".",)
        )
        self.work = Repo(prepare(self.packet)["path"], with_git=False)
        if status is Status.COMPLETED:
            atomic.write_json(self.packet.task_done, {}, durable=False)


@pytest.mark.req("LCH-20")
def test_work_in_a_worktree_comes_home(home: str) -> None:
    case = Case(home)
    case.work.write("new")
    assert not os.path.exists(os.path.join(case.repo.path, "new"))
    done = holdfast("apply", "it")
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        f"merged it into main of {case.repo.path}: 1 file\n"
        "  holdfast rm it   remove the task, its worktree and its branch\n"
    )
    assert case.repo.read("new") == "text\n"
    assert case.repo.git("status", "--porcelain") == ""


def test_as_a_patch_nothing_is_committed(home: str) -> None:
    case = Case(home)
    case.work.write("new")
    done = holdfast("apply", "it", "--patch", "--json")
    data = json.loads(done.stdout)
    assert (data["schema"], data["how"], data["paths"]) == ("holdfast.apply/1", "patch", ["new"])
    assert case.repo.git("status", "--porcelain") == "?? new\n"
    assert holdfast("rm", "it").returncode == 0


def test_a_task_at_work_is_left_alone(home: str) -> None:
    Case(home, Status.QUEUED)
    done = holdfast("apply", "it")
    assert done.returncode == 3
    assert "it has not ended: it is queued" in done.stderr


def test_in_place_there_is_nothing_to_apply(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    packet = packet_for(home, repo.path)
    done = holdfast("apply", "it")
    assert done.returncode == 3
    assert "works in place" in done.stderr
    assert "--worktree" in done.stderr  # there is no snapshot of its start yet
    prepare(packet)
    assert "hint: 'holdfast diff it' shows them" in holdfast("apply", "it").stderr


def test_a_task_that_never_began_has_no_worktree_yet(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    packet_for(home, repo.path, workspace="worktree", status=Status.KILLED)
    done = holdfast("apply", "it")
    assert done.returncode == 3
    assert "it has not started: it has no worktree yet" in done.stderr


def test_show_says_how_to_read_what_was_changed_in_place(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a")
    packet = packet_for(home, repo.path)
    prepare(packet)
    atomic.write_json(packet.task_done, {}, durable=False)
    assert "holdfast diff it   show its changes" in holdfast("show", "it").stdout


def test_rm_refuses_unmerged_work(home: str) -> None:
    case = Case(home)
    case.work.write("new")
    done = holdfast("rm", "it")
    assert done.returncode == 3
    assert "has unmerged work: 1 uncommitted file" in done.stderr
    assert "holdfast apply it" in done.stderr
    assert os.path.exists(os.path.join(case.work.path, "new"))
    assert os.path.exists(case.packet.path)


def test_rm_with_force_leaves_commits_on_the_branch(home: str) -> None:
    case = Case(home)
    case.work.write("new")
    case.work.commit()
    done = holdfast("rm", "--force", "it")
    assert done.returncode == 0, done.stderr
    assert "its commits stay on the branch holdfast/it" in done.stderr
    assert os.listdir(Home(home).worktrees) == []
    assert case.repo.git("log", "-1", "--format=%s", "holdfast/it") == "work\n"


def test_rm_of_merged_work_takes_worktree_and_branch(home: str) -> None:
    case = Case(home)
    case.work.write("new")
    assert holdfast("apply", "it").returncode == 0
    done = holdfast("rm", "it")
    assert (done.returncode, done.stderr) == (0, "removed it\n")
    assert os.listdir(Home(home).worktrees) == []
    assert case.repo.git("branch", "--list") == "* main\n"
    assert case.repo.read("new") == "text\n"


def refused_work(home: str) -> Repo:
    """The repository of the task `it`, whose acceptance refused a new file `new`."""
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a")
    words = ("--id", "it", "--worktree", "--accept", "false", "--", "touch", "new")
    assert holdfast("run", *words, cwd=repo.path).returncode == 1
    return repo


def test_work_that_its_acceptance_refused_is_merged_only_by_force(home: str) -> None:
    repo = refused_work(home)
    refused = holdfast("apply", "it")
    assert refused.returncode == 3
    assert "a gate refused the work of it: acceptance failed" in refused.stderr
    assert "'holdfast diff it' shows it; 'holdfast apply --force it' merges it anyway" in refused.stderr
    assert not os.path.exists(os.path.join(repo.path, "new"))
    person = Terminal("apply", "it")
    person.read_until("Merge it anyway? [y/N]")
    person.press("n\n")
    assert person.finish() == 3
    assert not os.path.exists(os.path.join(repo.path, "new"))
    done = holdfast("apply", "it", "--force")
    assert done.returncode == 0, done.stderr
    assert "warning: it did not complete: acceptance failed" in done.stderr
    assert os.path.exists(os.path.join(repo.path, "new"))


def test_what_keeps_refused_work_is_what_the_hint_says(home: str) -> None:
    repo = refused_work(home)
    for verb in ("rm", "archive"):
        refused = holdfast(verb, "it")
        assert refused.returncode == 3
        assert "'holdfast apply --force it' applies it to" in refused.stderr
        assert "'holdfast archive --force it' archives the task and keeps it" in refused.stderr
    done = holdfast("archive", "--force", "it")
    assert done.returncode == 0, done.stderr
    assert "its worktree stays: it has unmerged work: 1 uncommitted file in" in done.stderr
    assert "it" not in holdfast("ls", "-q").stdout.split()
    assert holdfast("prune", "--keep", "0", "--yes").returncode == 0
    refused = holdfast("rm", "it")
    assert refused.returncode == 3
    assert "'holdfast archive --restore it' brings the task back" in refused.stderr
    assert holdfast("archive", "--restore", "it").returncode == 0
    assert holdfast("apply", "--force", "it").returncode == 0
    assert os.path.exists(os.path.join(repo.path, "new"))


def test_a_person_may_merge_what_acceptance_refused(home: str) -> None:
    repo = refused_work(home)
    person = Terminal("apply", "it")
    person.read_until("Merge it anyway? [y/N]")
    person.press("y\n")
    assert person.finish() == 0
    assert os.path.exists(os.path.join(repo.path, "new"))


def test_work_that_failed_without_a_gate_is_merged_with_a_warning(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a")
    words = ("--id", "it", "--worktree", "--", "sh", "-c", "touch new; exit 3")
    assert holdfast("run", *words, cwd=repo.path).returncode == 1
    done = holdfast("apply", "it")
    assert done.returncode == 0, done.stderr
    assert "warning: it did not complete: exit status 3" in done.stderr
