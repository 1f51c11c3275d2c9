"""What a task leaves in its packet, when, and in which order."""

from __future__ import annotations

import ctypes
import json
import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.testing import Scenario
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
IN_CLOSE_WRITE, IN_MOVED_TO = 0x8, 0x80


@contextmanager
def renames_into(*folders: str) -> Iterator[Any]:
    """Yields a function that returns the names of files renamed into the folders so far, in order."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    for folder in folders:
        assert libc.inotify_add_watch(descriptor, os.fsencode(folder), IN_MOVED_TO) >= 0
    seen: list[str] = []

    def so_far() -> list[str]:
        try:
            while data := os.read(descriptor, 65536):
                while data:
                    length = struct.unpack_from("iIII", data)[3]
                    seen.append(data[16 : 16 + length].rstrip(b"\0").decode())
                    data = data[16 + length :]
        except BlockingIOError:
            pass
        return seen

    try:
        yield so_far
    finally:
        os.close(descriptor)


@pytest.mark.req("PKT-1", "LCH-6")
def test_a_packet_whose_maker_was_killed_before_it_was_whole_is_no_task(home: str) -> None:
    killed = {"HOLDFAST_FAILPOINT": "create.staged=kill"}
    assert holdfast("run", "-d", "--id", "it", "--", "true", env=killed, cwd=workspace()).returncode == -9
    (left,) = os.listdir(os.path.join(home, "tasks"))
    assert left.startswith(".new-")
    assert holdfast("ls", "-q", "--all").stdout == ""
    # The name is free.
    Task.start("--id", "it", "--", "true").wait_for("completed")


def gated(name: str = "go") -> tuple[str, str]:
    """A file to make, and a shell line that waits for it."""
    path = os.path.join(workspace(), name)
    return path, f"until [ -e {path} ]; do sleep 0.02; done"


def touch(path: str) -> None:
    with open(path, "w", encoding="utf-8"):
        pass


@pytest.mark.req("PKT-11", "SUP-10")
def test_at_the_end_exit_status_then_manifest_then_marker(home: str) -> None:
    gate, wait = gated()
    task = Task.shell(wait)
    pid = task.agent_pid()
    runner = task.runner_pid()
    folders = [task.path("attempts", "001-command_run"), task.packet, task.path("done"), task.path("outputs")]
    with renames_into(*folders) as so_far:
        touch(gate)
        task.wait_for("completed")
        eventually(lambda: not os.path.exists(f"/proc/{runner}"), what="the runner left")
        names = so_far()
    assert pid > 0
    last = {name: len(names) - 1 - names[::-1].index(name) for name in names}
    order = ["exit.json", "exit_code", "done", "attempt.json", "command_run.gate_result.json"]
    order += ["command_run.done", "manifest.json", "_summary.md", "_task.done"]
    assert sorted(order, key=lambda name: last[name]) == order, names
    # After the marker, the manifest no longer changes.
    assert names[-1] == "_task.done"


@pytest.mark.req("PKT-7", "PKT-10", "LCH-6", "W-C3")
def test_the_manifest_exists_before_the_agent_with_pid_0(home: str) -> None:
    """The command looks at the manifest that it finds when it starts."""
    gate, wait = gated()
    task = Task.shell(f"cp $HOLDFAST_PACKET/manifest.json seen.json; {wait}")
    seen_path = os.path.join(workspace(), "seen.json")
    eventually(lambda: os.path.getsize(seen_path) > 0, what="the command has begun")
    seen = task.json(seen_path)
    assert seen["status"] in ("spawning", "running")
    assert seen["pid"] in (None, task.agent_pid())
    assert seen["tmpdir"] == task.packet
    manifest = task.manifest()
    for name in (
        "task_id",
        "task_name",
        "goal",
        "agent",
        "project_dir",
        "session_name",
        "tmpdir",
        "started_at",
    ):
        assert isinstance(manifest[name], str), name
        assert manifest[name], name
    for name in ("pid", "attempt", "retry_count", "total_retries", "paid_calls", "run"):
        assert type(manifest[name]) is int, name
    assert manifest["schema"] == "holdfast.manifest/1"
    assert manifest["project_dir"] == workspace()
    assert manifest["model"] is None
    assert manifest["interrupt"] is None
    assert manifest["wake_at"] is None
    heartbeat = manifest["heartbeat"]
    assert (heartbeat["message_count"], heartbeat["tool_calls"]) == (0, 0)
    assert set(manifest["usage"]) == {"input_tokens", "output_tokens", "cost_usd", "unpriced_calls"}
    assert set(manifest["runner"]) == {"pid", "boot_id", "start_time"}
    for name in ("started_at", "deadline_at", "last_checked_at"):
        assert UTC.fullmatch(manifest[name]), (name, manifest[name])
    touch(gate)
    task.wait_for("completed")


@pytest.mark.req("PKT-7")
def test_run_prints_the_manifest_that_is_already_there(home: str) -> None:
    done = holdfast("run", "-d", "--json", "--", "sh", "-c", "exit 0", cwd=workspace())
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)
    assert manifest["task_id"]
    Task(os.path.join(home, "tasks", manifest["task_id"])).wait_for("completed")


@pytest.mark.req("PKT-8", "OUT-6")
def test_the_end_adds_its_time_the_exit_code_and_the_last_100_lines(home: str) -> None:
    task = Task.shell("seq 1 250; exit 3")
    manifest = task.wait_for("failed")
    assert manifest["exit_code"] == 3
    assert type(manifest["exit_code"]) is int
    assert manifest["exit_signal"] is None
    assert UTC.fullmatch(manifest["finished_at"])
    assert manifest["output_tail"].split("\n") == [str(n) for n in range(151, 251)]
    assert manifest["pid"] is None
    shown = task.ask("show", "--json")
    assert {**task.json(task.path("manifest.json")), "runner_gone": False} == json.loads(shown.stdout)


@pytest.mark.req("PKT-8", "W-A6")
def test_the_tail_has_100_lines_also_when_they_are_long(home: str) -> None:
    task = Task.shell("i=0; while [ $i -lt 120 ]; do printf '%01000d\\n' $i; i=$((i+1)); done")
    manifest = task.wait_for("completed")
    assert [int(line) for line in manifest["output_tail"].split("\n")] == list(range(20, 120))


@pytest.mark.req("PKT-9")
def test_updates_of_the_runner_keep_what_was_there(home: str) -> None:
    """Also a field that this version does not know; and a crash is in the manifest while it lasts."""
    gate, wait = gated()
    task = Task.shell(f"{wait}; exit 0")
    task.agent_pid()
    task.kill_runner()
    before = {**task.manifest(), "from_the_future": {"x": 1}}
    with open(task.path("manifest.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(before))
    task.start_runner()
    eventually(lambda: len(task.events("runner.started")) == 2, what="the second runner")
    touch(gate)
    after = task.wait_for("completed")
    assert after["from_the_future"] == {"x": 1}
    assert set(before) <= set(after)
    for name in ("task_id", "goal", "project_dir", "started_at", "session_name", "tmpdir"):
        assert after[name] == before[name]


@pytest.mark.req("PKT-9", "BUD-7")
def test_an_abandoned_task_says_when_and_why(home: str) -> None:
    task = Task.shell("kill -KILL $$", "--max-retries", "0")
    manifest = task.wait_for("abandoned")
    assert UTC.fullmatch(manifest["abandoned_at"])
    assert "retries" in manifest["abandon_reason"]
    assert (manifest["exit_code"], manifest["exit_signal"]) == (137, 9)
    assert task.ask("wait").returncode == 5


@pytest.mark.req("PKT-12")
def test_the_current_session_shows_the_present_attempt(home: str) -> None:
    gate = os.path.join(workspace(), "go")
    task = Task.play(Scenario().say("one").tool("Bash", output="x").wait_file(gate), prompt="some work")
    task.wait_for_event("agent.tool_finished")

    def shown() -> dict[str, Any] | None:
        session = task.json("state", "current-session.json")
        return session if session["heartbeat"]["tool_calls"] else None

    session = eventually(shown, what="the tool call is shown", journal=task.packet)
    assert re.fullmatch(r"ses_[0-9a-f]{8}", session["session_id"])
    assert session["agent_session_id"] == task.manifest()["session_id"]
    assert session["pid"] == task.agent_pid()
    assert session["work"] == {"id": task.id, "details": "some work"}
    assert session["status"] == "running"
    assert UTC.fullmatch(session["started_at"])
    assert UTC.fullmatch(session["status_updated_at"])
    assert type(session["start_epoch"]) is int
    assert session["exit_code"] is None
    assert session["ended_at"] is None
    assert session["heartbeat"]["message_count"] >= 1
    assert session["heartbeat"]["tool_calls"] == 1
    assert session["interrupt"] == {"requested": False, "reason": None, "timestamp": None}
    for name in ("stdout", "stderr"):
        assert os.path.exists(task.path(session["logs"][name]))
    moved = task.events("task.moved")[-1]
    assert session["status_updated_at"] == moved["at"]
    touch(gate)
    task.wait_for("completed")
    session = task.json("state", "current-session.json")
    assert (session["status"], session["exit_code"]) == ("completed", 0)
    assert UTC.fullmatch(session["ended_at"])


@pytest.mark.req("PKT-1", "PKT-2", "PKT-21", "LCH-2")
def test_a_packet_has_the_documented_layout_and_is_private(home: str) -> None:
    task = Task.play(Scenario().say("hello"), prompt="a prompt")
    task.wait_for("completed")
    present = {
        os.path.relpath(os.path.join(folder, name), task.packet)
        for folder, _, names in os.walk(task.packet)
        for name in names
    }
    attempt = "attempts/001-scripted_run"
    expected = {"manifest.yaml", "manifest.json", "events.jsonl", "output.log", "runner.lock"}
    expected |= {"inputs/user_request.md", "outputs/_summary.md", "outputs/scripted_run.gate_result.json"}
    expected |= {"done/scripted_run.done", "done/_task.done", "state/current-session.json"}
    names = (
        "lock prompt argv.json identity.json pid exit.json exit_code done stdout.log stderr.log attempt.json"
    )
    expected |= {f"{attempt}/{name}" for name in names.split()}
    assert expected <= present
    # The captured environment may hold keys: it is gone with the task's end. Nothing temporary is left.
    assert "env.json" not in present
    assert [name for name in present if name.endswith(".tmp")] == []
    for folder, folders, files in os.walk(task.packet):
        for name in folders:
            assert stat.S_IMODE(os.lstat(os.path.join(folder, name)).st_mode) == 0o700, name
        for name in files:
            assert stat.S_IMODE(os.lstat(os.path.join(folder, name)).st_mode) == 0o600, name
    assert stat.S_IMODE(os.stat(task.packet).st_mode) == 0o700


@pytest.mark.req("PKT-13")
def test_every_move_is_one_of_the_table_and_an_end_carries_its_time(home: str) -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 1 ] || kill -KILL $$")
    manifest = task.wait_for("completed")
    assert ["spawning", *task.moves()] == [
        "spawning", "running", "crashed", "spawning", "running", "completing", "completed",
    ]  # fmt: skip
    for move in task.events("task.moved"):
        assert move["old"] != move["new"]
    assert manifest["finished_at"] == task.events("task.moved")[-1]["at"]
