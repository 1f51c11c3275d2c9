"""Where agents write: a worktree of the task's own, or the project itself, in which scoped stages take
turns."""

from __future__ import annotations

import os

import pytest

from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.testing import Scenario
from holdfast.workspace import lock as workspace_lock
from tests.support.packets import WORK, Written, gate, played
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")


def project(*files: str) -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md", *files)
    return repo


def worktree_of(task: Task) -> str:
    (path,) = {event["path"] for event in task.events("workspace.prepared") if event["kind"] == "worktree"}
    return path


# ── a worktree ──


@pytest.mark.req("LCH-20")
def test_a_plain_run_in_a_worktree() -> None:
    repo = project()
    before = repo.git("status", "--porcelain")
    task = Task.shell("echo work > new.txt; pwd", "--worktree", "--id", "it", project=repo.path)
    task.wait_for("completed")
    path = worktree_of(task)
    assert path in task.log()
    assert os.path.exists(os.path.join(path, "new.txt"))
    assert repo.git("status", "--porcelain") == before
    assert repo.git("branch", "--list", "holdfast/it").strip("+ \n") == "holdfast/it"
    shown = holdfast("diff", "it")
    assert (shown.returncode, "+work" in shown.stdout) == (0, True)
    # Work that exists nowhere else is not removed.
    refused = holdfast("rm", "it")
    assert refused.returncode == 3
    assert os.path.exists(os.path.join(path, "new.txt"))
    assert holdfast("apply", "it").returncode == 0
    assert repo.read("new.txt") == "work\n"
    removed = holdfast("rm", "it")
    assert removed.returncode == 0, removed.stderr
    assert not os.path.exists(path)


@pytest.mark.req("LCH-20")
def test_a_packet_in_a_worktree() -> None:
    repo = project()
    stages = {"scripted_brief": None, "scripted_impl": None, "scripted_verify": None, "scripted_review": None}
    packet = Written(stages, project=repo, acceptance={"commands": [f"grep -q hello {WORK}"]})
    task = packet.run("--worktree")
    path = worktree_of(task)
    # All stages work there, also those that only read: that is where the work is.
    assert not os.path.exists(os.path.join(repo.path, WORK))
    for directory in task.attempts():
        if not directory.endswith((".prepare", "-scripted_brief", "brief.gate")):
            with open(os.path.join(directory, "argv.json"), encoding="utf-8") as file:
                assert f'"cwd": "{path}"' in file.read().replace('":"', '": "'), directory
    assert f"+++ b/{WORK}" in holdfast("diff", "it").stdout
    assert holdfast("apply", "it").returncode == 0
    assert repo.read(WORK) == "hello\n"
    assert holdfast("rm", "it").returncode == 0
    assert repo.git("worktree", "list").count("\n") == 1


@pytest.mark.parametrize("how", ["merge", "patch"])
def test_what_acceptance_commands_leave_behind_stays_out_of_diff_and_apply(how: str) -> None:
    repo = project()
    stages = {"scripted_impl": None, "scripted_verify": None}
    commands = [
        "mkdir -p __pycache__ && printf '\\0' > __pycache__/b.pyc",
        "echo left > OUTSIDE.txt; git add -A",
    ]
    acceptance = {"commands": commands, "clean_room": False}
    task = Written(stages, project=repo, acceptance=acceptance).run("--worktree")
    told = "the commands left 2 files outside the scope: OUTSIDE.txt, __pycache__/b.pyc"
    assert told in gate(task, "scripted_verify")["reasons"][1]
    assert told in task.read("outputs", "scripted_verify.artifact.md").decode()
    shown = holdfast("diff", "it")
    assert (f"+++ b/{WORK}" in shown.stdout, "OUTSIDE" in shown.stdout) == (True, False)
    assert "2 files outside the scope not shown; --all shows everything" in shown.stderr
    whole = holdfast("diff", "it", "--all")
    assert ("OUTSIDE.txt" in whole.stdout, "b.pyc" in whole.stdout, whole.stderr) == (True, True, "")
    page = holdfast("show", "it").stdout
    assert worktree_of(task) in page
    assert "holdfast/it" in page
    assert page.index("holdfast diff it") < page.index("holdfast apply it") < page.index("holdfast rm it")
    done = holdfast("apply", "it", *(["--patch"] if how == "patch" else []))
    assert done.returncode == 0, done.stderr
    assert "left out (outside the scope): OUTSIDE.txt, __pycache__/b.pyc" in done.stderr
    assert repo.read(WORK) == "hello\n"
    assert not os.path.exists(os.path.join(repo.path, "OUTSIDE.txt"))
    changed = (
        repo.git("diff", "--name-only", "HEAD^1") if how == "merge" else repo.git("status", "--porcelain")
    )
    assert changed.split()[-1:] == [WORK]
    assert "holdfast apply it" not in holdfast("show", "it").stdout
    removed = holdfast("rm", "it")
    assert removed.returncode == 0, removed.stderr
    # Only the task had it, so it is kept, too.
    kept = os.path.join(os.environ["HOLDFAST_HOME"], "left-out", "it.patch")
    assert f"what apply left out is kept in {kept}" in removed.stderr
    repo.git("apply", kept)
    assert repo.read("OUTSIDE.txt") == "left\n"


