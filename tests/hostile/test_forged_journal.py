"""Only what runners wrote to the journal counts. If anything else wrote to it, a person is asked."""

from __future__ import annotations

import json
import os

import pytest

from holdfast import clock, ids
from holdfast.store.layout import Home
from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

EAGER = ("--base-interval", "0.2s", "--stale", "none")


def line(kind: str, **fields: object) -> bytes:
    """A line that looks like that of a runner."""
    head = {"id": ids.new_ulid(), "at": clock.iso_now(), "type": kind}
    return json.dumps({**head, **fields}, separators=(",", ":")).encode() + b"\n"


def forged_end() -> bytes:
    """Everything that a runner writes when a task has succeeded."""
    ended = line("attempt.ended", attempt=1, outcome="success", exit_code=0, by="recorder")
    moved = [line("task.moved", old="running", new="completing", reason="success")]
    moved += [line("gate.judged", stage="command_run", attempt=1, passed=True)]
    moved += [line("stage.done", stage="command_run", attempt=1)]
    moved += [line("task.moved", old="completing", new="completed", reason="success")]
    return ended + b"".join(moved)


def append(task: Task, data: bytes) -> None:
    with open(task.path("events.jsonl"), "ab") as file:
        file.write(data)


def rewrite(task: Task, old: bytes, new: bytes, *, by_rename: bool = False) -> None:
    """Replace a text in the journal, in place or by a new file."""
    data = task.read("events.jsonl")
    assert old in data
    path = task.path("events.jsonl")
    with open(path + ".new" if by_rename else path, "r+b" if not by_rename else "wb") as file:
        file.write(data.replace(old, new))
        file.truncate()
    if by_rename:
        os.rename(path + ".new", path)


def assert_parked(task: Task, said: str) -> None:
    manifest = task.wait_for("interrupted", within_s=40)
    assert said in manifest["interrupt"]["reason"], manifest["interrupt"]
    assert "completed" not in task.moves()
    assert task.events("journal.forged")
    assert holdfast("wait", "--timeout", "10s", task.id).returncode == 4


def test_a_success_that_an_agent_appended_is_noticed(home: str) -> None:
    source = os.path.join(workspace(), "forged")
    with open(source, "wb") as file:
        file.write(forged_end())
    task = Task.shell('cat forged >> "$HOLDFAST_PACKET/events.jsonl"; exit 3', *EAGER, "--max-retries", "0")
    assert_parked(task, "another process wrote")
    assert not task.events("stage.done")


@pytest.mark.parametrize("data", ["end", "one line", "agent event"])
def test_lines_appended_without_a_runner_do_not_count(home: str, data: str) -> None:
    lock = kin.alone(home)
    task = Task.shell(kin.WAIT + "exit 3", *EAGER, "--max-retries", "0")
    agent = task.agent_pid()
    task.kill_runner()
    forged = {
        "end": forged_end(),
        "one line": line("task.moved", old="running", new="completed", reason="success"),
        "agent event": line("agent.result", is_error=False, attempt=1, offset=5, text="done"),
    }[data]
    append(task, forged)
    task.start_runner()
    assert_parked(task, "another process wrote")
    assert not processes.is_alive(agent)
    kept = [name for name in os.listdir(task.packet) if name.startswith("events.jsonl.forged")]
    assert task.read(kept[0]) == forged
    # After the answer, the task continues from the trusted part.
    kin.go()
    assert task.ask("resume").returncode == 0
    assert task.wait_for("failed")["exit_code"] == 3
    os.close(lock)


@pytest.mark.parametrize("by_rename", [False, True])
@pytest.mark.parametrize("dies", [False, True])
def test_a_changed_line_never_runs_a_command(home: str, *, dies: bool, by_rename: bool) -> None:
    """The command of a retry is that of the first line; the agent writes another one there."""
    lock = kin.alone(home)
    ran = os.path.join(workspace(), "ran")
    script = kin.WAIT + "exit 3 # " + "x" * 20
    task = Task.shell(script, *EAGER, "--max-retries", "3")
    task.agent_pid()
    if dies:
        task.kill_runner()
    evil = f"touch {ran};exit 0 #".ljust(len(script))
    rewrite(task, json.dumps(script)[1:-1].encode(), json.dumps(evil)[1:-1].encode(), by_rename=by_rename)
    kin.go()
    if dies:
        task.start_runner()

    def is_settled() -> bool:
        done = holdfast("show", task.id, "--json")
        return done.returncode != 0 or json.loads(done.stdout)["status"] == "interrupted"

    eventually(is_settled, 40, "nobody believes it", journal=task.packet)
    listed = json.loads(holdfast("ls", "--json").stdout)
    rows = listed["tasks"] if isinstance(listed, dict) else listed
    assert [row["status"] for row in rows if row["task_id"] == task.id] != ["completed"]
    assert not os.path.exists(ran)
    done = holdfast("rm", "--force", task.id)
    assert done.returncode == 0, done.stderr
    os.close(lock)


def test_going_back_in_the_journal_is_noticed(home: str) -> None:
    """A journal that is cut off loses a person's stop, and a budget."""
    lock = kin.alone(home)
    task = Task.shell(kin.WAIT + "exit 3", *EAGER)
    task.agent_pid()
    task.kill_runner()
    lines = task.read("events.jsonl").splitlines(keepends=True)
    with open(task.path("events.jsonl"), "r+b") as file:
        file.truncate(len(lines[0]) + len(lines[1]))
    task.start_runner()
    assert_parked(task, "another process")
    os.close(lock)


def test_missing_seals_are_noticed(home: str) -> None:
    lock = kin.alone(home)
    task = Task.shell(kin.WAIT + "exit 3", *EAGER)
    task.agent_pid()
    task.kill_runner()
    os.unlink(Home(home).seals_of(task.id))
    append(task, forged_end())
    task.start_runner()
    manifest = task.wait_for("interrupted", "completed", within_s=40)
    assert (manifest["status"], "seals" in manifest["interrupt"]["reason"]) == ("interrupted", True)
    os.close(lock)


def test_a_torn_append_is_no_forgery(home: str) -> None:
    """Killed while it wrote: the partial append is dropped, and the task continues."""
    lock = kin.alone(home)
    task = Task.shell(kin.WAIT + "exit 0", *EAGER)
    task.agent_pid()
    task.kill_runner()
    size = os.path.getsize(task.path("events.jsonl"))
    with open(task.path("events.jsonl"), "r+b") as file:
        file.truncate(size - 20)
    task.start_runner()
    kin.go()
    task.wait_for("completed")
    assert task.events("journal.repaired")
    assert not task.events("journal.forged")
    os.close(lock)


def test_a_link_or_another_mode_is_no_forgery(home: str) -> None:
    """A backup makes hard links, which changes what the file system says about the file."""
    task = Task.shell(kin.WAIT + "exit 0", *EAGER)
    task.agent_pid()
    os.link(task.path("events.jsonl"), os.path.join(home, "backup"))
    os.chmod(task.path("events.jsonl"), 0o640)
    kin.go()
    task.wait_for("completed")
    assert not task.events("journal.forged")


def test_a_task_with_the_id_of_a_removed_one_has_its_own_seals(home: str) -> None:
    for number in range(2):
        task = Task.start("--id", "again", "--", "true")
        task.wait_for("completed")
        assert not task.events("journal.forged")
        os.rename(task.packet, os.path.join(home, f"gone-{number}"))  # by hand: the seals stay
