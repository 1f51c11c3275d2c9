"""No program of our own choice is taken from a directory of PATH in which an agent may write."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from holdfast import clock, ids, paths, program_search
from holdfast.gates import cannot_start, room_commands, script
from holdfast.store import projects
from holdfast.store.layout import Home
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, trust
from tests.support.terminal import Terminal
from tests.support.waiting import eventually

PROGRAMS = (
    "tmux", "systemctl", "loginctl", "launchctl", "notify-send", "osascript", "bash", "sh", "env", "true",
    "git", "gh", "bd", "ps", "bwrap", "claude", "codex", "systemd-inhibit", "cat", "tell-me", "node",
)  # fmt: skip


class Planted:
    """A project with programs in directories that are in PATH."""

    def __init__(self, root: str, folder: str) -> None:
        self.repo = Repo(os.path.join(root, "project"))
        self.repo.write("src/a", "a\n")
        self.repo.commit("src/a")
        self.folder = os.path.join(self.repo.path, folder)
        self._ran = os.path.join(root, "ran")
        os.makedirs(self.folder, exist_ok=True)
        for name in PROGRAMS:
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\necho "{name} $*" >> {self._ran}\nexit 0\n')
            os.chmod(path, stat.S_IRWXU)
        self.env = {"PATH": f"{self.folder}:{os.environ['PATH']}"}

    @property
    def ran(self) -> list[str]:
        if not os.path.exists(self._ran):
            return []
        with open(self._ran, encoding="utf-8") as file:
            return file.read().splitlines()


@pytest.fixture(params=[".venv/bin", "node_modules/.bin", "tools"])
def planted(home: str, request: pytest.FixtureRequest) -> Planted:
    return Planted(os.path.dirname(home), request.param)


VERBS = [
    ("doctor",), ("service", "status"), ("agent", "list"), ("agent", "probe", "claude"), ("status",),
    ("ls",), ("service", "install", "--print"), ("pipeline", "list"), ("mcp", "install", "--for", "claude"),
]  # fmt: skip


def test_verbs_in_a_project_that_is_in_path(home: str, planted: Planted) -> None:
    record = {"schema": "holdfast.service/1", "home": home, "kind": "systemd", "unit": "holdfast.service"}
    with open(os.path.join(home, "service.json"), "w", encoding="utf-8") as file:
        json.dump(record, file)
    for below in ("", "src"):
        for verb in VERBS:
            holdfast(*verb, env=planted.env, cwd=os.path.join(planted.repo.path, below))
            assert planted.ran == [], verb


def test_a_keeper_is_started_through_no_planted_program(
    home: str, planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    record = {"schema": "holdfast.service/1", "home": home, "kind": "systemd", "unit": "holdfast.service"}
    with open(os.path.join(home, "service.json"), "w", encoding="utf-8") as file:
        json.dump(record, file)
    holdfast("run", "--id", "it", "--", "true", env=planted.env, cwd=planted.repo.path)
    holdfast("down", "--now", env=planted.env, cwd=planted.repo.path)
    # The task's own command is searched in the whole PATH: it is the user's.
    assert [line for line in planted.ran if not line.startswith("true")] == []


def test_attach_takes_no_planted_tmux(home: str, planted: Planted) -> None:
    """Also from another directory: the projects of tasks are known."""
    task = Task.start("--", "/bin/sleep", "60", project=planted.repo.path, env=planted.env)
    for cwd in (planted.repo.path, "/"):
        terminal = Terminal("attach", task.id, env=planted.env, cwd=cwd)
        terminal.read_until("sleep", within_s=20)
        assert terminal.detach() == 0
        assert planted.ran == []
    holdfast("stop", task.id, "--now")
    holdfast("down")
    assert planted.ran == []


def test_without_tmux_no_planted_one_is_run(home: str, planted: Planted) -> None:
    """Neither by the whole PATH, nor if there is a file in place of the socket."""
    installed = _installed(home, "nothing")
    os.makedirs(paths.trust_dir())
    with open(Home(home).tmux_socket, "w", encoding="utf-8"):
        pass
    env = {"PATH": f"{planted.folder}:{installed}"}
    holdfast("down", "--now", env=env, cwd=planted.repo.path)
    holdfast("doctor", env=env, cwd=planted.repo.path)
    assert planted.ran == []


@pytest.mark.parametrize("folder", [".venv/bin", "tools"])
def test_a_clean_room_is_tried_with_no_planted_program(home: str, folder: str) -> None:
    """An agent in a sandbox can write to `.venv/bin`, and bubblewrap searches in PATH."""
    planted = Planted(os.path.dirname(home), folder)
    task = Task.start(
        "--accept", "exit 0", "--", "/bin/sh", "-c", "date > b", project=planted.repo.path, env=planted.env
    )
    task.wait_for("completed", within_s=60)
    assert planted.ran == []


def test_no_program_of_the_project_of_another_task(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent of one task plants what holdfast would run for another, or for the home."""
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    planted = Planted(os.path.dirname(home), "tools")
    os.makedirs(os.path.dirname(paths.user_settings()), exist_ok=True)
    with open(paths.user_settings(), "w", encoding="utf-8") as file:
        file.write('[[notify]]\non = ["all"]\nto = "desktop"\n')
    env = {"PATH": f"{planted.env['PATH']}:{_installed(home, 'notify-send')}"}
    other = Repo(os.path.join(os.path.dirname(home), "other"))
    other.write("a", "a\n")
    other.commit("a")
    # The project is a directory in the repository.
    inside = os.path.join(planted.repo.path, "src")
    holdfast("run", "-q", "--id", "first", "--", "/bin/true", cwd=inside, env=env)
    words = ("--worktree", "--accept", "exit 0", "--", "/bin/sh", "-c", "date > b")
    holdfast("run", "-q", "--id", "second", *words, cwd=other.path, env=env)
    for verb in (("diff", "second"), ("show", "second"), ("doctor",), ("apply", "second"), ("rm", "second")):
        for cwd in (other.path, "/"):
            holdfast(*verb, cwd=cwd, env=env)
    eventually(lambda: _notices(home) == [])
    holdfast("down", "--now", cwd="/", env=env)
    assert planted.ran == []


