"""Lives whose work is accepted, amended, applied or pushed: how they begin, what is typed, what must hold."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from holdfast.model import events as ev
from holdfast.model.spec import QualitySpec, SandboxSpec
from holdfast.model.task import Task
from holdfast.store import journal
from holdfast.testing import Scenario as Script
from holdfast.workspace import room_places
from tests.crash.drive import Case
from tests.crash.written import stage
from tests.support.gh import Gh
from tests.support.packets import WORK
from tests.support.repos import Repo
from tests.support.tools import need_sandbox

_LINES = "for i in 1 2 3 4 5; do echo line $i; done; "
_AS_SOMEBODY = "-c user.name=agent -c user.email=agent@example.org"


def has_ended(case: Case) -> bool:
    """Whether the task is at its end, and its runner is gone."""
    return case.has_ended


def typed(*argv: str) -> Callable[[Case], None]:
    """An act: this command, and once more if it was killed."""

    def act(case: Case) -> None:
        status = case.holdfast(*argv)
        if status == -9:
            status = case.holdfast(*argv)
        if status != 0:
            case.fail(f"holdfast {' '.join(argv)}: exit status {status}")

    return act


def squashed(case: Case) -> None:
    """Its commit has a file outside the scope, which is removed later; another file is not committed."""
    Repo(case.project).commit("README.md")
    commit = f"echo hello > {WORK}; echo x > foreign; git add -A; git {_AS_SOMEBODY} commit -qm both"
    work = Script().fail_if_running().tool("sh", command=f"{commit}; rm foreign; echo more >> {WORK}")
    case.create_written(stage(case, "impl", work, writes=True), workspace="worktree", scope_allow=(WORK,))


def merging(case: Case) -> None:
    """It stops in the middle of a merge."""
    Repo(case.project).commit("README.md")
    other = f"git switch -qc other; echo o > o.txt; git add -A; git {_AS_SOMEBODY} commit -qm other"
    back = f"git switch -q holdfast/task; git {_AS_SOMEBODY} merge -q --no-ff --no-commit other"
    case.create(command=["sh", "-c", f"{_LINES}{other}; {back}; echo hello > {WORK}"], workspace="worktree")


def uncommitted(case: Case) -> None:
    """It commits nothing."""
    Repo(case.project).commit("README.md")
    case.create(command=["sh", "-c", f"{_LINES}echo hello > {WORK}"], workspace="worktree")


def in_sandbox(case: Case) -> None:
    """It commits in a sandbox, which cannot write to the repository."""
    need_sandbox()
    Repo(case.project).commit("README.md")
    commit = f"echo hello > {WORK}; git add -A; git {_AS_SOMEBODY} commit -qm 'by the agent'"
    case.create(
        command=["sh", "-c", f"{_LINES}{commit}"], workspace="worktree", sandbox=SandboxSpec(network=False)
    )


def accepted(case: Case) -> None:
    """Its result must pass a command in a clean room; a remote takes it."""
    repo = Repo(case.project)
    repo.commit("README.md")
    remote = Repo(os.path.join(case.root, "remote.git"), with_git=False)
    remote.git("init", "-q", "--bare", "-b", "main")
    repo.git("remote", "add", "origin", remote.path)
    repo.git("push", "-q", "origin", "main")
    case.env.update(Gh(case.root).env)
    case.create(
        command=["sh", "-c", f"{_LINES}echo hello > {WORK}"],
        workspace="worktree",
        quality=QualitySpec(accept=(f"echo checked; test -e {WORK}",)),
    )


def checked(case: Case) -> None:
    """A pull request whose check is pending, fails once, and passes after the repair."""
    repo = Repo(case.project)
    repo.commit("README.md")
    remote = Repo(os.path.join(case.root, "remote.git"), with_git=False)
    remote.git("init", "-q", "--bare", "-b", "main")
    gh = Gh(case.root)
    results = ("pending", "fail", "pass")
    gh.answer(*([{"name": "test", "bucket": result, "link": ""}] for result in results))
    case.env.update(gh.env)
    script = Script(on_resume="restart").fail_if_running().write(WORK, content="hello\n", append=True)
    case.create_written(
        stage(case, "impl", script, writes=True),
        scope_allow=(WORK,),
        workspace="worktree",
        repair_times=2,
        ci="draft",
        ci_remote="origin",
        ci_url=remote.path,
    )


def check_checked(case: Case, task: Task) -> None:
    """One pull request, whose branch has both commits, and no call more than one repair."""
    remote = Repo(os.path.join(case.root, "remote.git"), with_git=False)
    assert remote.git("show", f"holdfast/task:{WORK}") == "hello\nhello\n"
    with open(os.path.join(case.root, "gh-state", "pulls"), encoding="utf-8") as file:
        assert list(json.load(file)) == ["holdfast/task"]
    with open(os.path.join(case.root, "gh-state", "calls"), encoding="utf-8") as file:
        verbs = [json.loads(line)["argv"][1] for line in file]
    assert verbs.count("create") == 1
    assert task.ci is not None
    assert task.ci.state == "passed"
    assert len(task.repair_log) == 1


def beyond(case: Case) -> None:
    """It writes outside its scope, so that it fails until the scope is wider."""
    Repo(case.project).commit("README.md")
    script = Script(on_resume="restart").write(WORK, content="hello\n").write("docs/a.md", content="x\n")
    case.create_written(stage(case, "impl", script, writes=True), scope_allow=(WORK,), workspace="worktree")


def amend(case: Case) -> None:
    """Run it again with a wider scope."""
    case.ask("retry", env=case.captured(), set=["scope.allow+=docs/"])


def check_merged(case: Case, task: Task) -> None:
    """Its work is in the user's branch and in his files, by one merge, and the task shows it."""
    repo = Repo(case.project, with_git=False)
    assert repo.git("log", "--first-parent", "--merges", "--format=%s", "main").count("\n") == 1
    assert "README.md" in repo.git("ls-tree", "--name-only", "main")
    assert repo.git("show", f"main:{WORK}").startswith("hello\n")
    assert "foreign" not in repo.git("log", "--name-only", "--format=", "main")
    assert repo.git("status", "--porcelain") == ""
    worktree = Repo(os.path.join(case.home.worktrees, "task"), with_git=False)
    assert worktree.git("status", "--porcelain") == ""
    assert worktree.git("symbolic-ref", "HEAD") == "refs/heads/holdfast/task\n"
    names = os.listdir(os.path.join(case.project, ".git", "worktrees", "task"))
    assert not [name for name in names if name.startswith(("MERGE_", "AUTO_MERGE"))], names
    assert task.applied is not None
    assert task.applied.how == "merge"


