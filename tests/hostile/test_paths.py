"""Nothing that an agent can write chooses a path that we delete, write, follow or execute."""

from __future__ import annotations

import json
import os

import pytest

from holdfast import spawn
from holdfast.model.status import Status
from holdfast.store import atomic
from holdfast.store.layout import Packet
from tests.support.repos import Repo, judge, packet_for, prepare, report
from tests.support.tasks import Task, holdfast

PRECIOUS = "precious\n"


class Victim:
    """A directory of the user that belongs to no task."""

    def __init__(self, root: str) -> None:
        self.path = os.path.join(root, "victim")
        self.file = os.path.join(self.path, "file")
        os.makedirs(self.path)
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(PRECIOUS)
        os.chmod(self.file, 0o640)

    def is_unharmed(self) -> bool:
        with open(self.file, encoding="utf-8") as file:
            text = file.read()
        return (os.listdir(self.path), text, os.stat(self.file).st_mode & 0o777) == (
            ["file"],
            PRECIOUS,
            0o640,
        )


@pytest.fixture
def victim(home: str) -> Victim:
    return Victim(os.path.dirname(home))


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a", "src/b")
    return repo


def ended(packet: Packet) -> Packet:
    atomic.write_json(packet.task_done, {"schema": "holdfast.done/1"}, durable=False)
    return packet


def forge(record: str, /, **changes: object) -> None:
    """Change fields of a JSON file."""
    with open(record, encoding="utf-8") as file:
        data = json.load(file)
    with open(record, "w", encoding="utf-8") as file:
        json.dump({**data, **changes}, file)


# ── records in the packet ──


@pytest.mark.parametrize("what", ["path", "common_dir", "everything", "nonsense"])
def test_a_forged_worktree_record_deletes_nothing(home: str, repo: Repo, victim: Victim, what: str) -> None:
    packet = packet_for(home, repo.path, workspace="worktree", status=Status.COMPLETED)
    prepare(packet)
    other = Repo(os.path.join(os.path.dirname(home), "other"))
    other.commit("f")
    other.git("worktree", "add", "-q", os.path.join(os.path.dirname(home), "theirs"))
    # An agent can also make the repository of the record say that the victim is its worktree.
    admin = os.path.join(repo.path, ".git", "worktrees", "it")
    match what:
        case "path":
            forge(packet.worktree, path=victim.path)
            atomic.write(os.path.join(admin, "gitdir"), f"{victim.path}/.git\n".encode(), durable=False)
        case "common_dir":
            forge(packet.worktree, common_dir=os.path.join(home, "nowhere"), path=victim.path)
        case "everything":
            forge(
                packet.worktree,
                path=os.path.join(os.path.dirname(home), "theirs"),
                main=other.path,
                common_dir=os.path.join(other.path, ".git"),
            )
        case _:
            forge(packet.worktree, path=7, common_dir=[], branch=None)
    ended(packet)
    for row in (("show", "it"), ("apply", "it"), ("archive", "it"), ("rm", "it"), ("rm", "--force", "it")):
        done = holdfast(*row)
        assert done.returncode != 70, (row, done.stderr)
        assert victim.is_unharmed(), row
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(packet.path)
    assert not os.path.exists(os.path.join(home, "worktrees", "it"))
    assert other.git("worktree", "list").count("\n") == 2
    assert Repo(os.path.join(os.path.dirname(home), "theirs"), with_git=False).read("f") == "text\n"


def test_the_data_of_another_worktree_is_not_deleted(home: str, repo: Repo) -> None:
    """An agent can mark any worktree of its repository as that of the task."""
    packet = ended(packet_for(home, repo.path, workspace="worktree", status=Status.COMPLETED))
    prepare(packet)
    theirs = os.path.join(os.path.dirname(home), "theirs")
    repo.git("worktree", "add", "-q", theirs)
    admin = os.path.join(repo.path, ".git", "worktrees")
    atomic.write(
        os.path.join(admin, "theirs", "gitdir"), f"{home}/worktrees/it/.git\n".encode(), durable=False
    )
    os.rename(os.path.join(admin, "it"), os.path.join(admin, "zz"))
    assert holdfast("rm", "--force", "it").returncode == 0
    assert os.path.exists(os.path.join(admin, "theirs", "HEAD"))


def test_a_forged_base_reverts_nothing_elsewhere(home: str, repo: Repo, victim: Victim) -> None:
    packet = packet_for(home, repo.path, scope_allow=("src/",), revert_out_of_scope=True)
    prepare(packet)
    place = {"directory": victim.path, "top": victim.path, "prefix": "", "git_dir": None, "common_dir": None}
    forge(packet.workspace_base, kind="worktree", place=place)
    report(packet, "done\n")
    code, said = judge(packet)
    assert (code, victim.is_unharmed()) == (3, True)
    assert "does not fit the task" in said["stderr"]


def test_a_link_in_place_of_the_trees_is_not_written_through(home: str, repo: Repo, victim: Victim) -> None:
    packet = packet_for(home, repo.path, scope_allow=(".",))
    prepare(packet)
    for name in ("git", "indexes"):
        path = os.path.join(packet.workspace, name)
        os.rename(path, path + ".away")
        os.symlink(victim.path, path)
    repo.write("src/b", "changed\n")
    report(packet, "done\n")
    assert judge(packet)[0] == 3
    assert victim.is_unharmed()


# ── links in the packet ──


