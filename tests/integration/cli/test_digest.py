"""holdfast digest: only what changed, in few bytes; labels; the summary of a task."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import threading
from typing import Any

import jsonschema
import pytest

from contracts import schema
from holdfast.store import index_tables
from holdfast.store.layout import Home
from holdfast.views.facts import digest as facts
from tests.support import kin, loops, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def digest(*args: str) -> dict[str, Any]:
    done = holdfast("digest", "--json", *args)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.encode()) <= 4096
    found = json.loads(done.stdout)
    jsonschema.validate(found, schema.schemas()["digest"])
    return found


def ids(found: dict[str, Any]) -> list[str]:
    return [task["id"] for task in found["tasks"]]


def test_the_summary_of_a_task_that_has_just_ended_is_complete() -> None:
    """Its state is visible a moment before its last files are written."""
    task = Task.shell("true", "--id", "it", env={"HOLDFAST_FAILPOINT": "last_files.manifest=stop"})
    eventually(lambda: task.status() == "completed" and ids(digest()), what="the digest says it has ended")
    runner = task.wait_for_event("runner.left")["pid"]
    eventually(lambda: processes.look(runner).state == "T", what="the runner has stopped")
    shown: list[str] = []
    thread = threading.Thread(target=lambda: shown.append(holdfast("show", "it", "--summary").stdout))
    thread.start()
    thread.join(0.3)
    os.kill(runner, signal.SIGCONT)
    thread.join(30)
    assert "The task is completed" in shown[0]
    task.wait_for("completed")


def test_a_held_task_is_not_just_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.submit("--id", "bad", "--", "false")
    loops.submit("--id", "next", "--after", "bad", "--", "true")
    assert "held" not in digest()
    loops.up()
    loops.task("bad").wait_for("failed")
    cursor = digest()["cursor"]
    eventually(lambda: loops.queue()["next"]["state"] == "held")
    # No change of the task: whatever the cursor, it is told.
    assert digest("--since", cursor)["held"] == {"count": 1, "tasks": ["next"]}
    assert digest("bad")["counts"] == {"failed": 1}
    assert "held" not in digest("bad")
    assert "1 failed, 1 held (held: next)" in holdfast("digest", "--since", cursor).stdout
    (task,) = [each for each in digest()["tasks"] if each["id"] == "next"]
    assert (task["state"], task["needs"], task["waits"]) == ("held", "retry", "bad failed")
    assert "next held: bad failed" in holdfast("digest").stdout
    assert re.search(r"^tasks +1 failed, 1 held$", holdfast("status").stdout, re.MULTILINE)
    assert "tasks: 1 failed, 1 held\n" in holdfast("report").stdout
    assert "tasks       2: 1 failed, 1 held\n" in holdfast("metrics").stdout
    for command in ("status", "report", "digest"):
        assert json.loads(holdfast(command, "--json").stdout)["counts"] == {"failed": 1, "held": 1}, command


def test_only_what_changed_and_500_bytes_if_nothing_did() -> None:
    first = digest()
    assert (first["full"], first["tasks"]) == (True, [])
    assert "note" not in first
    slow = Task.shell(kin.WAIT, "--id", "slow")
    Task.shell("true", "--id", "quick").wait_for("completed")
    slow.wait_for("running")
    second = digest()
    assert sorted(ids(second)) == ["quick", "slow"]
    assert second["counts"] == {"completed": 1, "running": 1}
    nothing = holdfast("digest", "--json", "--since", second["cursor"])
    assert len(nothing.stdout.encode()) <= 500
    assert json.loads(nothing.stdout)["tasks"] == []
    kin.go()
    slow.wait_for("completed")
    third = digest("--since", second["cursor"])
    assert (third["full"], third["tasks"]) == (False, [{"id": "slow", "state": "completed"}])


def test_a_question_says_what_is_needed() -> None:
    cursor = digest()["cursor"]
    asks = 'for i in $(seq 1000); do printf "which one?"; done > "$INTERRUPT_FILE.new"'
    asks = f'{asks}; mv "$INTERRUPT_FILE.new" "$INTERRUPT_FILE"; sleep 60'
    task = Task.shell(asks, "--id", "it")
    task.wait_for("interrupted")
    (found,) = digest("--since", cursor)["tasks"]
    assert found["needs"] == "answer"
    assert found["question"].startswith("which one?")
    assert found["question"].endswith("…")


@pytest.mark.parametrize("how", [["rm", "it"], ["archive", "it"]])
def test_a_task_that_is_gone(how: list[str]) -> None:
    Task.shell("true", "--id", "it").wait_for("completed")
    cursor = digest()["cursor"]
    assert holdfast(*how).returncode == 0
    assert digest("--since", cursor)["gone"] == ["it"]


def test_an_unknown_cursor_gives_a_full_digest_that_says_so(home: str) -> None:
    Task.shell("true", "--id", "it").wait_for("completed")
    cursor = digest()["cursor"]
    for name in os.listdir(home):
        if name.startswith("index.db"):
            os.unlink(os.path.join(home, name))
    for unknown in (cursor, "", "a.1", f"{cursor}999", "a." + "9" * 9000, f"{cursor}.1.it"):
        found = digest("--since", unknown)
        assert found["full"], unknown
        assert "unknown cursor" in found["note"]
        assert ids(found) == ["it"]


@pytest.mark.parametrize("text", ["x", "a.b", "24h", "a.-1", ".", "a.1.2", "a.1.x.y"])
def test_what_no_digest_printed_is_refused(text: str) -> None:
    done = holdfast("digest", "--since", text)
    assert done.returncode == 2
    assert f"--since: not a cursor: {text!r}" in done.stderr


def test_what_does_not_fit_comes_with_the_next_digest() -> None:
    cursor = digest()["cursor"]
    made = {f"task-with-a-rather-long-name-of-its-own-{number:02}" for number in range(60)}
    for task_id in made:
        kin.make("--", "true", task_id=task_id)
    seen: set[str] = set()
    left = []
    while True:
        found = digest("--since", cursor)
        assert not seen & set(ids(found)), "each is told once"
        seen |= set(ids(found))
        left.append(found["left_out"])
        cursor = found["cursor"]
        if not found["left_out"]:
            break
    assert seen == made
    assert left[0] > 0
    assert left == sorted(left, reverse=True)


def too_many() -> list[str]:
    """Tasks that do not fit into one digest."""
    made = [f"t{number:02}" for number in range(12)]
    for task_id in made:
        kin.make("--label", "x=" + "y" * 190, "--label", "z=" + "y" * 150, "--", "true", task_id=task_id)
    return made


def told(*args: str) -> list[str]:
    """The tasks of a full digest, and of those that bring what did not fit."""
    seen: list[str] = []
    since: list[str] = []
    for _ in range(20):
        found = digest(*args, *since)
        assert found["full"] is not bool(since)
        seen += ids(found)
        since = ["--since", found["cursor"]]
        if not found["left_out"]:
            assert digest(*args, *since)["tasks"] == []
            return seen
    raise AssertionError("the next digest brought nothing new")


def end_all(made: list[str], home: str) -> None:
    """Stop tasks that were never started, and forget the index: it then knows no order of their ends."""
    assert holdfast("stop", *made).returncode == 0
    for task_id in made:
        Task(os.path.join(home, "tasks", task_id)).wait_for("killed")
    for name in os.listdir(home):
        if name.startswith("index.db"):
            os.unlink(os.path.join(home, name))


def test_what_does_not_fit_into_a_full_digest_comes_if_the_tasks_ended_long_ago(home: str) -> None:
    made = too_many()
    end_all(made, home)
    assert sorted(told()) == made


def test_what_does_not_fit_into_a_full_digest_comes_after_forgotten_removals(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_tables, "_GONE_KEPT", 2)
    made = too_many()
    digest()
    for number in range(4):
        gone = kin.make("--", "true", task_id=f"gone-{number}")
        facts.gather(Home(home), since=None)
        shutil.rmtree(gone.packet)
        facts.gather(Home(home), since=None)
    assert sorted(told()) == made


def test_a_task_that_goes_between_two_parts_of_a_full_digest_is_told(home: str) -> None:
    made = too_many()
    first = digest()
    shutil.rmtree(os.path.join(home, "tasks", ids(first)[0]))
    second = digest("--since", first["cursor"])
    assert sorted(ids(first) + ids(second)) == made
    assert digest("--since", second["cursor"])["gone"] == ids(first)[:1]


def test_all_tasks_of_a_label_are_told_however_many_ended_since(home: str) -> None:
    made = [f"t{number:02}" for number in range(24)]
    for task_id in made:
        label = "batch=old" if task_id < "t22" else "batch=new"
        kin.make("--label", label, "--", "true", task_id=task_id)
    end_all(made, home)
    assert sorted(told("--label", "batch=old")) == made[:22]
    assert told("t00") == ["t00"]


def test_labels_find_tasks_again() -> None:
    Task.shell("true", "--id", "a", "--label", "batch=1", "--label", "team=web").wait_for("completed")
    Task.shell("exit 3", "--id", "b", "--label", "batch=1").wait_for("failed")
    Task.shell("true", "--id", "c").wait_for("completed")
    assert sorted(holdfast("ls", "-q", "--label", "batch=1").stdout.split()) == ["a", "b"]
    assert holdfast("ls", "-q", "--label", "batch=1", "--label", "team=web").stdout == "a\n"
    found = digest("--label", "batch=1")
    assert sorted(ids(found)) == ["a", "b"]
    assert found["counts"] == {"completed": 1, "failed": 1}
    done = holdfast("wait", "--all", "--label", "batch=1")
    assert sorted(done.stdout.splitlines()) == ["a completed", "b failed"]
    assert done.returncode == 1
    assert holdfast("wait", "--label", "batch=2").returncode == 3
    assert sorted(ids(digest("c", "a"))) == ["a", "c"]
    assert json.loads(holdfast("show", "a", "--json").stdout)["labels"] == {"batch": "1", "team": "web"}


@pytest.mark.parametrize("label", ["x", "=1", "a b=1", "k=" + "v" * 201])
def test_a_label_that_is_none_is_refused(label: str) -> None:
    done = holdfast("run", "-d", "--label", label, "--", "true")
    assert done.returncode == 2
    assert "--label" in done.stderr


def test_a_manifest_that_an_agent_wrote_breaks_no_digest() -> None:
    task = kin.make("--", "true", task_id="it")
    for attempt in (None, 2):
        forged = {**task.manifest(), "attempt": attempt}
        with open(task.path("manifest.json"), "w", encoding="utf-8") as file:
            json.dump(forged, file)
        (found,) = digest()["tasks"]
        assert found.get("attempt") == attempt


def test_the_summary_of_a_task() -> None:
    Task.shell("exit 3", "--id", "it").wait_for("failed")
    found = json.loads(holdfast("show", "it", "--summary", "--json").stdout)
    jsonschema.validate(found, schema.schemas()["summary"])
    assert found["status"] == "failed"
    assert "it" in found["text"]
    assert found["text"].splitlines()[0] in holdfast("show", "it", "--summary").stdout


def test_a_manifest_says_up_to_where_it_knows_the_journal() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.wait_for("running")
    kin.go()
    manifest = task.wait_for("completed")
    assert manifest["journal_bytes"] == os.path.getsize(task.path("events.jsonl"))
    made = kin.make("--", "true")
    assert made.manifest()["journal_bytes"] == os.path.getsize(made.path("events.jsonl"))
