"""Views under attack: killed, flooded, starved, fed every damaged packet and capture, on a full disk.

No task changes, no view shows a traceback, and each ends with a documented exit status.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast.store import lock as locks
from tests.conftest import Place
from tests.hostile.test_bad_files import DAMAGES, FILES, damage_file
from tests.support import disks, kin
from tests.support.live_views import LONG, VIEWS, View, memory_mb
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually, holds

pytestmark = pytest.mark.timeout(300)

CAPTURES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "captures")
AGENTS = ("claude", "codex", "copilot", "gemini", "opencode", "pi")
#: 10,000 lines a second for three seconds; it waits before and after.
FLOOD = """
import os, sys, time
began = time.monotonic()
for part in range(30):
    sys.stdout.write("".join(f"line {part:02}.{number:04} of the flood\\n" for number in range(1000)))
    sys.stdout.flush()
    time.sleep(max(0.0, began + (part + 1) * 0.1 - time.monotonic()))
print("the flood is over", flush=True)
"""


#: As kin.WAIT, for longer than all of it takes.
WAIT = "i=0; while [ ! -e go ] && [ $i -lt 6000 ]; do sleep 0.05; i=$((i+1)); done; "


def _nothing() -> None:
    """It only takes time."""


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


class Bystanders:
    """Three tasks, and what must stay as it is of each: one at work, one that asks, one that has ended."""

    def __init__(self) -> None:
        self.works = Task.shell(f"echo at work; {WAIT}", "--id", "works", "--stale", "none")
        self.asks = Task.shell('echo "which?" > "$INTERRUPT_FILE"; sleep 600', "--id", "asks")
        self.ended = Task.shell("echo done", "--id", "ended")
        self.works.wait_for_log("at work")
        self.asks.wait_for("interrupted", within_s=30)
        self.ended.wait_for("completed", within_s=30)
        for task in (self.asks, self.ended):
            eventually(lambda task=task: not locks.is_held(task.path("runner.lock")), 20, "its runner left")
        self.before = self._state()

    def _state(self) -> list[object]:
        found: list[object] = [self.works.agent_pid(), self.works.runner_pid()]
        for task in (self.works, self.asks, self.ended):
            manifest = task.manifest()
            found.append([manifest[name] for name in ("status", "run", "attempt", "status_updated_at")])
            found.append(task.read("events.jsonl"))
        return found

    def check(self) -> None:
        """Nothing about them has changed."""
        after = self._state()
        assert after == self.before

    def finish(self) -> None:
        """The task at work goes on, and nothing is left of the views."""
        self.check()
        kin.go()
        self.works.wait_for("completed", within_s=30)
        assert [event["outcome"] for event in self.works.events("attempt.ended")] == ["success"]
        self.asks.stop()


@pytest.fixture
def bystanders() -> Bystanders:
    return Bystanders()


# ── killed ──


@pytest.mark.parametrize("name", list(VIEWS))
def test_a_view_that_is_killed_changes_nothing(bystanders: Bystanders, name: str) -> None:
    """At once, in the middle of its start, and while it shows the task."""
    for after_s in (0.0, 0.15, None):
        view = View(name, "works")
        if after_s is None:
            view.wait_until_shown()
        else:
            holds(_nothing, after_s)
        view.process.kill()
        view.judge(view.wait())
    bystanders.finish()


# ── flooded ──


def test_a_flood_of_output_reaches_every_view(bystanders: Bystanders) -> None:
    script = os.path.join(workspace(), "flood.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(FLOOD)
    command = f"echo before; while [ ! -e flood ]; do sleep 0.05; done; {sys.executable} -IS {script}"
    task = Task.shell(command, "--id", "flood")
    task.wait_for_log("before")
    views = {name: View(name, "flood") for name in LONG}
    for view in views.values():
        view.wait_until_shown()
    views["top"].press("\r")  # the page of a task
    kin.go("flood")
    for name in ("share", "digest"):
        view = View(name, "flood")
        assert view.wait() == 0, view.errors
        view.judge(0)
    task.wait_for("completed", within_s=60)
    for name in ("attach", "logs"):
        assert views[name].wait() == 0, views[name].errors
        assert "the flood is over" in views[name].said
        views[name].judge(0)
    for name in ("top", "serve", "mcp", "ls"):
        assert views[name].answers(), name
        assert memory_mb(views[name].process.pid) < 150, name
        views[name].judge()
    bystanders.finish()


# ── starved ──


def test_views_that_stand_still_catch_up(bystanders: Bystanders) -> None:
    task = Task.shell("echo before; while [ ! -e on ]; do sleep 0.05; done; echo after", "--id", "it")
    task.wait_for_log("before")
    views = {name: View(name, "it") for name in LONG}
    for view in views.values():
        view.wait_until_shown()
        view.process.send_signal(signal.SIGSTOP)
    kin.go("on")
    task.wait_for("completed", within_s=30)
    for view in views.values():
        view.process.send_signal(signal.SIGCONT)
    for name in ("attach", "logs"):
        assert views[name].wait() == 0
        assert "after" in views[name].said
        views[name].judge(0)
    eventually(lambda: "completed" in views["ls"].said, 20, "ls shows the end")
    eventually(lambda: "completed" in views["mcp"].said, 20, "mcp answers")
    for name in ("top", "serve", "mcp", "ls"):
        assert views[name].answers(), name
        views[name].judge()
    bystanders.finish()


@pytest.mark.parametrize("name", list(VIEWS))
def test_a_view_without_descriptors_says_so(bystanders: Bystanders, name: str) -> None:
    for files in (5, 7, 9, 12, 16, 24, 40):
        view = View(name, "works", files=files)
        try:
            eventually(lambda view=view: view.said or view.process.poll() is not None, 20, "it shows or ends")
            if name == "serve" and view.answers():
                _flood_of_connections(view)
            elif name in LONG:
                holds(_nothing, 0.5)
        finally:
            view.judge()
    bystanders.finish()


def _flood_of_connections(serve: View) -> None:
    """More than it can accept; it answers again when they are gone."""
    address = serve.said.partition("/#")[0].strip().removeprefix("http://")
    port = int(address.rpartition(":")[2])  # only browsers know names below localhost
    opened = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(60)]
    holds(_nothing, 1.0)
    for each in opened:
        each.close()
    eventually(serve.answers, 30, "it answers again")


@pytest.mark.parametrize("name", list(VIEWS))
def test_a_view_that_nobody_reads_and_one_whose_reader_leaves(bystanders: Bystanders, name: str) -> None:
    """A pipe that is full, then closed."""
    with open(bystanders.ended.path("output.log"), "a", encoding="utf-8") as file:
        file.write("a long line of the log\n" * 40_000)
    view = View(name, "ended" if name in ("share", "logs") else "works", is_unread=True)
    holds(bystanders.check, 1.5)
    view.close()
    if name in ("serve", "ls", "attach"):  # they need not notice before they print again
        view.process.send_signal(signal.SIGINT)
    view.judge(view.wait())
    bystanders.finish()


# ── a full disk ──


@pytest.mark.parametrize("name", list(VIEWS))
def test_a_view_that_cannot_write_shows_what_there_is(bystanders: Bystanders, name: str) -> None:
    """No byte can be written to any file."""
    view = View(name, "ended" if name == "share" else "works", written_bytes=0)
    view.wait_until_shown()
    if name in LONG:
        holds(bystanders.check, 1.0)
        assert view.answers(), view.errors
    view.judge()
    bystanders.finish()


@pytest.fixture
def small_disk(place: Place) -> Iterator[str]:
    """A file system of 2 MB."""
    path = os.path.join(place.root, "disk")
    with disks.small_disk(path, megabytes=2):
        yield path


def test_views_of_a_home_on_a_full_disk(small_disk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They show the tasks, change nothing, and go on when there is room again."""
    home = os.path.join(small_disk, "home")
    monkeypatch.setenv("HOLDFAST_HOME", home)
    task = Task.shell(f"echo at work; {WAIT}", "--id", "it", "--stale", "none")
    task.wait_for_log("at work")
    filler = disks.fill(small_disk)
    before = task.manifest()["status_updated_at"], task.agent_pid(), task.read("events.jsonl")
    for name in VIEWS:
        view = View(name, "it")
        view.wait_until_shown()
        if name in LONG:
            assert view.answers(), view.errors
        view.judge()
        assert (task.manifest()["status_updated_at"], task.agent_pid(), task.read("events.jsonl")) == before
    shared = holdfast("share", "it", "-o", os.path.join(small_disk, "it.html"))
    assert shared.returncode in (1, 3)
    assert "No space left" in shared.stderr
    assert "Traceback" not in shared.stderr
    assert not [name for name in os.listdir(small_disk) if "html" in name]
    os.unlink(filler)
    kin.go()
    task.wait_for("completed", within_s=60)


