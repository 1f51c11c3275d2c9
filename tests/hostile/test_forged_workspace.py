"""What an agent writes into its packet about its workspace blinds no gate."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.support.repos import Repo, judge, packet_for, prepare, report
from tests.support.tasks import Task, workspace


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("f", "outside")
    return repo


def test_flags_in_a_kept_index_hide_no_change(home: str, repo: Repo) -> None:
    packet = packet_for(home, repo.path, scope_allow=("f",))
    prepare(packet)
    repo.write("outside", "evil\n")
    indexes = os.path.join(packet.workspace, "indexes")
    for name in os.listdir(indexes):
        subprocess.run(
            ["git", "update-index", "--assume-unchanged", "outside"],
            cwd=repo.path,
            env={**os.environ, "GIT_INDEX_FILE": os.path.join(indexes, name)},
            check=True,
            timeout=60,
        )
    report(packet, "done\n")
    code, result = judge(packet)
    assert code == 1
    assert "outside" in str(result["reasons"])


def test_changed_ignore_rules_of_snapshots_are_noticed(home: str, repo: Repo) -> None:
    packet = packet_for(home, repo.path, scope_allow=("f",))
    prepare(packet)
    repo.write("setup.py", "evil\n")
    path = os.path.join(packet.workspace, "git", "holdfast.json")
    with open(path, encoding="utf-8") as file:
        frozen = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**frozen, "exclude": "setup.py\n"}, file)
    report(packet, "done\n")
    code, result = judge(packet)
    assert code == 3
    assert "they were changed" in result["stderr"]


def test_a_changed_tree_of_the_start_is_refused(home: str, repo: Repo) -> None:
    packet = packet_for(home, repo.path, scope_allow=("f",))
    prepare(packet)
    repo.write("f", "changed\n")
    repo.git("add", "-A")
    tree = repo.git("write-tree").strip()
    with open(packet.workspace_base, encoding="utf-8") as file:
        base = json.load(file)
    with open(packet.workspace_base, "w", encoding="utf-8") as file:
        json.dump({**base, "base_tree": tree}, file)
    report(packet, "done\n")
    code, result = judge(packet)
    assert code == 3
    assert "does not fit the task" in result["stderr"]


def test_a_note_of_the_agent_is_not_what_is_judged(home: str) -> None:
    """The agent notes a good tree as one that a killed gate saw, and leaves another."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("f", "good\n")
    repo.commit()
    tree = repo.git("rev-parse", "HEAD^{tree}").strip()
    script = (
        "echo evil > f; mkdir -p $HOLDFAST_PACKET/state/workspace; "
        "number=$(basename $HOLDFAST_ATTEMPT | cut -d- -f1 | sed 's/^0*//'); "
        f'printf \'{{"schema": "holdfast.judged/1", "attempt": %s, "tree": "{tree}"}}\' $number '
        "> $HOLDFAST_PACKET/state/workspace/judged.command_run.json"
    )
    task = Task.shell(script, "--accept", "grep good f", project=repo.path)
    manifest = task.wait_for("completed", "failed", "interrupted", "dead", within_s=60)
    assert manifest["status"] == "failed"
