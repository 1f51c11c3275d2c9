"""Packets, work items and environment files of a project that an agent moved out of it: a link that leads
elsewhere, or a folder that vanishes while it is read, does not make them the user's own."""

from __future__ import annotations

import json
import os
import select
import subprocess
import threading

import pytest

from holdfast.store.inotify import Inotify
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import give_up

pytestmark = pytest.mark.usefixtures("home")

_OPEN = 0x20


def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "clone"))
    repo.commit("a")
    return repo


def elsewhere(name: str = "") -> str:
    """A directory that belongs to no project."""
    return os.path.join(workspace(), "elsewhere", name).rstrip("/")


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path: str, text: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def link(target: str, path: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(target, path)
    return path


def item(name: str) -> str:
    return json.dumps({"id": name, "command": f"touch {workspace()}/pwned"}) + "\n"


def import_from(source: str, repo: Repo) -> subprocess.CompletedProcess[str]:
    """Into the queue, which no keeper runs here."""
    return holdfast("queue", "import", source, cwd=repo.path)


def tasks() -> list[str]:
    folder = os.path.join(os.environ["HOLDFAST_HOME"], "tasks")
    return os.listdir(folder) if os.path.isdir(folder) else []


@pytest.mark.parametrize("way", ["file", "folder", "folder above", "relative", "second link"])
def test_work_items_behind_a_link_in_a_project_run_no_command(way: str) -> None:
    repo = project()
    write(elsewhere("work.jsonl"), item("bad"))
    write(elsewhere("work/bad.md"), f"---\ncommand: touch {workspace()}/pwned\n---\nread it\n")
    if way == "file":
        source = link(elsewhere("work.jsonl"), os.path.join(repo.path, "work.jsonl"))
    elif way == "folder":
        source = link(elsewhere("work"), os.path.join(repo.path, "work"))
    elif way == "folder above":
        source = os.path.join(link(elsewhere(), os.path.join(repo.path, "docs")), "work.jsonl")
    elif way == "relative":
        link("../elsewhere/work.jsonl", os.path.join(repo.path, "work.jsonl"))
        source = "work.jsonl"
    else:
        inner = link(elsewhere("work"), os.path.join(repo.path, "work"))
        source = link(inner, os.path.join(workspace(), "own", "work"))
    done = import_from(source, repo)
    assert "bad: it was not trusted yet: command" in done.stderr, done.stdout
    assert tasks() == []


def test_a_folder_of_work_items_that_vanishes_after_it_was_read_is_judged() -> None:
    """The agent moves it when the last file is opened. Who decides must not depend on what is there then."""
    repo = project()
    folder = os.path.join(repo.path, "work")
    write(os.path.join(folder, "bad.md"), f"---\ncommand: touch {workspace()}/pwned\n---\nread it\n")
    last = write(os.path.join(folder, "last.md"), "---\nstatus: closed\n---\n" + "read it\n" * 100_000)
    seen = Inotify.open()
    if seen is None:
        give_up("no inotify here")
    seen.add(last, _OPEN)

    def move() -> None:
        if select.select((seen.descriptor,), (), (), 30)[0]:
            os.rename(folder, elsewhere())

    mover = threading.Thread(target=move)
    mover.start()
    done = import_from(folder, repo)
    mover.join(60)
    seen.close()
    assert not os.path.exists(folder), "it was moved while it was read"
    assert "bad" not in tasks(), done.stderr


@pytest.mark.parametrize("way", ["packet", "manifest"])
def test_a_packet_behind_a_link_in_a_project_runs_no_command(way: str) -> None:
    """It was edited: under its own name, that is the user's business."""
    repo = project()
    folder = os.path.join(repo.path, "tasks", "fix")
    write(elsewhere("bin/gemini"), "#!/bin/sh\n")
    os.chmod(elsewhere("bin/gemini"), 0o755)
    env = {"PATH": f"{elsewhere('bin')}:{os.environ['PATH']}"}
    words = ("--id", "fix", "--intent", "review_only", "--goal", "look", "--accept", "true")
    made = holdfast("new", elsewhere("fix"), *words, cwd=repo.path, env=env)
    assert made.returncode == 0, made.stderr
    write(
        elsewhere("fix/manifest.yaml"),
        "env: [HOME]\n" + read(elsewhere("fix/manifest.yaml")).replace("\nenv:", "\n#"),
    )
    link(elsewhere("fix"), folder)
    given = folder if way == "packet" else os.path.join(folder, "manifest.yaml")
    done = holdfast("submit", "--packet", given, "--project", repo.path, cwd=repo.path, env=env)
    assert done.returncode == 2
    assert (
        "changed since you trusted it or wrote it with 'new'; it has env, acceptance.commands" in done.stderr
    )
    done = holdfast("submit", "--packet", elsewhere("fix"), "--project", repo.path, cwd=repo.path, env=env)
    assert done.returncode == 0, done.stderr


def test_retry_does_not_read_an_environment_file_behind_a_new_link() -> None:
    repo = project()
    path = repo.write("x.env", "WORD=first\n")
    words = ("--env-file", path, "--max-retries", "0")
    command = f"echo $WORD >> {workspace()}/words; exit 1"
    task = Task.shell(command, *words, project=repo.path)
    task.wait_for("failed", "abandoned")
    os.unlink(path)
    link(write(elsewhere("x.env"), "WORD=planted\n"), path)
    done = holdfast("retry", task.id)
    assert done.returncode == 3, done.stderr
    assert "was changed after the task was created" in done.stderr
    with open(f"{workspace()}/words", encoding="utf-8") as file:
        assert file.read() == "first\n"


def test_a_packet_of_one_command_is_the_one_that_was_typed() -> None:
    """`new --run` writes it into a temporary folder, where a living agent can change it."""
    repo, waiting = project(), threading.Event()
    write(elsewhere("bin/gemini"), "#!/bin/sh\n")
    os.chmod(elsewhere("bin/gemini"), 0o755)
    temporary = os.path.join(workspace(), "temporary")
    os.mkdir(temporary)

    def change() -> None:
        while not waiting.is_set():
            for name in os.listdir(temporary):
                path = os.path.join(temporary, name, "fix", "manifest.yaml")
                if os.path.exists(path):
                    with open(path, encoding="utf-8") as file:
                        text = file.read()
                    write(path, text.replace("echo typed", "echo planted"))
                    return
            waiting.wait(0.001)

    agent = threading.Thread(target=change)
    agent.start()
    words = ("--id", "fix", "--intent", "review_only", "--goal", "look", "--accept", "echo typed")
    env = {"PATH": f"{elsewhere('bin')}:{os.environ['PATH']}", "TMPDIR": temporary}
    done = holdfast("new", "--run", "-d", *words, cwd=repo.path, env=env)
    waiting.set()
    agent.join()
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "fix"))
    assert task.events("task.created")[0]["spec"]["pipeline"]["acceptance_commands"] == ["echo typed"]
    holdfast("stop", "--now", "fix")