def test_a_path_with_directories_of_the_project_only(home: str, planted: Planted) -> None:
    env = {"PATH": planted.folder}
    for verb in (("queue", "import", "gh:label=x"), ("queue", "import", "bd:"), ("doctor",)):
        # An empty PATH would mean the current directory.
        holdfast(*verb, env=env, cwd=planted.folder)
    assert planted.ran == []


def test_notes_of_projects(home: str) -> None:
    """They are found by `program_search`, and those of removed directories are forgotten some day."""
    here = Home(home)
    for number in range(projects._MANY + 2):
        folder = os.path.join(os.path.dirname(home), f"p{number}")
        os.makedirs(folder)
        projects.note(here, folder)
        if number:
            os.rmdir(folder)
    assert len(os.listdir(here.projects)) <= 3
    first = os.path.join(os.path.dirname(home), "p0")
    assert {home, first} <= program_search.projects_of_tasks()
    projects.note(here, "/")
    projects.note(here, os.path.expanduser("~"))
    assert not {"/", os.path.expanduser("~")} & program_search.projects_of_tasks()


@pytest.mark.parametrize("is_writable", [True, False])
def test_forged_notes_of_projects(home: str, is_writable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent writes them below the home, so that no git is found any more."""
    here, root = Home(home), os.path.dirname(home)
    if not is_writable:  # such as the read-only settings of a container
        monkeypatch.setenv("XDG_CONFIG_HOME", "/proc/1/nowhere")
    mine, tools = os.path.join(root, "mine"), os.path.join(root, "tools")
    for folder in (mine, tools):
        os.mkdir(folder)
    projects.note(here, mine)
    git = program_search.find("git")
    assert git is not None
    program = os.path.join(tools, "program")
    os.symlink("/bin/true", program)
    forged = (git, os.path.dirname(git), os.path.realpath(git), "/usr/bin", "/bin", program, tools)
    for number, path in enumerate(forged):
        with open(os.path.join(here.projects, f"{number:032}"), "w", encoding="utf-8") as file:
            file.write(path)
    assert program_search.find("git") == git
    # In the home, nothing tells a forged note of a directory from a genuine one.
    assert program_search.projects_of_tasks() == {home, mine, *(() if is_writable else (tools,))}


def _installed(home: str, name: str) -> str:
    """A directory with a program of the user that does nothing."""
    folder = os.path.join(os.path.dirname(home), "installed")
    os.makedirs(folder)
    os.symlink("/bin/true", os.path.join(folder, name))
    return folder


def _delivered(home: str, project: str, rule: dict[str, Any], env: dict[str, str]) -> str:
    """Deliver a notice of a task in this project. Returns its file, which stays if that failed."""
    notice = {
        "schema": "holdfast.notice/1", "id": ids.new_ulid(), "at": clock.iso_now(), "event": "completed",
        "task_id": "x", "text": "x", "project_dir": project, "rule": {"on": ["all"], **rule},
        "tries": 0, "next_at": None, "after": None, "error": None,
    }  # fmt: skip
    path = os.path.join(home, "notice.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(notice, file)
    argv = [sys.executable, "-m", "holdfast.notify", path]
    subprocess.run(argv, env={**os.environ, **env}, cwd="/", capture_output=True, timeout=60, check=False)
    return path


def _notices(home: str) -> list[str]:
    return [name for name in os.listdir(os.path.join(home, "outbox")) if len(name) > 30]


@pytest.mark.parametrize(
    "rule", ['to = "desktop"', 'to = "command"\nargv = ["tell-me"]'], ids=["desktop", "command"]
)
def test_a_notice_is_shown_by_no_planted_program(home: str, planted: Planted, rule: str) -> None:
    good = _installed(home, "tell-me")
    os.makedirs(os.path.dirname(paths.user_settings()), exist_ok=True)
    with open(paths.user_settings(), "w", encoding="utf-8") as file:
        file.write(f'[[notify]]\non = ["all"]\n{rule}\n')
    path = _delivered(home, planted.repo.path, tomllib.loads(rule), {"PATH": f"{planted.env['PATH']}:{good}"})
    assert planted.ran == []
    assert "desktop" in rule or not os.path.exists(path), "it was delivered by the user's own"


def test_the_shell_of_a_gate_is_not_the_agents(home: str, planted: Planted) -> None:
    """Its `bash` would pass every check."""
    planted.repo.write(".holdfast/config.toml", 'post_work = ["exit 7"]\n')
    trust(planted.repo.path)
    task = Task.start("--", "/bin/true", project=planted.repo.path, env=planted.env)
    found = task.wait_for("interrupted", within_s=40)
    assert "exit status 7" in json.dumps(found)
    assert planted.ran == []


def test_a_shell_for_the_syntax_of_a_script(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", planted.env["PATH"])
    monkeypatch.chdir(planted.repo.path)
    assert script.commands("echo a\necho b") == ("echo a", "echo b")
    assert planted.ran == []


def test_where_programs_are_searched(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = os.path.dirname(home)
    project = os.path.join(root, "project")
    user = os.environ["HOME"]
    good = [os.path.join(root, "bin"), os.path.join(user, ".local", "bin"), "/usr/bin"]
    bad = [
        os.path.join(project, "bin"), os.path.join(root, "other", "node_modules", ".bin"),
        os.path.join(root, "venv", "bin"), ".", "", "bin",
    ]  # fmt: skip
    for folder in (*good, *bad):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    os.makedirs(os.path.join(project, ".git"))
    os.makedirs(os.path.join(project, "a", "b"))
    with open(os.path.join(root, "venv", "pyvenv.cfg"), "w", encoding="utf-8"):
        pass
    link = os.path.join(root, "link")
    os.symlink(os.path.join(project, "bin"), link)
    monkeypatch.setenv("PATH", os.pathsep.join((*bad, link, *good)))
    monkeypatch.chdir(os.path.join(project, "a", "b"))
    assert program_search.search_path().split(os.pathsep) == good
    # A repository around the user's home directory (dotfiles) is no reason to lose ~/.local/bin.
    os.makedirs(os.path.join(user, ".git"))
    monkeypatch.chdir(user)
    assert good[1] in program_search.search_path().split(os.pathsep)


@pytest.mark.parametrize("way", ["itself", "folder above", "chain"])
def test_a_directory_of_a_project_that_an_agent_replaced_by_a_link(home: str, way: str) -> None:
    """The link leads to a directory that belongs to no project: it is still the agent's."""
    root = os.path.dirname(home)
    planted, away = Planted(root, "tools/x"), os.path.join(root, "away")
    place = os.path.dirname(planted.folder)
    Task.start("--", "/bin/true", project=planted.repo.path).wait_for("completed", within_s=30)
    os.rename(planted.folder if way == "itself" else place, away)
    os.symlink(away, planted.folder if way == "itself" else place)
    entry = planted.folder
    if way == "chain":
        entry = os.path.join(root, "own")
        os.symlink(os.path.join(place, "x"), entry)
    env = {"PATH": f"{entry}:{os.environ['PATH']}"}
    for verb in (("doctor",), ("agent", "probe", "claude"), ("service", "status")):
        holdfast(*verb, cwd="/", env=env)
        assert planted.ran == [], verb


def test_a_gate_asks_no_planted_git_what_is_missing(home: str) -> None:
    """A command that cannot start: git says whether the file would be a part of the work."""
    planted = Planted(os.path.dirname(home), "tools")
    planted.repo.commit("tools/git")
    words = ("-q", "--max-retries", "0", "--accept", "./gone.sh", "--", "/bin/sh", "-c", "date > b")
    done = holdfast("run", *words, cwd=planted.repo.path, env=planted.env)
    assert done.returncode != 0
    assert planted.ran == []


def test_a_program_that_is_a_link_into_a_project(home: str) -> None:
    """Who develops a program may have linked it: what an agent builds there is not run by us."""
    root = os.path.dirname(home)
    planted, own = Planted(root, "tools"), os.path.join(root, "own")
    os.mkdir(own)
    for name in PROGRAMS:
        os.symlink(os.path.join(planted.folder, name), os.path.join(own, name))
    env = {"PATH": f"{own}:{os.environ['PATH']}"}
    Task.start("--", "/bin/true", project=planted.repo.path).wait_for("completed", within_s=30)
    other = Repo(os.path.join(root, "other"))
    other.commit("a")
    imports = [("queue", "import", source) for source in ("gh:label=x", "bd:")]
    for verb in (("doctor",), ("agent", "probe", "claude"), ("service", "status"), *imports):
        holdfast(*verb, cwd=other.path, env=env)
        assert planted.ran == [], verb


def test_a_program_does_not_start_in_the_project_to_tell_its_version(home: str) -> None:
    """Some runtimes read files of their directory before the program begins (`bunfig.toml`, `.env`)."""
    root = os.path.dirname(home)
    repo, programs = Repo(os.path.join(root, "project")), os.path.join(root, "programs")
    repo.commit("a")
    os.mkdir(programs)
    path, where = os.path.join(programs, "claude"), os.path.join(root, "where")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\npwd -P >> {where}\necho 2.0.0\n")
    os.chmod(path, stat.S_IRWXU)
    env = {"PATH": f"{programs}:{os.environ['PATH']}"}
    for words in (("agent", "probe", "claude"), ("agent", "list"), ("doctor",)):
        holdfast(*words, env=env, cwd=repo.path)
    with open(where, encoding="utf-8") as file:
        assert set(file.read().split()) == {"/"}


@pytest.mark.parametrize("way", ["notice", "task"])
def test_a_planted_notifier_is_not_run_if_the_users_own_is_hidden(home: str, way: str) -> None:
    """By what an agent can write, or by a task that it starts in the directory of the user's program."""
    planted = Planted(os.path.dirname(home), "tools")
    good = _installed(home, "tell-me")
    os.makedirs(os.path.dirname(paths.user_settings()), exist_ok=True)
    with open(paths.user_settings(), "w", encoding="utf-8") as file:
        file.write('[[notify]]\non = ["all"]\nto = "command"\nargv = ["tell-me"]\n')
    env = {"PATH": f"{planted.env['PATH']}:{good}"}
    holdfast("run", "-q", "--", "/bin/true", cwd=planted.repo.path, env=env)
    if way == "task":
        holdfast("run", "-q", "--project", good, "--", "/bin/true", cwd=planted.repo.path, env=env)
    project = good if way == "notice" else planted.repo.path
    path = _delivered(home, project, {"to": "command", "argv": ["tell-me"]}, env)
    assert planted.ran == []
    with open(path, encoding="utf-8") as file:
        assert "only in a directory of a project" in json.load(file)["error"]


def test_an_agent_that_removes_the_notes_of_projects(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper and a command elsewhere would take its programs."""
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    planted = Planted(os.path.dirname(home), "tools")
    command = f"rm -rf {home}/projects; touch removed; while [ ! -e go ]; do sleep 0.05; done"
    task = Task.start("--", "/bin/sh", "-c", command, project=planted.repo.path, env=planted.env)
    eventually(lambda: os.path.exists(os.path.join(planted.repo.path, "removed")), 20)
    for verb in (("doctor",), ("service", "status"), ("diff", task.id)):
        holdfast(*verb, cwd="/", env=planted.env)
    with open(os.path.join(planted.repo.path, "go"), "w", encoding="utf-8"):
        pass
    task.wait_for("completed", within_s=40)
    holdfast("down", "--now", cwd="/", env=planted.env)
    assert planted.ran == []


#: Programs of the user that are scripts: the system searches their interpreter in PATH.
SCRIPTS = ("claude", "tell-me", "gt", "notify-send", "tmux", "systemctl", "loginctl", "systemd-inhibit")


def test_no_planted_interpreter_runs_a_program_of_the_user(home: str, planted: Planted) -> None:
    programs = os.path.join(os.path.dirname(home), "programs")
    os.mkdir(programs)
    for name in SCRIPTS:
        with open(os.path.join(programs, name), "w", encoding="utf-8") as file:
            file.write("#!/usr/bin/env node\n")
        os.chmod(os.path.join(programs, name), stat.S_IRWXU)
    os.makedirs(os.path.dirname(paths.user_settings()), exist_ok=True)
    with open(paths.user_settings(), "w", encoding="utf-8") as file:
        for rule in ('to = "desktop"', 'to = "gt"', 'to = "command"\nargv = ["tell-me"]'):
            file.write(f'[[notify]]\non = ["all"]\n{rule}\n')
    env = {"PATH": f"{planted.folder}:{programs}:{os.environ['PATH']}"}
    for verb in (*VERBS, ("notify", "test")):
        holdfast(*verb, env=env, cwd=planted.repo.path)
        assert planted.ran == [], verb


def _program(folder: str, name: str, text: str) -> None:
    """A program of the user."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, stat.S_IRWXU)


@pytest.mark.parametrize("line", ["{}/bash", "/usr/bin/env {}/bash"])
def test_a_script_whose_interpreter_is_in_a_project(home: str, planted: Planted, line: str) -> None:
    """A copy of a script that was installed in the project's environment."""
    own = os.path.join(os.path.dirname(home), "own")
    for name in ("claude", "tell-me", "gh", "git", "tmux", "systemctl"):
        _program(own, name, f"#!{line.format(planted.folder)}\necho 1.0\n")
    os.makedirs(os.path.dirname(paths.user_settings()), exist_ok=True)
    with open(paths.user_settings(), "w", encoding="utf-8") as file:
        file.write('[[notify]]\non = ["all"]\nto = "command"\nargv = ["tell-me"]\n')
    env = {"PATH": f"{own}:{os.environ['PATH']}"}
    for verb in (
        ("agent", "probe", "claude"), ("doctor",), ("service", "status"), ("notify", "test"),
        ("queue", "import", "gh:label=x"),
    ):  # fmt: skip
        holdfast(*verb, env=env, cwd=planted.repo.path)
        assert planted.ran == [], verb


def test_git_and_gh_do_not_start_in_a_project(home: str) -> None:
    """Version managers install programs that obey files of the current directory (`.tool-versions`)."""
    root = os.path.dirname(home)
    repo, programs, where = Repo(os.path.join(root, "project")), os.path.join(root, "programs"), root + "/at"
    repo.commit("a")
    os.mkdir(programs)
    git = shutil.which("git")
    # The kernel does not let git write elsewhere: it fails in any other directory.
    for name, lines in (
        ("git", f'[ "$(pwd -P)" = / ] || exit 99\nexec {git} "$@"'),
        ("gh", f"pwd -P >> {where}\necho []"),
    ):
        with open(os.path.join(programs, name), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{lines}\n")
        os.chmod(os.path.join(programs, name), stat.S_IRWXU)
    env = {"PATH": f"{programs}:{os.environ['PATH']}"}
    for words in (
        ("run", "-q", "--id", "it", "--worktree", "--", "/bin/sh", "-c", "date > b"),
        ("diff", "it"),
        ("apply", "it"),
        ("queue", "import", "--from", "gh:label=x"),
    ):
        assert holdfast(*words, env=env, cwd=repo.path).returncode == 0
    with open(where, encoding="utf-8") as file:
        assert set(file.read().split()) == {"/"}


def test_a_room_whose_settings_an_agent_changes_makes_git_run_nothing(home: str) -> None:
    """A command cannot start, and git is asked whether the missing file would be a part of the work."""
    root = os.path.dirname(home)
    room, ran = Repo(os.path.join(root, "room")), os.path.join(root, "ran")
    room.write(".gitignore", "x\n")
    room.commit(".gitignore")
    blob = room.git("rev-parse", ":.gitignore").strip()
    room.git("update-index", "--skip-worktree", ".gitignore")
    os.remove(os.path.join(room.path, ".gitignore"))
    os.remove(os.path.join(room.path, ".git", "objects", blob[:2], blob[2:]))
    for name, value in (
        ("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"), ("remote.origin.url", room.path),
        ("remote.origin.uploadpack", f"touch {ran};"),
    ):  # fmt: skip
        room.git("config", name, value)
    probe = cannot_start.probe_in(room_commands.in_place(room.path))
    cannot_start.misses_work("./gone.sh", probe, links=(), project_dir=room.path)
    assert not os.path.exists(ran)


def test_no_program_of_a_project_around_the_one_that_is_named(home: str, planted: Planted) -> None:
    """Elsewhere, and before a task has run there."""
    project = os.path.join(planted.repo.path, "src")
    for source in ("bd:", "gh:label=x"):
        holdfast("queue", "import", "--project", project, "--from", source, env=planted.env, cwd="/")
        assert planted.ran == [], source


def test_ssh_does_not_start_in_a_project(home: str) -> None:
    """Nor a credential helper: it may be a program of a version manager."""
    root = os.path.dirname(home)
    repo, ssh, where = Repo(os.path.join(root, "project")), os.path.join(root, "ssh.sh"), root + "/where"
    repo.commit("a")
    repo.git("remote", "add", "origin", "ssh://git@example.invalid/owner/name")
    with open(ssh, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\npwd -P >> {where}\nexit 1\n")
    os.chmod(ssh, stat.S_IRWXU)
    words = ("run", "-q", "--id", "it", "--worktree", "--", "/bin/sh", "-c", "date > b")
    assert holdfast(*words, cwd=repo.path).returncode == 0
    assert holdfast("pr", "it", "--yes", cwd=repo.path, env={"GIT_SSH_COMMAND": ssh}).returncode != 0
    with open(where, encoding="utf-8") as file:
        assert set(file.read().split()) == {"/"}


def test_processes_elsewhere_know_the_project_around_the_command(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone in which no task has run: the keeper, runners and gates run in other directories."""
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    planted, other = (
        Planted(os.path.dirname(home), "tools"),
        Repo(os.path.join(os.path.dirname(home), "other")),
    )
    other.commit("a")
    words = ("run", "-q", "--project", other.path, "--accept", "test -e b", "--", "/bin/sh", "-c", "> b")
    for verb in (("up",), words, ("down", "--now"), ("demo",)):
        assert holdfast(*verb, env=planted.env, cwd=planted.repo.path).returncode == 0, verb
        assert planted.ran == [], verb
