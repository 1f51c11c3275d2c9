"""What pages of `holdfast serve` read and ask for, against real tasks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import clock
from holdfast.testing import Scenario
from holdfast.views.web import server
from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually
from tests.support.web import Served, serving


@pytest.fixture
def served(home: str) -> Iterator[Served]:
    workspace()
    with serving() as server:
        yield server.enter()


def test_the_board(served: Served) -> None:
    one = Task.shell("echo first words", "--id", "one")
    one.wait_for("completed")
    two = Task.shell(kin.WAIT, "--id", "two")
    two.wait_for("running")
    found = served.get("/api/tasks")
    rows = {row["task_id"]: row for row in found["rows"]}
    assert found["groups"] == ["needs you", "working", "waiting", "queued", "ended"]
    assert (rows["one"]["group"], rows["one"]["state"]) == ("ended", "completed")
    assert rows["one"]["last_line"] == "first words"
    assert (rows["two"]["group"], rows["two"]["is_counting"]) == ("working", True)
    assert served.get("/api/status")["counts"] == {"completed": 1, "running": 1}
    kin.go()
    two.wait_for("completed")


def test_the_board_has_the_places_of_queued_tasks_and_hears_of_new_ones(served: Served) -> None:
    for task_id in ("one", "two"):
        assert holdfast("submit", "--id", task_id, "--", "true").returncode == 0

    def places() -> dict[str, int]:
        rows = served.get("/api/tasks")["rows"]
        return {row["task_id"]: row["queue"]["position"] for row in rows if row["queue"]}

    assert places() == {"one": 1, "two": 2}
    with served.stream("/api/stream") as messages:
        assert next(messages)[0] == "hello"
        assert holdfast("submit", "--id", "first", "--priority", "high", "--", "true").returncode == 0
        told: dict[str, int] = {}
        for _, _, data in messages:
            rows = data.items()
            told |= {task_id: row["queue"]["position"] for task_id, row in rows if row.get("queue")}
            if len(told) == 3:
                break
    assert told == places() == {"first": 1, "one": 2, "two": 3}


def test_the_board_hears_of_every_task(served: Served) -> None:
    with served.stream("/api/stream") as messages:
        assert next(messages)[0] == "hello"
        Task.shell("echo hi", "--id", "it")
        states: list[str] = []
        for kind, _, data in messages:
            assert kind == "board"
            states += [row["state"] for row in data.values()]
            if states[-1] == "completed":
                break
    assert served.get("/api/tasks")["rows"][0]["task_id"] == "it"


def test_queued_tasks_have_their_place_and_say_why_they_wait(served: Served) -> None:
    for name in ("one", "two"):
        assert holdfast("submit", "--id", name, "--not-before", "23:59", "--", "true").returncode == 0
    places = {
        row["task_id"]: (row["queue"]["position"], row["last_line"].partition(" 2")[0])
        for row in served.get("/api/tasks")["rows"]
    }
    assert places == {"one": (1, "not before"), "two": (2, "not before")}
    with served.stream("/api/stream") as messages:
        assert next(messages)[0] == "hello"
        assert holdfast("queue", "priority", "two", "high").returncode == 0
        position: dict[str, int] = {}
        while position != {"two": 1, "one": 2}:
            kind, _, rows = next(messages)
            assert kind == "board"
            position |= {task: row["queue"]["position"] for task, row in rows.items()}


def test_many_tasks_that_change_at_once_are_loaded_again(served: Served, home: str) -> None:
    """One message with all their rows would be too large."""
    first = Task.shell('echo "go on?" > "$INTERRUPT_FILE"; sleep 60', "--id", "t0000")
    first.wait_for("interrupted")
    manifest = first.manifest()
    with served.stream("/api/stream") as messages:
        assert next(messages)[0] == "hello"
        os.rename(os.path.join(home, "tasks"), os.path.join(home, "elsewhere"))
        for number in range(1, 1200):
            folder = os.path.join(home, "elsewhere", f"t{number:04d}")
            os.makedirs(folder)
            with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as file:
                json.dump({**manifest, "task_id": f"t{number:04d}", "task_name": "x" * 250}, file)
        os.rename(os.path.join(home, "elsewhere"), os.path.join(home, "tasks"))
        for kind, _, data in messages:
            assert "error" not in data
            if kind == "again":
                break
    assert len(served.get("/api/tasks")["rows"]) >= 1000


def test_a_small_answer_is_not_held_back() -> None:
    """Nagle's algorithm would keep the body until the browser has confirmed the headers: 40 ms."""
    import asyncio

    async def delays() -> bool:
        accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            option = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            accepted.set_result(not option)
            writer.close()

        listening = server.bind("127.0.0.1", 0)
        async with await asyncio.start_server(take, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            try:
                return await asyncio.wait_for(accepted, 10)
            finally:
                writer.close()

    assert not asyncio.run(delays())


def test_a_page_that_comes_back_gets_every_event_once(served: Served) -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.wait_for("running")
    seen: list[dict[str, Any]] = []
    last = ""

    def read(count: int) -> None:
        nonlocal last
        headers = {"Last_Event_ID": last} if last else {}
        with served.stream("/api/stream?task=it", **headers) as messages:
            for kind, id, data in messages:
                if kind == "journal":
                    seen.extend(data["events"])
                    last = id
                    count -= 1
                    if count == 0:
                        return

    read(1)
    first = len(seen)
    kin.go()  # while nobody listens
    task.wait_for("completed")
    read(1)
    journal = [event["id"] for event in task.events()]
    assert 0 < first < len(journal)
    assert [event["id"] for event in seen] == journal
    assert last == f"it:{os.path.getsize(task.path('events.jsonl'))}"


def test_nothing_is_repeated_from_any_place(served: Served) -> None:
    task = Task.shell("echo hi", "--id", "it")
    task.wait_for("completed")
    place, data = 0, task.read("events.jsonl")
    for at, line in enumerate(data.splitlines(keepends=True)[:-1]):
        place += len(line)
        with served.stream("/api/stream?task=it", Last_Event_ID=f"it:{place}") as messages:
            events = next(found for kind, _, found in messages if kind == "journal")["events"]
        assert events[0]["id"] == json.loads(data.splitlines()[at + 1])["id"]


def test_the_log_is_followed(served: Served) -> None:
    task = Task.shell(f"echo one; {kin.WAIT} echo two", "--id", "it")
    task.wait_for_log("one")
    window = served.get("/api/tasks/it/log")
    assert "one" in window["text"]
    with served.stream(f"/api/stream?task=it&log={window['end']}") as messages:
        assert next(messages)[0] == "hello"
        kin.go()
        text = next(data for kind, _, data in messages if kind == "log")["text"]
    assert text.startswith("two")
    task.wait_for("completed")


def test_what_happens_is_on_the_screen_soon(served: Served) -> None:
    """Event to page within 300 ms; here with room for a busy machine."""
    with served.stream("/api/stream") as messages:
        next(messages)
        Task.shell("exit 0", "--id", "it")
        for _, _, data in messages:
            if data["it"]["state"] == "completed":
                break
        late_s = (
            time.time()
            - os.stat(os.path.join(os.environ["HOLDFAST_HOME"], "tasks/it/manifest.json")).st_mtime
        )
    assert late_s < 2.0


def test_details_of_a_task(served: Served) -> None:
    task = Task.shell("echo hi; exit 3", "--id", "it", "--max-retries", "0")
    task.wait_for("failed", "abandoned")
    found = served.get("/api/tasks/it")
    assert found["schema"] == "holdfast.detail/1"
    assert [span["kind"] for span in found["timeline"]["spans"]] == ["attempt"]
    assert found["next"]["steps"][0]["command"].startswith("holdfast ")
    assert [line["text"] for line in served.get("/api/tasks/it/search?text=HI")["lines"]] == ["hi"]
    assert served.get("/api/tasks/it/usage") == {"reports": []}
    events = served.get("/api/tasks/it/events")
    assert events["events"][0]["type"] == "task.created"
    assert served.get(f"/api/tasks/it/events?begin={events['end']}")["events"] == []
    assert served.ask("GET", "/api/tasks/nothing")[0] == 404
    status, _, body = served.ask("GET", "/api/tasks/it/diff")
    assert status == 409
    assert json.loads(body)["error"]


def test_a_task_as_it_was(served: Served) -> None:
    task = Task.shell(f"echo one; {kin.WAIT} echo two", "--id", "it")
    task.wait_for_log("one")
    until = time.monotonic() + 1.5  # times of the log are exact to a second
    eventually(lambda: time.monotonic() > until, 10)
    between = clock.iso_now()
    kin.go()
    task.wait_for("completed")
    assert served.get(f"/api/tasks/it/log?at={between}")["text"] == "one\n"
    assert "two" in served.get("/api/tasks/it/log")["text"]
    moments = served.get("/api/tasks/it/replay")["moments"]
    assert [each["state"] for each in moments if each["at"] <= between][-1] == "running"
    assert moments[-1]["state"] == "completed"
    for wrong in ("", "yesterday", "2026-13-99", "2026-01-01T00:00:00", "9" * 5000):
        assert served.ask("GET", f"/api/tasks/it/log?at={wrong}")[0] == 400, wrong


def test_an_ended_task_runs_again(served: Served) -> None:
    task = Task.shell("exit 3", "--id", "it", "--max-retries", "0")
    task.wait_for("failed", "abandoned")
    # A page cannot change what a task may do, nor from where: only a message is passed on.
    more = ({}, {"from": "command_run"}, {"deadline": "9h"}, {"permissions": "full"}, {"set": ["x"]})
    for number, body in enumerate(more, 1):
        status, told = served.post("/api/tasks/it/retry", {"message": "the disk is free", **body})
        assert status == 200, told
        eventually(lambda number=number: len(task.events("run.opened")) == number)
        task.wait_for("failed", "abandoned")
    changed = ("from_stage", "deadline_s", "permissions", "amended")
    assert not [event for event in task.events("run.opened") if any(event.get(name) for name in changed)]


def test_stop(served: Served) -> None:
    task = Task.shell("sleep 60", "--id", "it")
    task.wait_for("running")
    assert served.post("/api/tasks/it/stop", {"message": "wrong branch"}) == (
        200,
        {"task_id": "it", "notes": [], "has_ended": False},
    )
    task.wait_for("killed")
    assert served.post("/api/tasks/it/stop", {})[1]["has_ended"] is True


def test_an_answer_reaches_the_agent(served: Served) -> None:
    task = Task.shell('echo "which database?" > "$INTERRUPT_FILE"; sleep 60', "--id", "it")
    task.wait_for("interrupted")
    found = served.get("/api/tasks/it")
    assert found["question"]["question"] == "which database?"
    assert served.get("/api/tasks")["rows"][0]["group"] == "needs you"
    assert served.post("/api/tasks/it/resume", {"message": "the test one"})[0] == 200
    assert task.wait_for_event("request.applied")["by"]
    moved = eventually(lambda: [event for event in task.events("task.moved") if event.get("answer")])
    assert moved[0]["answer"] == "the test one"
    status, told = served.post("/api/tasks/it/approve", {})
    assert status == 409
    assert "approve" in told["error"]
    task.stop()


def test_an_action_survives_the_server(served: Served) -> None:
    """The runner that an action starts is no child of the server, and outlives it."""
    task = Task.shell(
        '[ -e asked ] || { touch asked; echo "go on?" > "$INTERRUPT_FILE"; }; sleep 60', "--id", "it"
    )
    task.wait_for("interrupted")
    assert served.post("/api/tasks/it/resume", {})[0] == 200
    task.wait_for("running")
    os.kill(served.process.pid, signal.SIGKILL)
    served.process.wait(20)
    assert processes.is_alive(task.runner_pid())
    task.stop()


def test_it_ends_quietly_while_a_page_is_open(served: Served) -> None:
    with served.stream("/api/stream") as messages:
        next(messages)
        begun = time.monotonic()
        errors = served.stop()
    assert (served.process.returncode, errors.count("\n")) == (0, 1), errors
    assert time.monotonic() - begun < 10


def test_a_server_that_waits_costs_nothing(served: Served) -> None:
    with served.stream("/api/stream") as messages:
        next(messages)

        def ticks() -> int:
            with open(f"/proc/{served.process.pid}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        before, until = ticks(), time.monotonic() + 3
        eventually(lambda: time.monotonic() > until, 10)
        assert ticks() - before <= 6, "2 % of a core, on a busy machine"
    for path in ("tasks", "status", "form", "queue", "metrics"):
        served.get(f"/api/{path}")
    fields = {"agent": "claude", "project": workspace(), "prompt": "x"}
    served.post("/api/tasks", {"check": True, "fields": fields})
    with open(f"/proc/{served.process.pid}/status", encoding="utf-8") as file:
        (kilobytes,) = [int(line.split()[1]) for line in file if line.startswith("VmRSS")]
    assert kilobytes < 60 * 1024


def test_the_queue(served: Served, home: str) -> None:
    assert served.get("/api/queue")["items"] == []
    assert holdfast("queue", "pause").returncode == 0
    assert holdfast("submit", "--id", "one", "--name", "First", "--", "true").returncode == 0
    assert holdfast("submit", "--id", "two", "--after", "one", "--", "true").returncode == 0
    found = served.get("/api/queue")
    assert [(item["task_id"], item["waits"]) for item in found["items"]] == [
        ("one", "paused"),
        ("two", "after one"),
    ]
    assert found["items"][0]["task_name"] == "First"
    assert (found["counts"], [each["count"] for each in found["waiting"]]) == ({"queued": 2}, [0, 1, 2])
    assert any("the queue is paused" in line for line in found["obstacles"])
    with open(os.path.join(home, "queue.db"), "wb") as file:
        file.write(b"nonsense" * 1000)
    found = served.get("/api/queue")
    assert found["items"] == []
    assert found["obstacles"]


def test_the_figures(served: Served) -> None:
    Task.play(Scenario().usage(input_tokens=10, cost_usd=0.5).result("ok"), "--id", "one").wait_for(
        "completed"
    )
    Task.shell("exit 3", "--id", "two", "--max-retries", "0").wait_for("failed", "abandoned")
    found = served.get("/api/metrics")
    assert (found["home"]["tasks"], found["last_24h"]["completed"]) == (2, 1)
    today = found["days"][-1]
    assert (today["completed"], today["failed"], len(found["days"])) == (1, 1, 30)
    agents = {each["agent"]: each for each in found["agents"]}
    assert agents["scripted"]["completed"] == 1
    assert agents["command"]["cost_usd"] is None


def test_the_form_has_the_schema_of_the_manifest(served: Served) -> None:
    found = served.get("/api/form")
    fields = found["schema"]["properties"]
    assert fields["permissions"]["enum"] == ["read", "edit"]
    assert (fields["max_turns"]["minimum"], fields["max_turns"]["maximum"]) == (1, 1_000_000)
    assert fields["on_limit"]["enum"] == ["ask", "end"]
    assert not {"env", "acceptance", "accept", "command"} & set(fields)
    status, told = served.post(
        "/api/tasks",
        {
            "check": True,
            "fields": {"agent": "claude", "project": workspace(), "prompt": "x", "max_turns": "-1"},
        },
    )
    assert (status, told["problems"]) == (400, {"max_turns": "must be at least 1"})


@pytest.mark.parametrize("prompt", ["fix 'it', \"now\"", "--yolo", "-", "two\nlines; $(id) `id`"])
def test_the_command_of_the_form_makes_the_same_task(home: str, prompt: str) -> None:
    """What is shown is typed into a shell: it must make the same task, and nothing else."""
    folder = os.path.join(os.path.dirname(home), "bin")
    os.mkdir(folder)
    for name, text in (
        ("claude", "#!/bin/sh\nexit 0\n"),
        ("holdfast", f'#!/bin/sh\nexec {sys.executable} -m holdfast "$@"\n'),
    ):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
    path = f"{folder}:{os.environ['PATH']}"
    fields = {
        "agent": "claude", "project": workspace(), "prompt": prompt, "name": "-n", "model": "sonnet",
        "permissions": "read", "budget_usd": "1.5", "max_turns": "9", "deadline_sec": "600",
        "on_limit": "end", "labels": ["team=x y"],
    }  # fmt: skip
    with serving(env={"PATH": path}) as served:
        served.enter()
        assert holdfast("queue", "pause").returncode == 0
        status, made = served.post("/api/tasks", {"is_queued": True, "fields": fields})
        assert status == 200, made
        done = subprocess.run(
            made["command"], shell=True, env={**os.environ, "PATH": path}, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (made["command"], done.stderr)
    specs = []
    for name in os.listdir(os.path.join(home, "tasks")):
        (created,) = Task(os.path.join(home, "tasks", name)).events("task.created")
        prompt_file = Task(os.path.join(home, "tasks", name)).read("inputs", "user_request.md")
        specs.append({**created["spec"], "task_id": "", "prompt": prompt_file})
    assert len(specs) == 2
    assert specs[0] == specs[1]