# ── every damaged packet ──


def _corpus(home: str, origin: str) -> list[str]:
    """Copies of an ended packet, each with one file damaged in one way."""
    names = [name.partition("/")[2] for name in FILES if name.startswith("bad/")]
    made: list[str] = []
    for number, name in enumerate(names):
        for at, damage in enumerate(DAMAGES):
            if damage in ("closed", "huge") or (damage == "device" and os.geteuid() != 0):
                continue  # root reads what is closed; a huge file is in test_bad_files
            is_full = os.environ.get("HOLDFAST_HOSTILE_FULL")
            if not is_full and (number + at) % 3 and damage != "pipe":
                continue
            task_id = f"d{number:02}-{damage.replace(' ', '-')}"
            path = os.path.join(home, "tasks", task_id)
            shutil.copytree(origin, path, symlinks=True, ignore=_no_pipes)
            damage_file(os.path.join(path, name), damage)
            made.append(task_id)
    return made


def _no_pipes(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name in ("bell", "lock", "runner.lock")]


def test_every_damaged_packet_costs_a_row_in_every_view(bystanders: Bystanders, home: str) -> None:
    made = _corpus(home, bystanders.ended.packet)
    views = {name: View(name, "works") for name in VIEWS}
    for name, view in views.items():
        view.wait_until_shown(60)
        assert name not in LONG or view.answers(), (name, view.errors)
    rows = {row["task_id"] for row in json.loads(holdfast("ls", "--all", "--json").stdout)}
    assert rows >= {*made, "works", "asks", "ended"}
    # Each of them, opened: by key, by request, by tool, by command.
    top, mcp = views["top"], views["mcp"]
    for number in range(min(40, len(made))):
        top.press("j\r")
        top.press("\t" * (number % 5))
        top.press("\x1b")
    for number, task_id in enumerate(made):
        mcp.send("tools/call", {"name": "show", "arguments": {"task": task_id}}, 10 + number)
    eventually(lambda: f'"id":{9 + len(made)}' in mcp.said.replace(" ", ""), 90, "mcp answers all")
    _open_all(views["serve"], made)
    for task_id in made[:: max(1, len(made) // 12)]:
        for name in ("share", "logs", "attach"):
            # One that looks alive is followed for ever.
            view = View(name, task_id)
            try:
                status = view.process.wait(8)
            except subprocess.TimeoutExpired:
                status = None
            view.judge(status if status is None else view.wait())
    for name, view in views.items():
        assert name not in LONG or view.answers(), (name, view.errors)
        view.judge()
    bystanders.finish()


def _open_all(serve: View, task_ids: list[str]) -> None:
    """Every page of every task. None may be an error of the server."""
    base, token = serve.said.strip().splitlines()[0].split("/#")
    host = base.removeprefix("http://")
    connection = http.client.HTTPConnection("127.0.0.1", int(host.rpartition(":")[2]), timeout=30)

    def ask(method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, bytes]:
        sent = {"Host": host, "Sec-Fetch-Site": "same-origin", "Origin": base, **headers}
        connection.request(method, path, body, sent | ({"Content-Type": "application/json"} if body else {}))
        answer = connection.getresponse()
        return answer.status, answer.read()

    status, body = ask("POST", "/api/session", json.dumps({"token": token}))
    assert status == 200, body
    bearer = f"Bearer {json.loads(body)['bearer']}"
    wrong: list[tuple[str, int, bytes]] = []
    for task_id in task_ids:
        for what in ("", "/log", "/events", "/diff", "/usage", "/replay"):
            status, body = ask("GET", f"/api/tasks/{task_id}{what}", Authorization=bearer)
            if status >= 500:
                wrong.append((task_id + what, status, body[:200]))
    connection.close()
    assert wrong == []


# ── every capture ──


def test_every_capture_as_output_is_shown_by_every_view(bystanders: Bystanders, home: str) -> None:
    """Six tasks, each with all recorded lines of its program; and all of them as output of a command."""
    stage = os.path.join(os.path.dirname(home), "stage")
    os.mkdir(stage)
    for agent in AGENTS:
        parts = sorted(
            os.path.join(CAPTURES, agent, name)
            for name in os.listdir(os.path.join(CAPTURES, agent))
            if name.endswith((".stdout.jsonl", ".stderr.txt"))
        )
        assert len(parts) > 20
        program = os.path.join(stage, agent)
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + "".join(f"cat '{part}'; echo\n" for part in parts))
            file.write("exit 0\n")
        os.chmod(program, 0o755)
    every = " ".join(f"{stage}/{agent};" for agent in AGENTS)
    views = {name: View(name, "works") for name in ("top", "serve", "mcp", "ls")}
    for view in views.values():
        view.wait_until_shown()
    env = {"PATH": f"{stage}:{os.environ['PATH']}"}
    flags = ("--max-retries", "0", "--timeout", "60s")
    tasks = [
        Task.start("--agent", agent, "--id", f"of-{agent}", *flags, "do it", env=env) for agent in AGENTS
    ]
    tasks.append(Task.shell(f"echo begun; {every} true", "--id", "of-all", *flags))
    for task in tasks:
        for name in ("attach", "logs"):
            view = View(name, task.id)
            views[f"{name} {task.id}"] = view
    for task in tasks:
        eventually(
            lambda task=task: task.manifest()["status"] not in ("spawning", "running", "completing"),
            90,
            f"{task.id} comes to an end",
        )
        for name in ("share", "digest"):
            view = View(name, task.id)
            status = view.wait()
            assert status == 0, view.errors
            view.judge(status)
    _open_all(views["serve"], [task.id for task in tasks])
    for name in ("top", "serve", "mcp", "ls"):
        assert views[name].answers(), name
    views["top"].press("\r\t\t\t")
    for view in views.values():
        view.judge()
    for task in tasks:
        if task.manifest()["status"] not in ("completed", "failed", "abandoned", "killed", "timeout"):
            task.stop()
    bystanders.finish()