def check_squashed(case: Case, task: Task) -> None:
    """One commit of holdfast, without the file outside the scope."""
    check_merged(case, task)
    repo = Repo(case.project, with_git=False)
    assert "both" not in repo.git("log", "--format=%s", "main").split("\n")
    assert repo.git("rev-list", "--count", "main") == "3\n"


def check_finished_merge(case: Case, task: Task) -> None:
    """The merge of the agent is one commit with two parents."""
    check_merged(case, task)
    merges = Repo(case.project, with_git=False).git("log", "--merges", "--format=%s", "main")
    assert merges.split("\n")[:-1] == ["Merge holdfast/task: task", "task"], merges


def check_from_sandbox(case: Case, task: Task) -> None:
    """The commit of the agent is in the user's repository, which is whole."""
    check_merged(case, task)
    repo = Repo(case.project, with_git=False)
    assert "by the agent" in repo.git("log", "--format=%s", "main").split("\n")
    repo.git("fsck", "--strict")


def check_patched(case: Case, task: Task) -> None:
    """The file is changed, nothing is committed, and the task shows it."""
    repo = Repo(case.project, with_git=False)
    assert repo.git("status", "--porcelain") == f"?? {WORK}\n"
    assert os.path.exists(case.packet.applied)
    assert task.applied is not None
    assert task.applied.how == "patch"


def check_pushed(case: Case, task: Task) -> None:
    """It was accepted once, and there is one commit at the remote, and one pull request for it."""
    with open(case.packet.gate_result("command_run"), encoding="utf-8") as file:
        assert json.load(file)["passed"] is True
    remote = Repo(os.path.join(case.root, "remote.git"), with_git=False)
    assert remote.git("rev-list", "--count", "main..holdfast/task") == "1\n"
    assert remote.git("show", f"holdfast/task:{WORK}") == "hello\n"
    with open(os.path.join(case.root, "gh-state", "pulls"), encoding="utf-8") as file:
        assert list(json.load(file)) == ["holdfast/task"]
    assert not room_places.rooms_of(case.packet), "a clean room is left"


def check_amended(case: Case, task: Task) -> None:
    """One more run, with the wider scope."""
    events = [event for _, event in journal.read(case.packet.journal)]
    (opened,) = [event for event in events if isinstance(event, ev.RunOpened)]
    assert [change["field"] for change in opened.amended] == ["scope.allow"]
    assert task.spec.pipeline is not None
    assert task.spec.pipeline.scope_allow == (WORK, "docs/")
