"""No program of our own choice is taken from a directory of PATH in which an agent may write."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest

from holdfast import clock, ids, paths, program_search
from holdfast.gates import script
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, trust
from tests.support.terminal import Terminal

PROGRAMS = (
    "tmux", "systemctl", "loginctl", "launchctl", "notify-send", "osascript", "bash", "sh", "env", "true",
    "git", "gh", "bd", "ps", "bwrap", "claude", "codex",
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
    ("ls",), ("service", "install", "--print"), ("pipeline", "list"),
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
        terminal.press("\x02d")
        terminal.press("\x03")
        terminal.finish()
        assert planted.ran == []
    holdfast("stop", task.id, "--now")
    holdfast("down")
    assert planted.ran == []


def test_a_notice_is_shown_by_no_planted_program(home: str, planted: Planted) -> None:
    notice = {
        "schema": "holdfast.notice/1", "id": ids.new_ulid(), "at": clock.iso_now(), "event": "completed",
        "task_id": "x", "text": "x", "project_dir": planted.repo.path,
        "rule": {"on": ["all"], "to": "desktop"}, "tries": 0, "next_at": None, "after": None, "error": None,
    }  # fmt: skip
    os.makedirs(os.path.dirname(paths.user_settings()), exist_ok=True)
    with open(paths.user_settings(), "w", encoding="utf-8") as file:
        file.write('[[notify]]\non = ["all"]\nto = "desktop"\n')
    path = os.path.join(home, "notice.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(notice, file)
    argv = [sys.executable, "-m", "holdfast.notify", path]
    subprocess.run(
        argv, env={**os.environ, **planted.env}, cwd="/", capture_output=True, timeout=60, check=False
    )
    assert planted.ran == []


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
