"""A link in place of a task's worktree, or of the project in it: nothing behind it is written or judged."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.store import atomic
from tests.support.fanouts import agent, item, plan, project, start
from tests.support.loops import up
from tests.support.repos import Repo, judge, packet_for, prepare, report
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture
def precious(home: str) -> dict[str, str]:
    """The files of a user, somewhere else."""
    folder = Repo(os.path.join(os.path.dirname(home), "precious"), with_git=False)
    folder.write("f", "mine\n")
    folder.write("letters/one", "mine\n")
    return {name: os.path.join(folder.path, name) for name in ("f", "letters/one")}


def _check(precious: dict[str, str]) -> None:
    for path in precious.values():
        with open(path, encoding="utf-8") as file:
            assert file.read() == "mine\n"
    folder = os.path.dirname(precious["f"])
    assert sorted(os.listdir(folder)) == ["f", "letters"]


@pytest.mark.parametrize("linked", ["worktrees/it", "worktrees"])
def test_a_gate_reverts_nothing_behind_a_link(home: str, precious: dict[str, str], linked: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("f", "outside")
    packet = packet_for(home, repo.path, workspace="worktree", scope_allow=("f",), revert_out_of_scope=True)
    prepare(packet)
    place, target = os.path.join(home, linked), os.path.dirname(precious["f"])
    if linked == "worktrees":
        target = os.path.dirname(target)
        os.symlink("precious", os.path.join(target, "it"))
    os.rename(place, place + ".moved")
    os.symlink(target, place)
    report(packet, "No changes required.\n")
    atomic.write_json(packet.task_done, {"schema": "holdfast.done/1"}, durable=False)
    code, _ = judge(packet)
    assert code == 3
    for words in (("diff", "it"), ("apply", "it"), ("apply", "--patch", "it"), ("rm", "it")):
        assert holdfast(*words, cwd=repo.path).returncode not in (0, 70)
    assert holdfast("rm", "--force", "it", cwd=repo.path).returncode == 0
    _check(precious)


@pytest.fixture
def loop(home: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    up("--slots", "2")
    yield
    holdfast("down")


def test_a_merge_writes_nothing_behind_a_link(loop: None, home: str, precious: dict[str, str]) -> None:
    """The agent of an item replaces the worktree of the fan-out."""
    repo, target = project(), os.path.dirname(precious["f"])
    place = os.path.join(home, "worktrees", "f1")
    work = f"echo x > f; mv {place} {place}.moved; ln -s {target} {place}"
    task = start(repo, agent(("a", work)), plan(item("a")), "--accept", "true")
    task.wait_for("failed", within_s=60)
    _check(precious)


def test_a_project_that_became_a_link_is_not_judged_elsewhere(home: str) -> None:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("part/check.sh", "exit 1\n")
    repo.commit()
    elsewhere = Repo(os.path.join(workspace(), "elsewhere"), with_git=False)
    elsewhere.write("check.sh", "exit 0\n")
    script = f"cd ..; rm -r part; ln -s {elsewhere.path} part"
    words = ("--worktree", "--accept", "sh check.sh")
    task = Task.shell(script, *words, project=os.path.join(repo.path, "part"))
    manifest = task.wait_for("completed", "failed", "interrupted", within_s=60)
    assert manifest["status"] != "completed"
