"""What a sandboxed agent plants in one attempt opens nothing in the next one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys

import pytest

import holdfast as holdfast_package
from holdfast import paths
from holdfast.errors import StorageError, UsageError
from holdfast.gates import room_commands
from holdfast.model.spec import SandboxSpec
from holdfast.sandbox import machine
from holdfast.sandbox.builder import SandboxBuilder
from holdfast.sandbox.mounts import command_line
from holdfast.sandbox.start import forbidden_in, start_of
from holdfast.workspace import git
from tests.support.repos import Repo, packet_for
from tests.support.tasks import Task, holdfast
from tests.support.tools import need_sandbox

pytestmark = pytest.mark.req("SBX-1")
RETRY = ("--max-retries", "1", "--base-interval", "0.1s", "--max-interval", "0.2s")
SECRET = "TOP-SECRET-KEY"


class User:
    """A user's home directory with a folder of programs and a key."""

    def __init__(self, root: str) -> None:
        self.path = os.path.join(root, "user")
        self.bin = self.make(".local/bin")
        self.key = self.write(".ssh/id_rsa", SECRET)
        self.env = {"HOME": self.path}

    def make(self, name: str) -> str:
        path = os.path.join(self.path, name)
        os.makedirs(path, exist_ok=True)
        return path

    def write(self, name: str, text: str) -> str:
        self.make(os.path.dirname(name))
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


@pytest.fixture
def user(home: str) -> User:
    need_sandbox()
    return User(os.path.dirname(home))


def test_a_git_link_that_an_agent_could_replace_is_refused(user: User) -> None:
    """The user's next git would run what the settings in its place name."""
    project = Repo(os.path.join(os.path.dirname(user.path), "project"))
    project.commit("file")
    os.rename(f"{project.path}/.git", f"{project.path}/real-git")
    os.symlink("real-git", f"{project.path}/.git")
    command = ("--", "sh", "-c", "rm .git; mkdir .git")
    done = holdfast("run", "--sandbox", *command, cwd=project.path, env=user.env)
    assert os.path.islink(f"{project.path}/.git")
    assert (done.returncode, ".git is a symbolic link" in done.stderr) == (2, True)
    builder = SandboxBuilder(env=user.env)
    with pytest.raises(UsageError, match="symbolic link"):
        builder.workspace(project.path, git.find(project.path), store=None)


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a", "sub/b")
    return repo


def ended(task: Task) -> Task:
    task.wait_for("completed", "failed", "abandoned", within_s=40)
    return task


# ── .git in the workspace ──


@pytest.mark.parametrize("flags", [("--worktree",), ()], ids=["worktree", "in place"])
def test_a_planted_git_directory_makes_nothing_writable(
    home: str, user: User, repo: Repo, flags: tuple[str, ...]
) -> None:
    script = f"""
        if [ ! -e .git ]; then
            mkdir -p .git/refs; echo 'ref: refs/heads/x' > .git/HEAD; ln -s {user.bin} .git/objects
            kill -SEGV $$
        fi
        touch {user.bin}/owned && echo ESCAPED; exit 0"""
    project = os.path.join(repo.path, "sub")
    task = ended(Task.shell(script, "--sandbox", *flags, *RETRY, project=project, env=user.env))
    assert [event["kind"] for event in task.events("attempt.opened")].count("agent") == 2, task.log()
    assert os.listdir(user.bin) == []


def test_a_repository_that_git_cannot_read_stays_read_only(home: str, user: User, repo: Repo) -> None:
    """Its submodules cannot be listed then; it still has hooks, which the user's git runs."""
    repo.write(".gitmodules", "")
    repo.write(".git/index", "broken")
    ended(Task.shell("touch .git/hooks/post-commit", "--sandbox", project=repo.path, env=user.env))
    assert not os.path.lexists(os.path.join(repo.path, ".git/hooks/post-commit"))


def test_a_planted_git_file_shows_nothing_that_is_hidden(home: str, user: User, repo: Repo) -> None:
    store = user.make(".ssh/store")
    for name in ("objects", "refs"):
        os.makedirs(os.path.join(store, name))
    user.write(".ssh/store/HEAD", SECRET)
    # Two tasks: the second one finds what the first one planted.
    project = os.path.join(repo.path, "sub")
    ended(Task.shell(f"echo 'gitdir: {store}' > .git", "--sandbox", project=project, env=user.env))
    task = ended(Task.shell(f"cat {store}/HEAD; exit 0", "--sandbox", project=project, env=user.env))
    assert SECRET not in task.log()


