"""An agent that writes an end into its own packet: nobody believes it but the journal's."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys

import pytest

from holdfast.model.soundness import UNREADABLE
from holdfast.queue import sync
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home
from tests.support import processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

#: Shows itself as completed, again and again, then fails.
LIAR = """
import json, os, pathlib, sys, time
packet = pathlib.Path(os.environ["HOLDFAST_PACKET"])
shown = json.loads((packet / "manifest.json").read_text()) | {"status": "completed", "exit_code": 0}
(packet / "done").mkdir(exist_ok=True)
(packet / "done" / "_task.done").write_text("{}")
(packet / "outputs" / "_summary.md").write_text("fine")
until = time.monotonic() + 3
while time.monotonic() < until:
    (packet / "forged").write_text(json.dumps(shown))
    os.rename(packet / "forged", packet / "manifest.json")
    time.sleep(0.02)
os._exit(3)
"""


def test_wait_reports_the_end_of_the_journal(home: str) -> None:
    task = Task.start("--max-retries", "0", "--", sys.executable, "-c", LIAR)
    task.wait_for("completed")
    assert holdfast("wait", task.id).returncode == 1
    assert task.status() == "failed"


def test_a_successor_waits_for_the_real_end(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    first = ("submit", "--id", "first", "--max-retries", "0", "--", sys.executable, "-c", LIAR)
    assert holdfast(*first).returncode == 0
    assert holdfast("submit", "--id", "deploy", "--after", "first", "--", "true").returncode == 0
    assert holdfast("up").returncode == 0
    assert holdfast("wait", "first").returncode == 1
    assert holdfast("wait", "deploy", "--timeout", "20s").returncode != 0
    assert Task(Home(home).packet("deploy").path).status() != "completed"


def test_a_forged_end_of_a_task_without_a_runner(home: str) -> None:
    """Nobody is alive who could put the manifest right: the journal decides."""
    task = Task.start("--id", "it", "--", "sh", "-c", 'echo why > "$INTERRUPT_FILE"; sleep 60')
    task.wait_for("interrupted", within_s=30)
    eventually(lambda: not locks.is_held(task.path("runner.lock")), 20, "its runner has left")
    shown = {**task.manifest(), "status": "completed", "exit_code": 0, "interrupt": None}
    shown["finished_at"] = shown["started_at"]
    with open(task.path("manifest.json"), "w", encoding="utf-8") as file:
        json.dump(shown, file)
    with open(task.path("done", "_task.done"), "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.done/1", "status": "completed", "run": 1}, file)
    done = holdfast("wait", "it", "--timeout", "20s")
    assert (done.returncode, done.stdout) == (4, "it interrupted\n"), done.stderr
    assert sync.status_of(Home(home), "it") == UNREADABLE
    holdfast("rm", "--force", "it")


def test_a_forged_end_of_a_task_whose_runner_was_killed(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper brings a runner all the same."""
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    go = os.path.join(os.path.dirname(home), "go")
    patient = LIAR.replace("until = time.monotonic() + 3", "until = time.monotonic() + 60")
    patient = patient.replace("< until:", f"< until and not os.path.exists({go!r}):")
    task = Task.start("--max-retries", "0", "--", sys.executable, "-c", patient)
    task.wait_for("completed")
    owner = lock_owner.owner(task.path("runner.lock"))
    assert owner is not None
    os.kill(owner.pid, signal.SIGKILL)
    eventually(lambda: len(task.events("runner.started")) == 2, 40, "another runner is there")
    with open(go, "w", encoding="utf-8"):
        pass
    done = holdfast("wait", task.id, "--timeout", "40s")
    assert done.returncode == 1, done.stderr
    eventually(lambda: task.status() == "failed", 10, "its real end is shown")


#: An agent that shows an end more often than its runner shows the truth.
FLAPS = """
import json, os, time
packet = os.environ["HOLDFAST_PACKET"]
with open(packet + "/manifest.json") as file:
    shown = json.load(file) | {"status": "completed", "finished_at": "2026-01-01T00:00:00.000Z"}
while True:
    for path, text in ((packet + "/manifest.json", json.dumps(shown)), (packet + "/done/_task.done", "x")):
        with open(packet + "/scratch/new", "w") as file:
            file.write(text)
        os.rename(packet + "/scratch/new", path)
    open("flaps", "w").close()
    time.sleep(0.001)
"""


@pytest.mark.parametrize("verb", ["stop", "rm", "down"])
def test_a_task_that_shows_its_end_while_it_runs_can_be_stopped(home: str, verb: str) -> None:
    task = Task.start("--id", "it", "--", sys.executable, "-c", FLAPS)
    eventually(lambda: os.path.exists(os.path.join(workspace(), "flaps")), 20, "it shows an end")
    assert json.loads(holdfast("show", "--json", "it").stdout)["status"] == "running"
    assert [row["status"] for row in json.loads(holdfast("ls", "--json").stdout)] == ["running"]
    agent = task.events("attempt.started")[0]["pid"]
    words = {"stop": ("stop", "--now", "it"), "rm": ("rm", "--force", "it"), "down": ("down", "--now")}
    done = holdfast(*words[verb])
    assert done.returncode == 0, done.stderr
    assert not processes.is_alive(agent), done.stdout + done.stderr


