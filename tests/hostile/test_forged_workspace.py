"""What an agent writes into its packet about its workspace blinds no gate."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.support.repos import Repo, judge, packet_for, prepare, report
from tests.support.tasks import Task, holdfast, workspace


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


def test_forged_times_in_a_kept_index_hide_no_change(home: str, repo: Repo) -> None:
    """An index that says: this content, as of now."""
    packet = packet_for(home, repo.path, scope_allow=("f",))
    prepare(packet)
    forge_times(repo, os.path.join(packet.workspace, "indexes"))
    report(packet, "done\n")
    code, result = judge(packet)
    assert code == 1
    assert "outside" in str(result["reasons"])


def test_a_removed_index_is_not_replaced_by_one_that_the_agent_wrote(home: str, repo: Repo) -> None:
    packet = packet_for(home, repo.path, scope_allow=("f",))
    prepare(packet)
    shutil.rmtree(os.path.join(packet.workspace, "indexes"))
    forge_times(repo, os.path.join(repo.path, ".git"))
    report(packet, "done\n")
    code, result = judge(packet)
    assert code == 1
    assert "outside" in str(result["reasons"])


def forge_times(repo: Repo, indexes: str) -> None:
    """Change `outside` and let the indexes in a directory say that it has its old content."""
    old = repo.git("rev-parse", "HEAD:outside").strip()
    repo.write("outside", "EVIL\n")
    path = os.path.join(repo.path, "outside")
    # git reads a file again that is as new as the index.
    os.utime(path, (1_600_000_000, 1_600_000_000))
    for name in os.listdir(indexes):
        if name != "index" and indexes.endswith(".git"):
            continue
        file = os.path.join(indexes, name)
        env = {**os.environ, "GIT_INDEX_FILE": file}
        subprocess.run(["git", "add", "outside"], cwd=repo.path, env=env, check=True, timeout=60)
        found = subprocess.run(
            ["git", "ls-files", "-s", "outside"], cwd=repo.path, env=env, check=True, capture_output=True
        ).stdout.split()[1]
        with open(file, "rb") as stream:
            data = stream.read()
        assert data.count(bytes.fromhex(found.decode())) == 1
        data = data.replace(bytes.fromhex(found.decode()), bytes.fromhex(old))[:-20]
        with open(file, "wb") as stream:
            stream.write(data + hashlib.sha1(data, usedforsecurity=False).digest())
        shown = subprocess.run(["git", "diff-files"], cwd=repo.path, env=env, check=True, capture_output=True)
        assert shown.stdout == b"", "the forged index does not hide the change"


def test_a_removed_record_of_the_start_is_made_again_from_the_journal(home: str, repo: Repo) -> None:
    stages = (("codex_impl", "impl"), ("codex_fix", "fix"))
    packet = packet_for(home, repo.path, stages=stages, scope_allow=("f",))
    first = prepare(packet)
    repo.write("f", "changed\n")
    os.unlink(packet.workspace_base)
    second = prepare(packet, "codex_fix")
    assert second["tree"] != first["tree"]
    assert second["base_tree"] == first["base_tree"]
    assert "+changed" in holdfast("diff", "it").stdout


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


@pytest.mark.parametrize(
    "forged",
    [{"git_dir": None, "common_dir": None}, {"prefix": "f/"}, {"commit": None}],
    ids=["repository", "prefix", "commit"],
)
def test_a_changed_record_of_the_start_is_refused(
    home: str, repo: Repo, forged: dict[str, str | None]
) -> None:
    """Without a repository, commands would run where the agent worked."""
    packet = packet_for(home, repo.path, scope_allow=("f",))
    prepare(packet)
    with open(packet.workspace_base, encoding="utf-8") as file:
        base = json.load(file)
    changed = {**base, **forged} if "commit" in forged else {**base, "place": {**base["place"], **forged}}
    with open(packet.workspace_base, "w", encoding="utf-8") as file:
        json.dump(changed, file)
    report(packet, "done\n")
    code, result = judge(packet)
    assert code == 3
    assert "does not fit the task" in result["stderr"]


def test_no_ignored_file_passes_by_a_changed_record_of_the_start(home: str) -> None:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write(".gitignore", "cache\n")
    repo.commit("f")
    forge = (
        "import json, os, sys\n"
        "open('cache', 'w').close()\n"
        "path = os.environ['HOLDFAST_PACKET'] + '/state/workspace/base.json'\n"
        "base = json.load(open(path))\n"
        "base['place'] |= {'git_dir': None, 'common_dir': None}\n"
        "json.dump(base, open(path, 'w'))\n"
    )
    command = ("--accept", "test -e cache", "--", sys.executable, "-c", forge)
    task = Task.start(*command, project=repo.path)
    manifest = task.wait_for("completed", "failed", "interrupted", "dead", within_s=60)
    assert manifest["status"] != "completed"


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


#: An agent that notes a tree for another task, again and again.
NOTE = r"""
import json, os, sys, time
tree, packet = sys.argv[1:]
place, ends = f"{packet}/state/workspace/judged.command_run.json", time.monotonic() + 60
while time.monotonic() < ends:
    try:
        name = max(name for name in os.listdir(f"{packet}/attempts") if name.endswith("run"))
        with open(place + ".new", "w") as file:
            json.dump({"schema": "holdfast.judged/1", "attempt": int(name[:3]), "tree": tree}, file)
        os.rename(place + ".new", place)
    except (OSError, ValueError):
        pass
    time.sleep(0.005)