def test_a_link_in_the_place_of_the_project_makes_nothing_writable(home: str, user: User, repo: Repo) -> None:
    """Also if the agent has broken its private git data and is killed, as one that hangs: nothing has cleaned
    them then, and the worktree seems to have no repository."""
    script = f"""
        if [ ! -e /tmp/planted ]; then
            touch /tmp/planted; cd "$(git rev-parse --show-toplevel)"
            alternates=$(git rev-parse --git-common-dir)/objects/info/alternates
            mv sub other && ln -s {user.bin} sub; rm $alternates; mkdir -p $alternates/x
            echo ready; sleep 600
        fi
        touch {user.bin}/owned && echo ESCAPED; exit 0"""
    project = os.path.join(repo.path, "sub")
    task = Task.shell(script, "--sandbox", "--worktree", *RETRY, project=project, env=user.env)
    task.wait_for_log("ready")
    os.kill(task.agent_pid(), signal.SIGKILL)
    ended(task)
    assert len(task.attempts()) == 3  # with the preparation
    assert os.listdir(user.bin) == [], task.log()


# ── config homes ──


def test_links_in_a_private_config_home_open_nothing(home: str, user: User) -> None:
    user.write(".codex/auth.json", "{}")
    user.make(".codex/prompts")
    folder = os.path.join(os.path.dirname(home), "work", "bin")
    os.makedirs(folder)
    program = os.path.join(folder, "codex")
    with open(program, "w", encoding="utf-8") as file:
        file.write(f"""#!/bin/sh
            cd $CODEX_HOME
            if [ ! -e sessions ]; then
                mkdir sessions
                ln -sfn {user.bin} auth.json
                rm -rf prompts; ln -sfn {user.key} prompts
                kill -SEGV $$
            fi
            touch {user.bin}/owned; cat {user.key} prompts >&2; readlink auth.json >&2; exit 1""")
    os.chmod(program, stat.S_IRWXU)
    env = {**user.env, "PATH": f"{folder}:{os.environ['PATH']}"}
    task = ended(Task.start("--agent", "codex", "--sandbox", *RETRY, "do it", env=env))
    assert [event["kind"] for event in task.events("attempt.opened")].count("agent") == 2, task.log()
    assert os.listdir(user.bin) == []
    assert SECRET not in task.log()
    assert os.path.realpath(f"{user.path}/.codex/auth.json") in task.log()


LOGINS = {
    "pi": (".pi/agent", {"type": "api_key", "key": "sk-1"}, {"type": "api_key", "key": "!touch owned"}),
    "opencode": (".local/share/opencode", {"type": "api", "key": "sk-1"}, {"type": "wellknown", "key": "A"}),
}


@pytest.mark.parametrize("agent", LOGINS)
@pytest.mark.parametrize("is_renewed", [False, True])
def test_a_login_in_which_a_command_can_be_named_is_only_read(
    home: str, user: User, agent: str, is_renewed: bool
) -> None:
    """These programs run it, also outside. Only a login that expires must be written."""
    folder, login, planted = LOGINS[agent]
    if is_renewed:
        login, planted = {"type": "oauth", "access": "old"}, {"type": "oauth", "access": "new"}
    path = user.write(f"{folder}/auth.json", json.dumps({"one": login}))
    programs = os.path.join(os.path.dirname(home), "work", "bin")
    os.makedirs(programs)
    program = os.path.join(programs, agent)
    with open(program, "w", encoding="utf-8") as file:
        text = json.dumps({"one": planted})
        file.write(f"#!/bin/sh\ncat {path} >&2; echo '{text}' > {path}; exit 1\n")
    os.chmod(program, stat.S_IRWXU)
    env = {**user.env, "PATH": f"{programs}:{os.environ['PATH']}"}
    task = ended(
        Task.start("--agent", agent, "--sandbox", "--max-retries", "0", "--permissions", "full", "x", env=env)
    )
    assert json.dumps({"one": login}) in task.log()
    with open(path, encoding="utf-8") as file:
        assert json.load(file)["one"] == (planted if is_renewed else login)


