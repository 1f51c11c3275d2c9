"""What an agent leaves in its worktree's git directory: `apply` and `rm` do no harm by it."""

from __future__ import annotations

import os
import subprocess

import pytest

from holdfast.model.status import Status
from holdfast.store import atomic
from holdfast.store.layout import Packet
from tests.support.repos import Repo, judge, packet_for, prepare, report
from tests.support.tasks import holdfast

_EVIL, _GOOD = "import os; os.system('evil')\n", "def f(): return 2\n"


class Scene:
    """A project, and the worktree of a task that has ended."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.root = os.path.dirname(home)
        self.repo = Repo(os.path.join(self.root, "project"))
        self.repo.write("src/f.py", "def f(): return 1\n")
        self.repo.write(".gitignore", "*.local.py\n")
        self.repo.commit("keep")
        self.packet: Packet = packet_for(
            home, self.repo.path, workspace="worktree", scope_allow=("src/",), status=Status.COMPLETED
        )
        atomic.write_json(self.packet.task_done, {"schema": "holdfast.done/1"}, durable=False)
        prepare(self.packet)
        self.work = Repo(os.path.join(home, "worktrees", "it"), with_git=False)
        self.admin = os.path.join(self.repo.path, ".git", "worktrees", "it")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = holdfast(*words, cwd=self.repo.path)
        assert done.returncode != 70, done.stderr
        return done


@pytest.fixture
def scene(home: str) -> Scene:
    return Scene(home)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
@pytest.mark.parametrize("is_committed", [False, True], ids=("staged", "committed"))
def test_apply_merges_the_files_and_not_what_a_flag_hides(
    scene: Scene, flag: str, is_committed: bool
) -> None:
    scene.work.write("src/f.py", _EVIL)
    scene.work.git("add", "src/f.py")
    if is_committed:
        scene.work.git("commit", "-q", "-m", "work")
    scene.work.git("update-index", flag, "src/f.py")
    scene.work.write("src/f.py", _GOOD)
    done = scene.run("apply", "it")
    assert done.returncode == 0, done.stderr
    assert scene.repo.read("src/f.py") == _GOOD
    assert scene.repo.git("show", "HEAD:src/f.py") == _GOOD


def test_a_commit_with_other_content_than_the_files_is_not_merged(scene: Scene) -> None:
    """The file is missing, and the flag says that this is as it should be."""
    old = scene.repo.git("rev-parse", "HEAD")
    scene.work.write("src/new.py", _EVIL)
    scene.work.git("add", "src/new.py")
    scene.work.git("commit", "-q", "-m", "work")
    scene.work.git("update-index", "--skip-worktree", "src/new.py")
    os.unlink(os.path.join(scene.work.path, "src/new.py"))
    done = scene.run("apply", "it")
    assert done.returncode != 0
    assert "other content than its files: src/new.py" in done.stderr
    assert scene.repo.git("rev-parse", "HEAD") == old


@pytest.mark.parametrize("is_committed", [False, True], ids=("staged", "committed"))
def test_gate_and_diff_see_an_ignored_file_that_was_added_by_force(scene: Scene, is_committed: bool) -> None:
    for name in ("src/boot.local.py", "out.local.py"):
        scene.work.write(name, _EVIL)
        scene.work.git("add", "-f", name)
    if is_committed:
        scene.work.git("commit", "-q", "-m", "work")
    assert "src/boot.local.py" in scene.run("diff", "it", "--stat").stdout
    report(scene.packet, "done\n")
    assert "out.local.py" in str(judge(scene.packet))


@pytest.mark.parametrize("is_link", [False, True], ids=("symbolic_ref", "link"))
def test_rm_deletes_only_the_branch_of_the_task(scene: Scene, is_link: bool) -> None:
    scene.repo.git("branch", "release")
    only = scene.repo.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "only there").strip()
    scene.repo.git("update-ref", "refs/heads/release", only)
    scene.work.git("checkout", "-q", "--detach", "main")
    ref = os.path.join(scene.repo.path, ".git/refs/heads/holdfast/it")
    os.unlink(ref)
    if is_link:
        os.symlink("../release", ref)
    else:
        scene.repo.git("symbolic-ref", "refs/heads/holdfast/it", "refs/heads/release")
    scene.run("rm", "it")
    assert scene.repo.git("rev-parse", "release").strip() == only
    scene.run("rm", "--force", "it")
    assert scene.repo.git("rev-parse", "release").strip() == only


def test_rm_leaves_the_branch_where_packed_refs_are_behind_a_link(scene: Scene) -> None:
    packed, target = os.path.join(scene.repo.path, ".git/packed-refs"), os.path.join(scene.root, "refs")
    scene.repo.git("pack-refs", "--all")
    os.rename(packed, target)
    os.symlink(target, packed)
    done = scene.run("rm", "it")
    assert done.returncode == 0, done.stderr
    assert "packed-refs is a symbolic link" in " ".join((done.stdout + done.stderr).split())
    assert not os.path.exists(scene.work.path)
    assert scene.repo.git("branch", "--list", "holdfast/it")


def test_apply_does_not_move_the_branch_to_which_the_task_s_refers(scene: Scene) -> None:
    scene.repo.git("branch", "release")
    old = scene.repo.git("rev-parse", "release")
    scene.repo.git("symbolic-ref", "refs/heads/holdfast/it", "refs/heads/release")
    scene.work.write("src/f.py", _GOOD)
    done = scene.run("apply", "it")
    assert "refers to another branch" in done.stderr
    assert scene.repo.git("rev-parse", "release") == old


@pytest.mark.parametrize("name", ["COMMIT_EDITMSG", "logs/HEAD", "index", "HEAD", "ORIG_HEAD"])
def test_apply_does_not_write_through_a_link(scene: Scene, name: str) -> None:
    target = os.path.join(scene.root, "precious")
    link = os.path.join(scene.admin, name)
    os.makedirs(os.path.dirname(link), exist_ok=True)
    content = b"precious\n"
    if os.path.exists(link) and name != "index":
        with open(link, "rb") as file:
            content = file.read()
    with open(target, "wb") as file:
        file.write(content)
    scene.work.write("src/f.py", _GOOD)
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(target, link)
    scene.run("apply", "it")
    with open(target, "rb") as file:
        assert file.read() == content
    if name not in ("index", "HEAD"):
        assert scene.repo.read("src/f.py") == _GOOD


@pytest.mark.parametrize("branch", ["main", "release"])
def test_apply_moves_no_branch_of_the_user_but_by_its_merge(scene: Scene, branch: str) -> None:
    scene.repo.git("branch", "release")
    old = scene.repo.git("rev-parse", "main").strip()
    scene.work.write("src/f.py", _GOOD)
    with open(os.path.join(scene.admin, "HEAD"), "w", encoding="utf-8") as file:
        file.write(f"ref: refs/heads/{branch}\n")
    done = scene.run("apply", "it")
    assert done.returncode == 0, done.stderr
    assert scene.repo.git("rev-parse", "release").strip() == old
    assert scene.repo.git("rev-parse", "main^1").strip() == old
    assert scene.repo.git("status", "--porcelain") == ""


def test_a_submodule_that_leads_to_the_project_is_not_committed(scene: Scene) -> None:
    old = scene.repo.git("rev-parse", "main")
    scene.work.write("src/sub/keep", "evil\n")
    scene.work.git("update-index", "--add", "--cacheinfo", f"160000,{old.strip()},src/sub")
    scene.work.write("src/sub/.git", f"gitdir: {scene.repo.path}/.git\n")
    done = scene.run("apply", "it")
    assert done.returncode != 0
    assert "not the submodule's own" in done.stderr
    assert scene.repo.git("rev-parse", "main") == old
    assert scene.repo.git("status", "--porcelain") == ""


#: What git writes for a merge in the git directory of the project; a repository from an archive can bring it
#: as links, with any target.
_OF_PROJECT = (
    *("MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", "MERGE_HEAD", "ORIG_HEAD", "SQUASH_MSG", "COMMIT_EDITMSG"),
    *("index", "logs/HEAD", "logs/refs/heads/main", "refs/heads/main", "logs/ORIG_HEAD"),
)


@pytest.mark.parametrize("name", _OF_PROJECT)
def test_a_merge_does_not_write_through_a_link_in_the_project_s_git_directory(
    scene: Scene, name: str
) -> None:
    target, link = os.path.join(scene.root, "precious"), os.path.join(scene.repo.path, ".git", name)
    content = b"precious\n"
    if name in ("index", "refs/heads/main"):
        with open(link, "rb") as file:
            content = file.read()
    with open(target, "wb") as file:
        file.write(content)
    scene.work.write("src/f.py", _GOOD)
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(target, link)
    done = scene.run("apply", "it")
    with open(target, "rb") as file:
        assert file.read() == content
    if name in ("MERGE_MSG", "MERGE_MODE", "AUTO_MERGE"):
        # A merge that was finished may have left them, so they are removed.
        assert done.returncode == 0, done.stderr
        assert not os.path.lexists(link)


@pytest.mark.parametrize("linked", ["refs/heads/feature", "logs/refs/heads/feature", "logs", "objects"])
def test_a_merge_does_not_write_through_a_linked_directory(scene: Scene, linked: str) -> None:
    scene.repo.git("checkout", "-q", "-b", "feature/x")
    scene.work.write("src/f.py", _GOOD)
    scene.work.git("commit", "-q", "-a", "-m", "work")
    folder, target = os.path.join(scene.repo.path, ".git", linked), os.path.join(scene.root, "elsewhere")
    os.rename(folder, target)
    os.symlink(target, folder)
    old = _files_in(target)
    done = scene.run("apply", "it")
    assert "is a symbolic link, which is not followed" in done.stderr
    assert _files_in(target) == old


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main"])
def test_a_reflog_that_is_a_hard_link_is_not_written(scene: Scene, name: str) -> None:
    """The reflog has the user's name, which the repository's own settings can choose."""
    settings, log = os.path.join(scene.root, ".bashrc"), os.path.join(scene.repo.path, ".git/logs", name)
    with open(settings, "w", encoding="utf-8") as file:
        file.write("mine\n")
    os.unlink(log)
    os.link(settings, log)
    scene.work.write("src/f.py", _GOOD)
    done = scene.run("apply", "it")
    with open(settings, encoding="utf-8") as file:
        assert file.read() == "mine\n"
    assert done.returncode == 3
    assert f"{log} is a hard link" in done.stderr
    os.unlink(log)
    assert scene.run("apply", "it").returncode == 0


def test_a_repository_writes_no_line_of_a_shell_s_settings(scene: Scene) -> None:
    """The reflog has the user's name, which the repository's own settings can choose."""
    settings = os.path.join(scene.root, ".bashrc")
    scene.repo.git("config", "user.name", "x;touch ${HOME}/evil;#")
    scene.repo.git("config", "user.email", "x@example.org")
    log = os.path.join(scene.repo.path, ".git/logs/HEAD")
    os.unlink(log)
    os.symlink(settings, log)
    scene.work.write("src/f.py", _GOOD)
    scene.run("apply", "it")
    assert not os.path.lexists(settings)


@pytest.mark.parametrize("name", ["ORIG_HEAD", "refs/heads/main"])
def test_a_merge_moves_no_branch_to_which_a_ref_refers(scene: Scene, name: str) -> None:
    scene.repo.git("branch", "release")
    scene.repo.commit("later")
    if name != "ORIG_HEAD":
        scene.repo.git("branch", "-f", "release")
    old = scene.repo.git("rev-parse", "release")
    scene.repo.write(f".git/{name}", "ref: refs/heads/release\n")
    scene.work.write("src/f.py", _GOOD)
    done = scene.run("apply", "it")
    assert scene.repo.git("rev-parse", "release") == old
    assert done.returncode == (0 if name == "ORIG_HEAD" else 3), done.stderr


@pytest.mark.parametrize("words", [("apply", "it"), ("rm", "--force", "it")])
def test_no_line_is_added_to_the_log_of_a_head_that_is_a_link(scene: Scene, words: tuple[str, ...]) -> None:
    """The project has the task's branch checked out, so git logs each move of it there, too."""
    precious = os.path.join(scene.root, "precious")
    with open(precious, "w", encoding="utf-8") as file:
        file.write("precious\n")
    scene.work.write("src/f.py", _GOOD)
    scene.work.git("commit", "-q", "-a", "-m", "work")
    if words[0] == "rm":
        scene.repo.git("merge", "-q", "holdfast/it")
    else:
        scene.work.write("src/g.py", _GOOD)
    log = os.path.join(scene.repo.path, ".git", "logs", "HEAD")
    os.unlink(log)
    os.symlink(precious, log)
    scene.repo.write(".git/HEAD", "ref: refs/heads/holdfast/it\n")
    scene.run(*words)
    with open(precious, encoding="utf-8") as file:
        assert file.read() == "precious\n"