"""


def test_a_note_of_a_living_agent_of_another_task_is_not_what_is_judged(home: str) -> None:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("f", "good\n")
    repo.commit()
    tree = repo.git("rev-parse", "HEAD^{tree}").strip()
    other = Task.start("--", sys.executable, "-c", NOTE, tree, os.path.join(home, "tasks", "it"))
    task = Task.shell(
        "echo evil > f", "--id", "it", "--worktree", "--accept", "grep good f", project=repo.path
    )
    manifest = task.wait_for("completed", "failed", "interrupted", "dead", within_s=60)
    assert manifest["status"] == "failed"
    other.stop()


#: What an agent does: a pack whose index gives contents names that are not theirs.
FORGE = r"""
import hashlib, os, struct, subprocess, sys, zlib
def sha(kind, data): return hashlib.sha1(b"%s %d\0" % (kind, len(data)) + data).digest()
pairs = []
for line in subprocess.run(["git", "cat-file", "--batch-all-objects", "--batch-check"], capture_output=True,
                           text=True, check=True).stdout.split("\n")[:-1]:
    name, kind, _ = line.split()
    data = subprocess.run(["git", "cat-file", kind, name], capture_output=True, check=True).stdout
    pairs.append([bytes.fromhex(name), data, {"commit": 1, "tree": 2, "blob": 3}[kind]])
evil, nice = b"echo EVIL\n", b"echo hello\n"
pairs = [[name, b"exit 0\n" if data == b"exit 1\n" else data, kind] for name, data, kind in pairs]
pairs.append([sha(b"blob", evil), nice, 3])
os.makedirs("vendor/lib")
subprocess.run(["git", "init", "-q", "vendor/lib"], check=True)
open("vendor/lib/README", "w").write("a library\n")
me = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
subprocess.run(["git", *me, "add", "README"], cwd="vendor/lib", check=True)
subprocess.run(["git", *me, "commit", "-qm", "x"], cwd="vendor/lib", check=True)
pack, offsets = b"PACK" + struct.pack(">II", 2, len(pairs)), []
for name, content, kind in pairs:
    size, head = len(content), b""
    first = (kind << 4) | (size & 15)
    size >>= 4
    while size:
        head += bytes([first | 0x80])
        first, size = size & 0x7F, size >> 7
    body = head + bytes([first]) + zlib.compress(content)
    offsets.append((name, len(pack), zlib.crc32(body)))
    pack += body
summed = hashlib.sha1(pack).digest()
offsets.sort()
index = b"\377tOc" + struct.pack(">I", 2)
index += b"".join(struct.pack(">I", sum(name[0] <= byte for name, _, _ in offsets)) for byte in range(256))
index += b"".join(name for name, _, _ in offsets)
index += b"".join(struct.pack(">I", crc) for _, _, crc in offsets)
index += b"".join(struct.pack(">I", at) for _, at, _ in offsets) + summed
index += hashlib.sha1(index).digest()
path = "vendor/lib/.git/objects/pack/pack-" + hashlib.sha1(summed).hexdigest()
for suffix, data in ((".pack", pack + summed), (".idx", index)):
    open(path + suffix, "wb").write(data)
    os.utime(path + suffix, (2e9, 2e9))
open("install.sh", "wb").write(evil)
"""


@pytest.mark.parametrize("then", ["", "rm vendor/lib/.git/HEAD"], ids=("nested", "no longer nested"))
def test_objects_of_a_nested_repository_count_for_nothing(home: str, repo: Repo, then: str) -> None:
    """Neither the test that accepts the work nor what a person sees is what the agent says."""
    repo.write("check.sh", "exit 1\n")
    repo.commit()
    repo.git("gc", "-q")
    script = os.path.join(os.path.dirname(home), "forge.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(FORGE)
    # Somebody looks at the work before it ends: a snapshot is taken while the nested repository is there.
    look = f"{sys.executable} -m holdfast diff it > /dev/null"
    work = f"{sys.executable} {script}; {look}; {then}"
    words = ("--id", "it", "--worktree", "--accept", "sh check.sh", "--project", repo.path)
    task = Task.start(*words, "--", "sh", "-c", work)
    assert holdfast("wait", "it", "--timeout", "50s").returncode != 0
    assert task.status() != "completed"
    shown = task.ask("diff").stdout
    assert "+echo EVIL" in shown
    assert "echo hello" not in shown


def test_a_record_of_the_start_that_was_planted_before_it_is_not_used(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tree is a word of git's command line: an option that names a file to write."""
    flags, script = ("--accept", "true"), ("--", "sh", "-c", "echo x > f; echo '* text' > .gitattributes")
    model = Task.start(*flags, *script, project=repo.path)
    model.wait_for("completed", within_s=40)
    repo.git("checkout", "-q", ".")
    mine = os.path.join(workspace(), "mine")
    with open(mine, "w", encoding="utf-8") as file:
        file.write("mine")
    assert holdfast("submit", "--id", "it", *flags, *script, cwd=repo.path).returncode == 0
    task = Task(os.path.join(os.path.dirname(model.packet), "it"))
    os.makedirs(task.path("state", "workspace"), exist_ok=True)
    planted = {**model.json("state", "workspace", "base.json"), "base_tree": f"--output={mine}"}
    with open(task.path("state", "workspace", "base.json"), "w", encoding="utf-8") as file:
        json.dump(planted, file)
    monkeypatch.delenv("HOLDFAST_KEEPER")
    assert holdfast("up").returncode == 0
    task.wait_for("completed", within_s=40)
    with open(mine, encoding="utf-8") as file:
        assert file.read() == "mine"