def test_a_worktree_survives_its_agent_and_its_runner() -> None:
    repo = project()
    script = "echo one >> new.txt; test $HOLDFAST_RESUME_COUNT = 1 || kill -9 $$"
    task = Task.shell(script, "--worktree", "--base-interval", "1s", project=repo.path)
    task.wait_for("completed")
    assert len(task.events("workspace.prepared")) == 1
    with open(os.path.join(worktree_of(task), "new.txt"), encoding="utf-8") as file:
        assert file.read() == "one\none\n"
    assert holdfast("rm", "--force", task.id).returncode == 0


def test_a_run_in_a_worktree_ends_with_what_to_do() -> None:
    repo = project("a.txt")
    done = holdfast("run", "--id", "it", "--worktree", "--", "touch", "new.txt", cwd=repo.path)
    steps = [line.split("   ")[0].strip() for line in done.stderr.splitlines() if "  holdfast " in line]
    assert steps == ["holdfast diff it", "holdfast apply it", "holdfast pr it"]


def test_what_is_not_committed_is_named() -> None:
    repo = project("a.txt")
    repo.write("a.txt", "more\n")
    repo.write("b.txt")
    done = holdfast("run", "--id", "it", "--worktree", "--", "true", cwd=repo.path)
    assert done.returncode == 0
    assert "holdfast apply it" not in done.stderr  # it changed nothing
    note = "not committed, so not in the worktree: a.txt, b.txt"
    assert f"note: {note}\n" in done.stderr
    assert note not in holdfast("show", "it").stdout  # it needed none of them
    assert holdfast("submit", "--id", "other", "--worktree", "--", "true", cwd=repo.path).returncode == 0
    assert note in holdfast("show", "other").stdout


@pytest.mark.parametrize("has_git", [False, True], ids=("no_repository", "no_commit"))
def test_a_worktree_needs_a_repository_with_a_commit(has_git: bool) -> None:
    repo = Repo(os.path.join(workspace(), "project"), with_git=has_git)
    packet = Written({"scripted_impl": None}, project=repo)
    done = holdfast("run", "--packet", packet.path, "--worktree", cwd=repo.path)
    assert done.returncode != 0
    said = "has no commit yet" if has_git else "is not in a git repository"
    assert said in done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", packet.task_id))
    if os.path.exists(task.packet):
        assert task.json("state", "stats.json")["paid_calls"] == 0
        assert "'git init'" in task.manifest()["status_reason"] or has_git


def test_two_tasks_in_worktrees_work_side_by_side() -> None:
    repo = project()
    gates = [os.path.join(workspace(), name) for name in ("here-a", "here-b")]
    tasks: list[Task] = []
    for name, mine, other in (("a", *gates), ("b", *reversed(gates))):
        # Each ends only when the other has started.
        work = Scenario().write(WORK, content=f"{name}\n").write(mine, content="x").wait_file(other)
        packet = Written({"scripted_impl": played("impl", before=work)}, task_id=name, project=repo)
        tasks.append(packet.start("--worktree"))
    for task in tasks:
        task.wait_for("completed", within_s=30)
        assert gate(task, "scripted_impl")["passed"]