def test_a_merge_of_the_user_that_is_not_finished_is_kept(scene: Scene) -> None:
    scene.repo.git("checkout", "-q", "-b", "other")
    scene.repo.write("keep", "theirs\n")
    scene.repo.commit()
    scene.repo.git("checkout", "-q", "main")
    scene.repo.write("keep", "ours\n")
    scene.repo.commit()
    scene.repo.git("merge", "other", ok=False)
    scene.repo.write("keep", "resolved by hand\n")
    scene.work.write("src/f.py", _GOOD)
    done = scene.run("apply", "it")
    assert done.returncode == 3
    assert "has an unfinished merge" in done.stderr
    assert scene.repo.read("keep") == "resolved by hand\n"
    assert os.path.exists(os.path.join(scene.repo.path, ".git/MERGE_HEAD"))


@pytest.mark.parametrize("linked", ["refs", "logs/refs"])
def test_the_commits_of_a_submodule_are_not_brought_through_a_link(scene: Scene, linked: str) -> None:
    inner = Repo(os.path.join(scene.root, "inner"))
    inner.commit("s")
    allow = ("-c", "protocol.file.allow=always", "submodule")
    scene.repo.git(*allow, "add", "-q", inner.path, "src/sub")
    scene.repo.git("commit", "-q", "-m", "sub")
    packet = packet_for(
        scene.home, scene.repo.path, task_id="other", workspace="worktree", scope_allow=("src/",)
    )
    atomic.write_json(packet.task_done, {"schema": "holdfast.done/1"}, durable=False)
    prepare(packet)
    work = Repo(os.path.join(scene.home, "worktrees", "other"), with_git=False)
    work.git(*allow, "update", "-q", "--init")
    sub = Repo(os.path.join(work.path, "src/sub"), with_git=False)
    sub.write("s", "new\n")
    sub.commit()
    work.git("commit", "-q", "-a", "-m", "work")
    target = os.path.join(scene.root, "elsewhere")
    os.mkdir(target)
    os.makedirs(os.path.join(scene.repo.path, ".git/modules/src/sub", linked, "heads"), exist_ok=True)
    os.symlink(target, os.path.join(scene.repo.path, ".git/modules/src/sub", linked, "heads/holdfast"))
    done = scene.run("apply", "other")
    assert "is a symbolic link, which is not followed" in done.stderr
    assert os.listdir(target) == []


def _files_in(top: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for folder, _, names in os.walk(top):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.join(folder, name)] = file.read()
    return found


def test_a_branch_of_an_agent_is_no_command_in_a_hint(scene: Scene) -> None:
    """People copy hints into their shell."""
    scene.work.git("checkout", "-q", "-b", "x;touch${IFS}ran;#")
    scene.work.write("src/f.py", _EVIL)
    scene.work.git("commit", "-q", "-a", "-m", "work")
    scene.repo.write("src/f.py", _GOOD)
    scene.repo.git("commit", "-q", "-a", "-m", "other")
    said = " ".join(scene.run("apply", "it").stderr.split())
    assert "'git merge 'x;touch${IFS}ran;#'' in" in said