def test_an_end_that_an_agent_wrote_is_not_listed(home: str) -> None:
    """Without a runner, and with it dead."""
    task = Task.start("--id", "it", "--", sys.executable, "-c", FLAPS)
    eventually(lambda: os.path.exists(os.path.join(workspace(), "flaps")), 20, "it shows an end")
    with open(task.path("runner.lock"), encoding="utf-8") as file:
        os.kill(json.load(file)["pid"], signal.SIGKILL)
    os.kill(task.events("attempt.started")[0]["pid"], signal.SIGKILL)
    for _ in range(2):  # the second time from the index
        assert [row["status"] for row in json.loads(holdfast("ls", "--json").stdout)] == ["running"]
    assert "completed" not in holdfast("show", "it").stdout
    holdfast("rm", "--force", "it")


@pytest.mark.parametrize("row", ["ended", "live"])
def test_a_forged_index_shows_no_success(home: str, row: str) -> None:
    """An agent can write index.db, also together with the manifest."""
    task = Task.start("--id", "it", "--", "false")
    task.wait_for("failed")
    assert " failed " in holdfast("ls").stdout
    database = sqlite3.connect(os.path.join(home, "index.db"))
    with database:
        database.execute(
            "UPDATE tasks SET status = 'completed', short = replace(short, '\"failed\"', '\"completed\"')"
        )
        if row == "live":
            found = os.lstat(task.path("manifest.json"))
            stamp = f"{found.st_mtime_ns}.{found.st_size}.{found.st_ino}"
            database.execute("UPDATE tasks SET ended = 0, stamp = ?", (stamp,))
            database.execute("INSERT INTO brief SELECT task_id, short, stamp FROM tasks")
    database.close()
    for words in (("ls",), ("ls", "--all", "--json"), ("digest",), ("status",), ("report",)):
        shown = holdfast(*words)
        assert shown.returncode == 0, shown.stderr
        assert "completed" not in shown.stdout.replace("0 completed", ""), (words, shown.stdout)


@pytest.mark.parametrize("name", ["--force", "\x1b]0;title\x07", "../it", "a b", "", 5, None])
def test_a_forged_id_in_the_index_is_shown_to_nobody(home: str, name: object) -> None:
    """`holdfast rm $(holdfast ls -q)` would take it for an option."""
    Task.start("--id", "it", "--", "true").wait_for("completed")
    assert holdfast("ls", "-q").stdout == "it\n"
    cursor = holdfast("digest").stdout.split()[-1]
    database = sqlite3.connect(os.path.join(home, "index.db"))
    with database:
        (text,) = database.execute("SELECT short FROM tasks").fetchone()
        row = json.dumps(json.loads(text) | {"task_id": name, "status": "failed"})
        database.execute(
            "INSERT INTO tasks SELECT 'forged', status, ended, newest_at, ?, inode, stamp, news, seq, look_at"
            " FROM tasks",
            (row,),
        )
        database.execute("INSERT INTO gone VALUES (?, 1000)", (f"{name}\x1b]0;title\x07",))
        database.execute("UPDATE meta SET value = '1000' WHERE key = 'seq'")
    database.close()
    told = holdfast("digest", "--since", cursor).stdout
    assert "title" not in told
    for words in (("ls", "-q"), ("_complete", "show", "")):
        shown = holdfast(*words)
        assert shown.returncode == 0, shown.stderr
        assert [line.split("\t")[0] for line in shown.stdout.splitlines()] == ["it"]


def test_a_packet_that_an_agent_moved_to_the_archive(home: str) -> None:
    """There, a packet may have no journal: `prune --keep-summaries` removes it."""
    Task.start("--id", "it", "--", "false").wait_for("failed")
    eventually(lambda: not locks.is_held(os.path.join(home, "tasks", "it", "runner.lock")))
    moved = os.path.join(home, "archive", "it")
    os.makedirs(os.path.dirname(moved))
    os.rename(os.path.join(home, "tasks", "it"), moved)
    os.unlink(os.path.join(moved, "events.jsonl"))
    path = os.path.join(moved, "manifest.json")
    with open(path, encoding="utf-8") as file:
        shown = json.load(file) | {"status": "completed", "exit_code": 0}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(shown, file)
    assert holdfast("wait", "it").returncode != 0
    for words in (("show", "it"), ("ls", "--archived")):
        assert "completed" not in holdfast(*words).stdout
    assert sync.status_of(Home(home), "it") == UNREADABLE


def test_a_task_of_which_only_the_summary_is_kept_has_ended(home: str) -> None:
    for command in ("true", "false"):
        Task.start("--id", command, "--", command).wait_for("completed" if command == "true" else "failed")
        assert holdfast("archive", command).returncode == 0
    done = holdfast("prune", "--archived", "--older-than", "0s", "--keep-summaries", "--yes")
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(os.path.join(home, "archive", "true", "events.jsonl"))
    assert holdfast("wait", "true").returncode == 0
    assert holdfast("wait", "false").returncode == 1
    assert sync.status_of(Home(home), "true") == "completed"