# ── what is hidden or read-only in the workspace ──


@pytest.mark.parametrize("kept", ["home", "git"])
def test_a_folder_around_what_is_kept_cannot_be_exchanged(home: str, user: User, kept: str) -> None:
    """The user has the home of holdfast, or the git directory, in a folder of the project."""
    project = user.make("project")
    path = user.make("project/state/inner")
    if kept == "git":
        subprocess.run(["git", "init", "-q", "--separate-git-dir", path, project], check=True)
    env = {**user.env, **({"HOLDFAST_HOME": path} if kept == "home" else {})}
    script = "mv state old; mkdir -p state/inner; touch state/forged state/inner/forged; exit 0"
    done = holdfast("run", "--sandbox", "--", "sh", "-c", script, env=env, cwd=project)
    holdfast("down", "--now", env=env)
    assert done.returncode == 0, done.stderr
    assert not os.path.lexists(f"{project}/old")
    assert not os.path.lexists(os.path.join(path, "forged"))


# ── where something is mounted ──


def test_a_link_where_something_is_mounted_makes_nothing_outside(home: str, user: User) -> None:
    """The /tmp of a task survives its attempts. bwrap makes what is missing on the way to a mount, while the
    whole file system is below /oldroot."""
    root = os.path.dirname(home)
    script = f"""
        if [ ! -e /tmp/planted ]; then
            touch /tmp/planted; mv {root} /tmp/away && ln -s /oldroot{user.bin} {root}
            kill -SEGV $$
        fi
        echo SECOND; exit 0"""
    task = ended(Task.shell(script, "--sandbox", *RETRY, env=user.env))
    assert os.path.lexists(task.path("sandbox", "tmp", "away"))
    assert os.listdir(user.bin) == []
    assert "SECOND" in task.log()


@pytest.mark.parametrize("name", ["auth.json", "prompts"])
def test_a_link_in_a_folder_that_replaces_another_makes_nothing_outside(
    home: str, user: User, name: str
) -> None:
    """The user has made the file or folder since the first attempt."""
    user.write(".tool/auth.json", "{}")
    user.write(".tool/prompts/one", "text")
    private = user.make("private")
    os.symlink(f"/oldroot{user.bin}/created", os.path.join(private, name))
    builder = SandboxBuilder(env=user.env)
    builder.put(private, f"{user.path}/.tool")
    builder.read(f"{user.path}/.tool/{name}")
    box = builder.sandbox(bwrap=machine.path(), cwd="/", network=True)
    shown = ["ls", f"{user.path}/.tool/{name}"]
    done = subprocess.run(command_line(box, shown), capture_output=True, timeout=30, check=False)
    assert os.listdir(user.bin) == []
    assert done.returncode == 0, done.stderr


# ── objects and branches of the user's repository ──

COMMIT = "git -c user.name=A -c user.email=a@example.org commit -q"


def boxed(script: str, repo: Repo, user: User, *flags: str) -> Task:
    return ended(Task.shell(script, "--sandbox", "--worktree", *flags, project=repo.path, env=user.env))


def test_it_cannot_destroy_the_history(home: str, user: User, repo: Repo) -> None:
    before = repo.git("log", "--format=%H")
    boxed('rm -rf "$(git rev-parse --git-common-dir)"/objects/*; exit 0', repo, user)
    assert repo.git("log", "--format=%H") == before
    assert repo.git("fsck", "--strict") == ""


@pytest.mark.parametrize("how", ["loose", "commit"])
def test_a_forged_object_changes_no_content(home: str, user: User, repo: Repo, how: str) -> None:
    repo.write("check", "genuine\n")
    repo.commit()
    name = repo.git("rev-parse", "HEAD:check").strip()
    # An object with the name of `check` and another content; then a commit that needs a forged object.
    wanted = name if how == "loose" else "1" * 40
    forge = f"""
        o="$(git rev-parse --git-common-dir)"/objects/{wanted[:2]}; mkdir -p $o
        cat > $o/forge.py <<'END'
import sys, zlib
sys.stdout.buffer.write(zlib.compress(b"blob 5\\0evil\\n"))
END
        python3 $o/forge.py > $o/{wanted[2:]}
        git update-index --add --cacheinfo 100644,{wanted},check
        {COMMIT} -m forged; git log --oneline | wc -l"""
    task = boxed(forge, repo, user)
    assert repo.git("cat-file", "blob", name) == "genuine\n"
    assert repo.git("fsck", "--strict", "--no-dangling", "--no-reflogs") == ""
    assert repo.git("rev-list", "--objects", "--all", "--quiet") == "", task.log()


