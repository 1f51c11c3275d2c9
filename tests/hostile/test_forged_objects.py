"""git does not compare the content of an object with its name: what an agent forged deceives no gate."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.workspace import git
from tests.hostile.planting import write
from tests.support.repos import Repo, judge, packet_for, prepare, report
from tests.support.tasks import Task, holdfast, workspace

#: `forge.py STORE loose|pack NAME CONTENT`: what an agent does.
FORGE = r"""
import hashlib, os, struct, sys, zlib
store, how, name, text = sys.argv[1:]
data, digest = text.encode(), bytes.fromhex(name)
if how == "loose":
    path = os.path.join(store, name[:2], name[2:])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        os.unlink(path)
    open(path, "wb").write(zlib.compress(b"blob %d\0" % len(data) + data))
    sys.exit()
assert len(data) < 16
body = bytes([3 << 4 | len(data)]) + zlib.compress(data)
pack = b"PACK" + struct.pack(">II", 2, 1) + body
summed = hashlib.sha1(pack).digest()
index = b"\377tOc" + struct.pack(">I", 2)
index += b"".join(struct.pack(">I", digest[0] <= byte) for byte in range(256))
index += digest + struct.pack(">II", zlib.crc32(body), 12) + summed
index += hashlib.sha1(index).digest()
path = os.path.join(store, "pack", "pack-" + hashlib.sha1(summed).hexdigest())
os.makedirs(os.path.dirname(path), exist_ok=True)
for suffix, content in ((".pack", pack + summed), (".idx", index)):
    open(path + suffix, "wb").write(content)
    os.utime(path + suffix, (2e9, 2e9))
"""
_STORES = {"packet": "$HOLDFAST_PACKET/state/workspace/git/objects", "repository": "$PROJECT/.git/objects"}


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("check.sh", "exit 1\n")
    repo.commit()
    write(os.path.join(workspace(), "forge.py"), FORGE)
    return repo


def _play(repo: Repo, script: str, accept: str) -> Task:
    forge = f'PROJECT={repo.path}; forge() {{ {sys.executable} {workspace()}/forge.py "$@"; }}; '
    task = Task.shell(forge + script, "--worktree", "--accept", accept, project=repo.path)
    task.wait_for("completed", "failed", "interrupted", within_s=60)
    return task


@pytest.mark.parametrize("is_packed", [False, True], ids=("", "packed"))
@pytest.mark.parametrize("how", ["loose", "pack"])
@pytest.mark.parametrize("where", ["packet", "repository"])
def test_a_test_is_not_the_one_that_an_agent_forged(
    repo: Repo, where: str, how: str, is_packed: bool
) -> None:
    """The test in the commit fails; an object of the same name says that it passes."""
    if is_packed:
        repo.git("gc", "-q")
    script = f'forge {_STORES[where]} {how} $(git rev-parse HEAD:check.sh) "exit 0"; echo bad > work'
    task = _play(repo, script, "sh check.sh")
    assert task.status() != "completed"


@pytest.mark.parametrize("how", ["loose", "pack"])
def test_what_is_judged_and_shown_is_what_is_applied(repo: Repo, how: str) -> None:
    script = f"echo evil > work; forge {_STORES['packet']} {how} $(git hash-object work) good"
    task = _play(repo, script, "grep good work")
    assert task.status() == "failed"
    assert "+evil" in task.ask("diff").stdout


def test_another_list_of_stores_does_not_count_for_a_diff(home: str, repo: Repo) -> None:
    """The work of a stage is shown without a snapshot, if there is a later stage."""
    stages = (("codex_impl", "impl"), ("codex_verify", "verify"))
    packet = packet_for(home, repo.path, stages=stages, scope_allow=("work",))
    prepare(packet)
    repo.write("work", "evil\n")
    prepare(packet, "codex_verify")
    store, other = f"{packet.workspace}/git/objects", os.path.join(workspace(), "objects")
    name = repo.git("hash-object", "work").strip()
    os.unlink(f"{store}/{name[:2]}/{name[2:]}")
    subprocess.run([sys.executable, "-c", FORGE, other, "loose", name, "good\n"], check=True)
    with open(f"{store}/info/alternates", "a", encoding="utf-8") as file:
        file.write(f"{other}\n")
    shown = holdfast("diff", packet.task_id, "--stage", "codex_impl")
    assert "+good" not in shown.stdout
    assert name in shown.stderr, "the object is missing"


def test_a_forged_note_hides_no_hook(home: str, repo: Repo) -> None:
    """The hooks of the stage's start are noted in an object."""
    packet = packet_for(home, repo.path, workspace="worktree", scope_allow=("work",))
    noted = prepare(packet)["own_files"]
    objects = os.path.join(packet.workspace, "git", "objects")
    write(os.path.join(repo.path, ".git", "hooks", "post-checkout"), "#!/bin/sh\n", mode=0o755)
    forged = prepare(packet_for(home, repo.path, task_id="other", workspace="worktree"))["own_files"]
    assert forged != noted
    store = os.path.join(home, "tasks", "other", "state", "workspace", "git", "objects")
    place = os.path.join(objects, noted[:2], noted[2:])
    os.unlink(place)
    os.rename(os.path.join(store, forged[:2], forged[2:]), place)
    Repo(os.path.join(home, "worktrees", "it"), with_git=False).write("work")
    report(packet, "done\n")
    code, result = judge(packet)
    assert code == 3 or "hooks/post-checkout" in str(result["reasons"])
    assert code != 0


def test_a_commit_has_the_tree_of_its_object(repo: Repo) -> None:
    """git takes the tree of a commit from the commit-graph, and compares it with nothing."""
    real = repo.git("rev-parse", "HEAD^{tree}")
    repo.write("evil.py", "evil()\n")
    repo.git("add", "evil.py")
    fake = repo.git("write-tree")
    repo.git("commit-graph", "write", "--reachable")
    graph = os.path.join(repo.path, ".git", "objects", "info", "commit-graph")
    with open(graph, "rb") as file:
        forged = file.read().replace(bytes.fromhex(real), bytes.fromhex(fake))
    os.unlink(graph)
    with open(graph, "wb") as file:
        file.write(forged)
    found = git.find(repo.path)
    assert found is not None
    assert git.text(git.run(["log", "-1", "--format=%T"], of=found)) == real.strip()
