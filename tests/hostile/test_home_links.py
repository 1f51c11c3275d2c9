"""A link in place of a directory of the home: nothing behind it is removed or written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct

import pytest

from holdfast.errors import StorageError
from holdfast.keeper import upkeep
from holdfast.packet import load, remove
from holdfast.store import directories
from holdfast.store.layout import Home, Packet
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace

FOLDERS = (
    "archive", "outbox", "admitted", "seals", "worktrees", "left-out", "scripted-agent", "sessions",
    "projects", "workspaces", "replies", "schedules",
)  # fmt: skip
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def content(folder: str) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for place, folders, names in directories.walk(folder):
        found |= dict.fromkeys(os.path.join(place, name) for name in folders)
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                found[os.path.join(place, name)] = file.read()
    return found


@pytest.mark.parametrize("kind", ["link", "file", "loop"])
@pytest.mark.parametrize("name", FOLDERS)
def test_nothing_behind_a_link_is_touched(
    home: str, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo(workspace())
    repo.commit("README.md")
    for task_id in ("one", "two", "three"):
        Task.start("--id", task_id, "--", "true").wait_for("completed")
    tree = Task.start("--id", "tree", "--worktree", "--", "true", project=repo.path)
    tree.wait_for("completed", within_s=40)
    assert holdfast("archive", "three").returncode == 0
    mine = os.path.join(os.path.dirname(home), "mine")
    for task_id in ("one", "two", "three", "tree", "project"):
        os.makedirs(os.path.join(mine, task_id))
        with open(os.path.join(mine, task_id, "events.jsonl"), "w", encoding="utf-8") as file:
            file.write("{}\n")
    with open(os.path.join(mine, f"{ULID}.json"), "w", encoding="utf-8") as file:
        file.write("{}")
    before = content(mine)
    path = os.path.join(home, name)
    if os.path.isdir(path):
        shutil.move(path, f"{path}-of-the-agent")
    if kind == "file":
        with open(path, "wb"):
            pass
    else:
        os.symlink(mine if kind == "link" else path, path)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    for verb in ("ls", "status", "report", "metrics", "run --id four -- true", "up", "archive two", "rm one"):
        done = holdfast(*verb.split(), cwd=repo.path)
        assert done.returncode == 0, (verb, done.stderr)
    holdfast("rm", "--force", "tree")
    holdfast("prune", "--yes", "--older-than", "0s")
    assert holdfast("down", "--now").returncode == 0
    assert content(mine) == before


@pytest.mark.parametrize("kind", ["directory", "loop"])
def test_tasks_are_not_looked_for_behind_a_link(
    home: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Task.start("--id", "one", "--", "true").wait_for("completed")
    mine, tasks = os.path.join(os.path.dirname(home), "mine"), os.path.join(home, "tasks")
    for name in ("thesis", ".gone-fishing", ".new-ideas", f".gone-{ULID}"):
        os.makedirs(os.path.join(mine, name))
        os.utime(os.path.join(mine, name), (1, 1))
    os.chmod(os.path.join(mine, "thesis"), 0o500)
    before = content(mine)
    shutil.move(tasks, f"{tasks}-of-the-agent")
    os.symlink(mine if kind == "directory" else tasks, tasks)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    verbs = (
        "ls",
        "status",
        "run --id four -- true",
        "up",
        "rm --force --all",
        "rm --force thesis",
        "prune --yes",
    )
    for verb in verbs:
        done = holdfast(*verb.split(), cwd=workspace())
        assert done.returncode == 3, (verb, done.stderr)
        assert f"{tasks} is a symbolic link, which is not followed" in " ".join(done.stderr.split())
    assert "is a symbolic link" in " ".join(holdfast("doctor").stdout.split())
    # A keeper or a command that has begun before.
    upkeep.remove_stale_staging(Home(home))
    assert load.task_ids(Home(home)) == []
    with pytest.raises(StorageError, match="symbolic link"):
        remove.remove(Packet(os.path.join(tasks, "thesis")))
    assert content(mine) == before
    assert os.stat(os.path.join(mine, "thesis")).st_mode & 0o777 == 0o500


def test_directories_that_nobody_made_as_tasks_are_kept(home: str) -> None:
    Task.start("--id", "one", "--", "true").wait_for("completed")
    tasks = os.path.join(home, "tasks")
    for name in ("thesis", ".gone-fishing", ".new-ideas", f".gone-{ULID}", f".new-{ULID}"):
        os.makedirs(os.path.join(tasks, name))
        os.utime(os.path.join(tasks, name), (1, 1))
    upkeep.remove_stale_staging(Home(home))
    assert sorted(os.listdir(tasks)) == [".gone-fishing", ".new-ideas", "one", "thesis"]
    done = holdfast("rm", "--force", "--all")
    assert "thesis is no task: it has neither a journal nor a record" in " ".join(done.stderr.split())
    assert sorted(os.listdir(tasks)) == [".gone-fishing", ".new-ideas", "thesis"]


@pytest.mark.parametrize("name", ["index.db", "queue.db"])
def test_no_journal_of_a_database_has_a_file_removed(home: str, name: str) -> None:
    """SQLite removes a second journal that the journal of a database names, whatever that is."""
    assert holdfast("submit", "--id", "it", "--", "true", cwd=workspace()).returncode == 0
    assert holdfast("ls").returncode == 0
    precious = os.path.join(workspace(), "precious")
    with open(precious, "w", encoding="utf-8") as file:
        file.write("mine\n")
    database, magic = os.path.join(home, name), bytes.fromhex("d9d505f920a163d7")
    head = magic + struct.pack(">IIIII", 0, 0, os.path.getsize(database) // 4096, 512, 4096)
    names = os.fsencode(precious)
    with open(f"{database}-journal", "wb") as file:
        file.write(head.ljust(512, b"\0") + struct.pack(">I", 0) + names)
        file.write(struct.pack(">II", len(names), sum(names)) + magic)
    assert holdfast("ls").returncode == 0
    assert holdfast("queue", "ls").returncode == 0
    assert not os.path.exists(f"{database}-journal")
    assert os.path.exists(precious)


@pytest.mark.parametrize("name", ["index.db", "queue.db"])
def test_a_database_of_a_user_is_not_used(home: str, name: str) -> None:
    """An agent can give it a second name in the home."""
    assert holdfast("submit", "--id", "it", "--", "true", cwd=workspace()).returncode == 0
    mine, database = os.path.join(workspace(), "mine.db"), os.path.join(home, name)
    with sqlite3.connect(mine) as rows:
        rows.execute("CREATE TABLE notes (text)")
    rows.close()
    before = content(workspace())[mine]
    for path in (database, f"{database}-wal", f"{database}-shm"):
        if os.path.exists(path):
            os.unlink(path)
    os.link(mine, database)
    assert holdfast("ls").returncode == 0
    assert "it" in holdfast("queue", "ls").stdout
    assert content(workspace())[mine] == before