def test_its_commits_and_its_index_arrive(home: str, user: User, repo: Repo) -> None:
    script = f"""
        echo one > new; git add new; {COMMIT} -m one && echo two > new && {COMMIT} -am two
        {COMMIT} --amend -m last
        echo staged > other; git add other; git log --oneline | wc -l; git fsck"""
    task = boxed(script, repo, user)
    assert "3" in task.log().split(), task.log()
    branch = f"holdfast/{task.id}"
    assert repo.git("log", "--format=%s", branch).split() == ["last", "one", "work"]
    assert repo.git("show", f"{branch}:new") == "two\n"
    tree = Repo(os.path.join(home, "worktrees", task.id), with_git=False)
    assert repo.git("-C", tree.path, "diff", "--cached", "--name-only") == "other\n"
    assert repo.git("-C", tree.path, "show", ":other") == "staged\n"
    assert repo.git("fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize(
    "how", [("--depth", "1"), ("--filter=blob:none", "--sparse")], ids=["shallow", "partial"]
)
def test_commits_arrive_in_a_clone_that_is_not_whole(
    home: str, user: User, repo: Repo, how: tuple[str, ...]
) -> None:
    repo.write("deep/c", "other\n")
    repo.commit()
    repo.git("config", "uploadpack.allowFilter", "true")
    path = os.path.join(os.path.dirname(home), "clone")
    repo.git("-c", "protocol.file.allow=always", "clone", "-q", *how, f"file://{repo.path}", path)
    clone = Repo(path, with_git=False)
    task = boxed(f"echo one > new; git add new; {COMMIT} -m one; git status --short", clone, user)
    assert clone.git("log", "-1", "--format=%s", f"holdfast/{task.id}") == "one\n", task.log()


def test_it_goes_on_with_its_commits_after_a_kill(home: str, user: User, repo: Repo) -> None:
    script = f"""
        if [ -e new ]; then git log --format=%s; echo two > new; {COMMIT} -am two; exit 0; fi
        echo one > new; git add new; {COMMIT} -m one; kill -SEGV $$"""
    task = boxed(script, repo, user, *RETRY)
    assert task.log().split()[-2:] == ["one", "work"]
    assert repo.git("log", "--format=%s", f"holdfast/{task.id}").split() == ["two", "one", "work"]


def test_apply_brings_what_a_kill_has_prevented(home: str, user: User, repo: Repo) -> None:
    script = f"echo one > new; git add new; {COMMIT} -m one; echo ready; sleep 600"
    flags = ("--sandbox", "--worktree", "--max-retries", "0")
    task = Task.shell(script, *flags, project=repo.path, env=user.env)
    task.wait_for_log("ready")
    os.kill(task.agent_pid(), signal.SIGKILL)
    task.wait_for("abandoned")
    assert repo.git("log", "--format=%s", f"holdfast/{task.id}").split() == ["work"]
    done = holdfast("apply", task.id)
    assert done.returncode == 0, done.stderr
    assert repo.read("new") == "one\n"
    assert "one" in repo.git("log", "--format=%s").split()


def test_links_in_its_objects_lead_nowhere(home: str, user: User, repo: Repo) -> None:
    other = Repo(os.path.join(os.path.dirname(home), "other"))
    other.write("secret", SECRET)
    commit = other.commit()
    objects = os.path.join(other.path, ".git", "objects")
    script = f"""
        o="$(git rev-parse --git-common-dir)"/objects
        for i in {objects}/??; do rm -rf $o/$(basename $i); ln -s $i $o/; done
        echo {objects} > $o/info/alternates
        echo {commit} > $(git rev-parse --git-common-dir)/refs/heads/holdfast/$HOLDFAST_TASK; exit 0"""
    task = boxed(script, repo, user)
    assert repo.git("rev-parse", f"holdfast/{task.id}") == repo.git("rev-parse", "main")
    assert repo.git("cat-file", "-t", commit, ok=False) == ""