# ── in place ──


@pytest.mark.parametrize("places", [("", ""), ("one", "two")], ids=("one_directory", "one_repository"))
def test_scoped_tasks_in_one_place_take_turns(places: tuple[str, str]) -> None:
    repo = project("one/x", "two/x")
    go, ran = os.path.join(workspace(), "go"), os.path.join(workspace(), "ran")
    packets: list[Written] = []
    for name, place in zip(("a", "b"), places, strict=True):
        work = Scenario().write(ran, content=f"{name} begins\n", append=True).wait_file(go)
        work.write(f"{name}.txt", content="x\n").write(ran, content=f"{name} ends\n", append=True)
        packets.append(
            Written(
                {"scripted_impl": played("impl", before=work)},
                task_id=name,
                project=Repo(os.path.join(repo.path, place), with_git=False),
                scope={"allow": [f"{name}.txt"]},
                acceptance={"commands": [f"test -e {name}.txt"]},
            )
        )
    tasks = [packets[0].start()]
    eventually(lambda: os.path.exists(ran), 20, "the first is at work")
    tasks.append(packets[1].start())
    eventually(
        lambda: "a is writing" in str(tasks[1].manifest().get("verdict")),
        20,
        "the second waits",
        journal=tasks[1].packet,
    )
    with open(go, "w", encoding="utf-8"):
        pass
    for task in tasks:
        task.wait_for("completed", within_s=30)
        assert gate(task, "scripted_impl")["passed"]
    with open(ran, encoding="utf-8") as file:
        assert file.read().split("\n")[:-1] == ["a begins", "a ends", "b begins", "b ends"]


def test_the_workspace_stays_locked_when_its_holder_dies() -> None:
    """The runner is killed while its agent writes: the agent's recorder holds the lock until it is done."""
    repo = project()
    go, ran = os.path.join(workspace(), "go"), os.path.join(workspace(), "ran")
    stages = {
        name: played(
            "impl",
            before=Scenario()
            .write(ran, content=f"{name}\n", append=True)
            .wait_file(go)
            .write(f"{name}.txt", content="x\n"),
        )
        for name in ("a", "b")
    }
    first, second = (
        Written(
            {"scripted_impl": stages[name]},
            task_id=name,
            project=repo,
            scope={"allow": [f"{name}.txt"]},
            acceptance={"commands": [f"test -e {name}.txt"]},
        )
        for name in ("a", "b")
    )
    one = first.start()
    eventually(lambda: os.path.exists(ran), 20, "the first is at work")
    one.kill_runner()
    lock = workspace_lock.path_of(Home(os.environ["HOLDFAST_HOME"]), repo.path)
    assert locks.is_held(lock)
    two = second.start()
    eventually(lambda: "a is writing" in str(two.manifest().get("verdict")), 20, "the second waits")
    with open(ran, encoding="utf-8") as file:
        assert file.read() == "a\n"
    one.start_runner()
    with open(go, "w", encoding="utf-8"):
        pass
    for task in (one, two):
        task.wait_for("completed", within_s=30)


def test_a_project_that_git_does_not_know() -> None:
    repo = Repo(os.path.join(workspace(), "project"), with_git=False)
    repo.write("mine.txt", "mine\n")
    packet = Written({"scripted_impl": None}, project=repo)
    task = packet.run()
    assert gate(task, "scripted_impl")["passed"]
    shown = holdfast("diff", "it")
    assert (shown.returncode, "+hello" in shown.stdout) == (0, True)
    assert "mine.txt" not in shown.stdout
    assert not os.path.exists(os.path.join(repo.path, ".git"))
    assert holdfast("rm", "it").returncode == 0
    assert repo.read("mine.txt") == "mine\n"


def test_out_of_scope_is_seen_without_git_too() -> None:
    repo = Repo(os.path.join(workspace(), "project"), with_git=False)
    work = Scenario().write(WORK, content="hello\n").write("other.txt", content="x\n")
    task = Written({"scripted_impl": played("impl", before=work)}, project=repo).run(end="failed")
    assert gate(task, "scripted_impl")["failed"] == "scope"