def test_no_directory_of_the_packet_leads_out_of_it(home: str, victim: Victim) -> None:
    script = f"""
        cd "$HOLDFAST_PACKET"
        for name in outputs state done inbox; do
            mv $name $name.away; ln -s {victim.path} $name
        done
    """
    task = Task.shell(script, "--id", "it")
    task.wait_for("completed", "failed", within_s=30)
    assert victim.is_unharmed()
    holdfast("interrupt", "it", "-m", "x")
    holdfast("retry", "it")
    task.wait_for("completed", "failed", within_s=30)
    assert victim.is_unharmed()
    assert holdfast("rm", "--force", "it").returncode == 0
    assert victim.is_unharmed()


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_the_log_of_a_runner_is_not_written_through_a_link(home: str, victim: Victim, kind: str) -> None:
    log = os.path.join(home, "runner.log")
    os.symlink(victim.file, log) if kind == "symbolic" else os.link(victim.file, log)
    pid = os.fork()
    if not pid:
        # As every runner and keeper begins.
        spawn.become_detached(log=log)
        os.write(2, b"a traceback\n")
        os._exit(0)
    os.waitpid(pid, 0)
    assert victim.is_unharmed()
    with open(log, encoding="utf-8") as file:
        assert file.read() == "a traceback\n"


def test_a_bell_that_is_a_link_is_not_rung(home: str, victim: Victim) -> None:
    task = Task.shell("while ! test -e go; do sleep 0.05; done", "--id", "it")
    task.wait_for("running")
    os.unlink(task.path("bell"))
    os.symlink(victim.file, task.path("bell"))
    holdfast("stop", "it")
    task.wait_for("killed", within_s=30)
    assert victim.is_unharmed()


# ── notes in the project ──


@pytest.mark.parametrize("way", ["docs", "sessions", "setting", "manifest", "summary"])
def test_session_notes_stay_in_the_project(home: str, victim: Victim, way: str) -> None:
    project = os.path.join(os.path.dirname(home), "project")
    os.makedirs(project)
    task = Task.shell("true", "--id", "it", project=project)
    task.wait_for("completed")
    match way:
        case "docs":
            os.symlink(victim.path, os.path.join(project, "docs"))
        case "sessions":
            os.makedirs(os.path.join(project, "docs"))
            os.symlink(victim.path, os.path.join(project, "docs", "sessions"))
        case "setting":
            os.makedirs(os.path.join(project, ".holdfast"))
            with open(os.path.join(project, ".holdfast", "config.toml"), "w", encoding="utf-8") as file:
                file.write('knowledge = "../victim/new"\n')
        case "manifest":
            forge(task.path("manifest.json"), project_dir=victim.path)
        case _:
            os.unlink(task.path("outputs", "_summary.md"))
            os.symlink(victim.file, task.path("outputs", "_summary.md"))
    done = holdfast("archive", "it", "--notes", cwd=project)
    assert done.returncode != 70, done.stderr
    assert victim.is_unharmed()
    for folder, _, names in os.walk(project):
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                assert PRECIOUS not in file.read()


def test_an_item_in_a_folder_is_no_file_outside(home: str) -> None:
    folder = os.path.join(os.path.dirname(home), "items")
    secret = os.path.join(os.path.dirname(home), "credentials")
    os.makedirs(folder)
    with open(secret, "w", encoding="utf-8") as file:
        file.write("correct horse\n")
    os.symlink(secret, os.path.join(folder, "leak.md"))
    os.mkfifo(os.path.join(folder, "pipe.md"))
    with open(os.path.join(folder, "fine.md"), "w", encoding="utf-8") as file:
        file.write("# Fine\n\nDo it.\n")
    imported = holdfast("queue", "import", folder)
    said = imported.stdout + imported.stderr
    assert "leak.md: a link to a file outside" in imported.stderr
    assert "pipe.md: not a regular file" in imported.stderr
    assert "fine: neither an agent nor a command was given" in said
    assert "correct horse" not in said


@pytest.mark.parametrize("has_git", [True, False], ids=["git", "git-removed"])
@pytest.mark.parametrize("how", ["file", "missing file", "folder"])
def test_a_page_is_not_written_where_a_link_in_a_project_leads(
    home: str, repo: Repo, how: str, has_git: bool
) -> None:
    """The usual names of pages can be guessed: an agent may have put a link there, and removed `.git`."""
    holdfast("run", "--id", "it", "--", *(["true"] if has_git else ["mv", ".git", ".gone"]), cwd=repo.path)
    outside = os.path.join(os.path.dirname(home), "outside")
    os.mkdir(outside)
    target = os.path.join(outside, "page.html")
    if how == "file":
        with open(target, "w", encoding="utf-8") as file:
            file.write("precious\n")
    if how == "folder":
        os.symlink(outside, os.path.join(repo.path, "out"))
    else:
        os.symlink(target, os.path.join(repo.path, "page.html"))
    name = "out/page.html" if how == "folder" else "page.html"
    new = ("new", f"{name}/it", "--agent", "scripted", "--intent", "review_only", "--goal", "x")
    for words in (("report", "--html", name), ("share", "it", "-o", name, "--force"), new):
        done = holdfast(*words, cwd=repo.path)
        assert done.returncode == 3, done.stdout
        assert "leads out of" in done.stderr
    assert os.listdir(outside) == (["page.html"] if how == "file" else [])
    if how == "file":
        with open(target, encoding="utf-8") as file:
            assert file.read() == "precious\n"