def test_the_branch_of_another_task_cannot_be_changed(home: str, user: User, repo: Repo) -> None:
    good = boxed(f"echo good > new; git add new; {COMMIT} -m good", repo, user)
    branch = f"refs/heads/holdfast/{good.id}"
    before = repo.git("rev-parse", branch)
    boxed(
        f"git update-ref {branch} HEAD; git update-ref -d {branch}; rm -f .git/{branch}; exit 0", repo, user
    )
    assert repo.git("rev-parse", branch) == before


# ── what is hidden ──


def test_no_other_home_is_visible(home: str, user: User) -> None:
    others = [user.make(f".local/state/{name}") for name in ("holdfast", "second")]
    for name in ("holdfast", "second"):
        user.write(f".local/state/{name}/tasks/day/env.json", SECRET)
        user.make(f".local/state/{name}/projects")
    script = f"ls {' '.join(others)}; cat {' '.join(f'{path}/tasks/*/env.json' for path in others)}; exit 0"
    task = ended(Task.shell(script, "--sandbox", env=user.env))
    assert SECRET not in task.log()
    assert "tasks" not in task.log().split()


def test_sockets_that_variables_name_are_closed(home: str, user: User) -> None:
    folder = user.make("sockets")
    with contextlib.ExitStack() as stack:
        for name in ("agent", "docker", "bus"):
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(f"{folder}/{name}")
            server.listen(1)
        env = {
            **user.env,
            "SSH_AUTH_SOCK": f"{folder}/agent",
            "DOCKER_HOST": f"unix://{folder}/docker",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={folder}/bus,guid=12",
        }
        connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('CONNECTED')"
        script = f'for i in agent docker bus; do {sys.executable} -c "{connect}" {folder}/$i; done; exit 0'
        task = ended(Task.shell(script, "--sandbox", env=env))
        assert "CONNECTED" not in task.log()
        assert task.log().count("ConnectionRefusedError: ") == 3, task.log()


@pytest.mark.parametrize("plant", ["rm lib/.git; git init -q lib", "mv lib lib2; git init -q lib"])
@pytest.mark.parametrize("is_checked_out", [True, False], ids=["checked out", "empty"])
def test_a_submodule_gets_no_other_git(home: str, user: User, plant: str, is_checked_out: bool) -> None:
    root = os.path.dirname(home)
    Repo(os.path.join(root, "lib")).commit("l")
    repo = Repo(os.path.join(root, "project"))
    repo.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", os.path.join(root, "lib"), "lib")
    repo.commit()
    if not is_checked_out:
        repo.git("submodule", "-q", "deinit", "-f", "lib")
    before = sorted(os.listdir(os.path.join(repo.path, "lib")))
    script = f"{plant}; git -C lib config core.fsmonitor ./evil; echo new > lib/file; exit 0"
    ended(Task.shell(script, "--sandbox", project=repo.path, env=user.env))
    after = sorted({*os.listdir(os.path.join(repo.path, "lib"))} - {"file"})
    assert after == before
    assert not os.path.isdir(os.path.join(repo.path, "lib", ".git"))
    assert not os.path.exists(os.path.join(repo.path, "lib2"))


def test_a_forbidden_path_stays_hidden_after_a_rename(home: str, user: User) -> None:
    project = Repo(os.path.join(os.path.dirname(home), "project"), with_git=False)
    project.write("conf/prod.json", SECRET)
    packet, patterns = packet_for(home, project.path), ("conf/prod.json",)
    os.makedirs(packet.sandbox)
    said: list[str] = []
    for script in ("cat conf/prod.json; mkdir .git; mv conf .git/new; echo moved", "ls .git; cat .git/*/*"):
        start = start_of(packet, project.path, patterns)
        builder = SandboxBuilder(env=user.env)
        builder.workspace(project.path, start.repository, store=None)
        found = forbidden_in(project.path, patterns, known=start.forbidden, has_git=start.has_git)
        builder.forbid(*found)
        box = builder.sandbox(bwrap=machine.require(), cwd=project.path, network=True)
        command = command_line(box, ["sh", "-c", script])
        said.append(subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout)
    assert said == ["moved\n", "new\n"]


def test_holdfast_in_the_project_is_not_changed_by_the_agent(user: User, repo: Repo) -> None:
    """Installed in its `.venv`: what the agent wrote there would run outside."""
    venv = os.path.join(repo.path, "tools", ".venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=60)
    (version,) = os.listdir(os.path.join(venv, "lib"))
    packages = os.path.join(venv, "lib", version, "site-packages")
    source = os.path.dirname(os.path.dirname(holdfast_package.__file__))
    with open(os.path.join(packages, "holdfast.pth"), "w", encoding="utf-8") as file:
        file.write("\n".join([source, *(path for path in sys.path if path.endswith("site-packages"))]))
    words = [f"echo 'import os' > {packages}/evil.pth", f"echo x >> {packages}/holdfast.pth"]
    words += [f"echo x > {venv}/pyvenv.cfg", f"rm {venv}/bin/python", f"mv {venv} {venv}2"]
    words += ["mv tools tools2", "mkdir -p tools2"]
    tries = "; ".join(f"({word}) 2> /dev/null && echo 'done: {number}'" for number, word in enumerate(words))
    done = subprocess.run(
        [
            os.path.join(venv, "bin", "python"),
            "-m",
            "holdfast",
            "run",
            "--sandbox",
            "--id",
            "it",
            "--",
            "sh",
            "-c",
            f"{tries}; echo more > a",
        ],
        cwd=repo.path,
        env={**os.environ, **user.env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    log = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it")).log()
    assert [line for line in log.splitlines() if line.startswith("done")] == ["done: 6"], log
    assert repo.read("a") == "more\n"


def test_no_planted_bwrap_if_the_real_one_was_removed(
    home: str, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two attempts: the next one would be outside."""
    monkeypatch.setattr(machine, "_SYSTEM", "/nonexistent")
    monkeypatch.setenv("PATH", f"{repo.path}:{os.environ['PATH']}")
    ran = os.path.join(os.path.dirname(home), "ran")
    os.chmod(repo.write("bwrap", f"#!/bin/sh\necho $* >> {ran}\n"), stat.S_IRWXU)
    packet = packet_for(home, repo.path)
    setting = room_commands.in_sandbox(room_commands.in_place(repo.path), packet, SandboxSpec())
    command = [*setting.before, "/bin/true"]
    subprocess.run(command, cwd=repo.path, capture_output=True, timeout=60, check=False)
    assert not os.path.exists(ran)


# ── the record of the start ──


def test_a_record_of_the_start_that_cannot_be_admitted_is_a_storage_error(home: str, repo: Repo) -> None:
    packet = packet_for(home, repo.path)
    os.makedirs(packet.sandbox)
    os.chmod(paths.trust_dir(), 0o777)
    with pytest.raises(StorageError, match="cannot write"):
        start_of(packet, repo.path, ())


@pytest.mark.parametrize(
    "record",
    [
        {"repository": None, "submodules": [], "has_git": False, "forbidden": []},
        {"repository": {"top": "/", "git_dir": "/root", "common_dir": "/root"}, "has_git": 7},
        ["no", "record"],
    ],
)
def test_a_planted_record_of_the_start_opens_nothing(
    home: str, user: User, monkeypatch: pytest.MonkeyPatch, record: object
) -> None:
    """Before the first attempt, by an agent of another task that has no sandbox."""
    project = Repo(os.path.join(os.path.dirname(home), "project"))
    project.commit("a")
    os.makedirs(os.path.join(project.path, ".git", "hooks"), exist_ok=True)
    hook = os.path.join(project.path, ".git", "hooks", "pre-commit")
    assert holdfast("queue", "pause").returncode == 0
    command = ("submit", "--id", "it", "--sandbox", "--", "sh", "-c", f"echo evil > {hook}; touch done")
    done = holdfast(*command, cwd=project.path, env={**user.env, "HOLDFAST_KEEPER": "off"})
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(home, "tasks", "it"))
    os.makedirs(task.path("sandbox"), exist_ok=True)
    with open(task.path("sandbox", "start.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.sandbox/1", "workspaces": {project.path: record}}, file)
    assert holdfast("queue", "resume", env={"HOLDFAST_KEEPER": "off"}).returncode == 0
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    task.wait_for("completed", "interrupted", "failed", within_s=40)
    assert os.path.exists(os.path.join(project.path, "done")), task.log()
    assert not os.path.exists(hook)
