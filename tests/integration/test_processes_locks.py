"""One runner per task, one answer per request: races for the lock, and badly timed requests."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def drop(task: Task, name: str, data: bytes) -> str:
    """Put anything into the inbox, as a view does: whole or not at all. Returns its path."""
    path = task.path("inbox", name)
    with open(task.path("inbox", f".{name}.tmp"), "wb") as file:
        file.write(data)
    os.rename(task.path("inbox", f".{name}.tmp"), path)
    return path


def ring(task: Task) -> None:
    bell = os.open(task.path("bell"), os.O_WRONLY | os.O_NONBLOCK)
    os.write(bell, b"!")
    os.close(bell)


def request(verb: object = "stop", **changes: object) -> bytes:
    data = {"schema": "holdfast.request/1", "id": ULID, "verb": verb, "args": {}, "by": "a test", "at": "now"}
    return json.dumps({**data, **changes}).encode()


# ── one runner ──

_RACE = """
import os, sys
from holdfast.runner.main import main
packet, count = sys.argv[1], int(sys.argv[2])
read_end, write_end = os.pipe()
pids = []
for _ in range(count):
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            os.close(write_end)
            os.read(read_end, 1)   # all begin when the pipe is closed
            os.close(read_end)
            status = main([packet])
        finally:
            os._exit(status)
    pids.append(pid)
os.close(read_end)
os.close(write_end)
print(*[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
"""


@pytest.mark.req("W-A6", "PKT-17")
def test_of_fifty_racing_runners_exactly_one_holds_the_task() -> None:
    task = kin.make("--", "sh", "-c", kin.WAIT + "exit 0")
    race = subprocess.Popen(
        [sys.executable, "-c", _RACE, task.packet, "50"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    task.agent_pid()
    eventually(lambda: len(processes.descendants(race.pid)) <= 5, within_s=30, what="the losers are gone")
    kin.go()
    out, err = race.communicate(timeout=30)
    statuses = sorted(int(word) for word in out.split())
    assert statuses == [0] + [75] * 49, err.decode()
    assert len(task.events("runner.started")) == 1
    assert len(task.events("attempt.opened")) == 1
    assert task.wait_for("completed")["attempt"] == 1


@pytest.mark.req("W-A6")
def test_racing_runners_after_a_kill_adopt_the_agent_once() -> None:
    task = Task.shell(kin.WAIT + "exit 0")
    agent = task.agent_pid()
    task.kill_runner()
    race = subprocess.Popen(
        [sys.executable, "-c", _RACE, task.packet, "10"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    task.wait_for_event("runner.started", 2)
    assert task.manifest()["pid"] == agent
    eventually(lambda: len(processes.descendants(race.pid)) == 1, within_s=30, what="the losers are gone")
    kin.go()
    out, err = race.communicate(timeout=30)
    assert sorted(out.split()) == [b"0"] + [b"75"] * 9, err.decode()
    assert len(task.events("attempt.ended")) == 1


@pytest.mark.req("W-A6")
def test_a_runner_of_a_task_that_has_ended_writes_nothing() -> None:
    task = Task.shell("exit 0")
    task.wait_for("completed")
    eventually(lambda: task.manifest()["runner"] is None, what="the runner left")
    before = {name: task.read(name) for name in ("events.jsonl", "manifest.json", "output.log")}
    assert kin.run_runner(task) == 0
    assert {name: task.read(name) for name in before} == before


# ── requests at the worst moment ──

_AT_RANDOM_MOMENTS = """
import contextlib, io, os, random, sys, time
from holdfast.errors import RequestRefused
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.requests import send_request
from holdfast.views.cli import entry
home, seed, count = Home(os.environ["HOLDFAST_HOME"]), int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)
answers = []
for number in range(count):
    task_id = f"t{number}"
    with contextlib.redirect_stdout(io.StringIO()):
        assert entry.run(["run", "-d", "--id", task_id, "--", "true"]) == 0
    time.sleep(chance.random() * 0.06)
    try:
        send_request(load.find(home, task_id), "stop", {})
        answers.append("applied")
    except RequestRefused:
        answers.append("refused")
    except Exception as error:
        answers.append(repr(error))
print(*answers)
"""


@pytest.mark.req("W-A6", "PKT-21")
def test_a_request_at_any_moment_around_a_runners_end_is_answered(home: str) -> None:
    seed = random.randrange(10**6)
    argv = [sys.executable, "-c", _AT_RANDOM_MOMENTS, str(seed), "25"]
    done = subprocess.run(argv, capture_output=True, timeout=90, cwd=workspace(), check=False)
    answers = done.stdout.split()
    assert len(answers) == 25, (seed, done.stderr)
    assert set(answers) <= {b"applied", b"refused"}, (seed, answers)
    for number, answer in enumerate(answers):
        task = Task(os.path.join(home, "tasks", f"t{number}"))
        task.wait_for("killed", "completed")
        assert len(task.events(f"request.{answer.decode()}")) == 1, (seed, number)
        assert os.listdir(task.path("inbox")) == []
        # Ended once, whichever was first.
        assert len([e for e in task.events("task.moved") if e["new"] in ("killed", "completed")]) == 1


@pytest.mark.req("W-A6")
@pytest.mark.parametrize("point", ["runner.left", "runner.before_release", "runner.released"])
@pytest.mark.parametrize("action", ["stop", "kill"])
def test_a_request_is_answered_when_the_runner_freezes_or_dies_at_its_end(
    point: str, action: str, place
) -> None:
    env = {"HOLDFAST_FAILPOINT": f"{point}={action}"}
    env["HOLDFAST_FAILPOINT_ONCE"] = os.path.join(place.root, "once")
    task = Task.shell("exit 0", env=env)
    runner = task.wait_for_event("runner.started")["pid"]
    frozen = action == "stop"
    eventually(lambda: kin.state(runner) == ("T" if frozen else ""), what="the failpoint acted")
    holds = frozen and point != "runner.released"
    done = task.ask("interrupt")
    assert done.returncode == (6 if holds else 3), done.stderr
    if holds:
        assert len(os.listdir(task.path("inbox"))) == 1
    if frozen:
        os.kill(runner, signal.SIGCONT)
    assert "has already ended: completed" in task.wait_for_event("request.refused")["reason"]
    eventually(lambda: os.listdir(task.path("inbox")) == [], what="the request is unlinked")
    eventually(lambda: not processes.is_alive(runner), what="the runner is gone")
    assert task.wait_for("completed")["exit_code"] == 0


@pytest.mark.req("PKT-17", "PKT-21")
def test_two_views_at_once_are_both_answered() -> None:
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    argv = [sys.executable, "-m", "holdfast", "stop", task.id]
    views = [subprocess.Popen(argv, stderr=subprocess.PIPE) for _ in range(4)]
    outcomes = [(view.communicate(timeout=30)[1], view.returncode)[1] for view in views]
    assert outcomes == [0, 0, 0, 0]
    task.wait_for("killed")
    answers = task.events("request.")
    assert len({e["request"] for e in answers}) == len(answers) > 0


@pytest.mark.req("PKT-21")
def test_a_request_whose_answer_was_journalled_but_not_unlinked_is_not_applied_twice(place) -> None:
    env = {"HOLDFAST_FAILPOINT": "step.answer_request=kill"}
    env["HOLDFAST_FAILPOINT_ONCE"] = os.path.join(place.root, "once")
    task = Task.shell(kin.WAIT + "exit 0", env=env)
    agent = task.agent_pid()
    # The view itself starts the next runner.
    assert task.ask("interrupt", "-m", "why?").returncode == 0
    assert task.wait_for("interrupted")["interrupt"]["reason"] == "why?"
    assert not processes.is_alive(agent)
    assert len(task.events("request.applied")) == 1
    assert len(task.events("stop.intended")) == 1
    assert len(task.events("runner.started")) == 2
    task.stop()


@pytest.mark.req("PKT-21", "PKT-10")
def test_a_request_is_on_disk_before_its_sender_waits_for_the_answer(place) -> None:
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    notes = os.path.join(place.root, "notes")
    env = {"HOLDFAST_FAILPOINT": "*=note", "HOLDFAST_FAILPOINT_NOTES": notes}
    assert holdfast("stop", task.id, env=env).returncode == 0
    with open(notes, encoding="utf-8") as file:
        passed = [line.split()[2] for line in file]
    # The point before the fsync of the file, and the one before that of its directory, are passed by durable
    # writes only.
    assert passed[: passed.index("inbox.dropped") + 1][-4:] == [
        "atomic.before_fsync",
        "atomic.before_rename",
        "atomic.after_rename",
        "inbox.dropped",
    ]
    task.wait_for("killed")


@pytest.mark.req("PKT-21", "W-A6")
def test_a_retry_whose_runner_was_killed_after_run_opened_is_applied_with_its_environment(place) -> None:
    task = Task.shell("echo word is $WORD; test $WORD = new", "--env", "WORD", env={"WORD": "old"})
    task.wait_for("failed")
    assert not os.path.exists(task.path("env.json"))
    env = {"HOLDFAST_FAILPOINT": "requests.run_opened=kill", "WORD": "new"}
    env["HOLDFAST_FAILPOINT_ONCE"] = os.path.join(place.root, "once")
    # The view starts the next runner itself when the first one dies.
    done = holdfast("retry", task.id, env=env)
    assert os.path.exists(env["HOLDFAST_FAILPOINT_ONCE"])
    assert done.returncode == 0, done.stderr
    task.wait_for_event("run.opened")
    eventually(lambda: len(task.events("attempt.ended")) == 2, what="it ran again", journal=task.packet)
    task.wait_for("completed")
    assert [line for line in task.log().splitlines() if "word" in line] == ["word is old", "word is new"]
    (applied,) = task.events("request.")
    assert (applied["type"], applied["verb"]) == ("request.applied", "retry")
    assert len(task.events("run.opened")) == 1
    assert os.listdir(task.path("inbox")) == []


# ── refused, unanswered ──


@pytest.mark.req("PKT-21")
def test_what_is_not_possible_in_this_state_is_refused_with_its_reason() -> None:
    task = Task.shell(kin.WAIT + "exit 0")
    task.agent_pid()
    for verb, reason in (("resume", "it is running"), ("retry", "it has not ended")):
        done = task.ask(verb)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith(f"error: cannot {verb} {task.id}: {reason}")
    assert [e["verb"] for e in task.events("request.refused")] == ["resume", "retry"]
    kin.go()
    task.wait_for("completed")
    for verb, status in (("stop", 0), ("interrupt", 3), ("resume", 3)):
        assert task.ask(verb).returncode == status
    assert task.status() == "completed"


@pytest.mark.req("PKT-21")
def test_a_frozen_runner_leaves_the_request_standing_until_it_is_woken() -> None:
    task = Task.shell(kin.WAIT)
    agent, runner = task.agent_pid(), task.runner_pid()
    os.kill(runner, signal.SIGSTOP)
    done = task.ask("stop")
    assert done.returncode == 6
    assert "the request is still pending" in done.stderr
    assert len(os.listdir(task.path("inbox"))) == 1
    assert processes.is_alive(agent)
    os.kill(runner, signal.SIGCONT)
    task.wait_for("killed")
    assert os.listdir(task.path("inbox")) == []
    assert not processes.is_alive(agent)


@pytest.mark.req("PKT-21")
def test_an_interrupt_does_not_undo_a_stop_that_is_under_way() -> None:
    task = Task.shell("trap '' TERM; " + kin.WAIT, "--stop-pause", "20s")
    agent = task.agent_pid()
    assert task.ask("stop", "--no-wait").returncode == 0
    done = task.ask("interrupt")
    assert (done.returncode, "it is being stopped" in done.stderr) == (3, True)
    os.kill(agent, signal.SIGKILL)
    task.wait_for("killed")


# ── nonsense in the inbox ──

_NONSENSE = {
    "not-json": (ULID, b"hello"),
    "empty": (ULID, b""),
    "list": (ULID, b"[1, 2]"),
    "wrong-id": (ULID, request(id="0" * 26)),
    "number-id": (ULID, request(id=7)),
    "args-list": (ULID, request(args=["a"])),
    "args-text": (ULID, request(args="a")),
    "verb-list": (ULID, request(verb=["stop"])),
    "verb-null": (ULID, request(verb=None)),
    "by-object": (ULID, request(by={"a": 1})),
    "reason-number": (ULID, request(args={"reason": 5})),
    "unknown-verb": (ULID, request(verb="explode")),
    "no-verb": (ULID, b'{"id": "%s"}' % ULID.encode()),
    "deep": (ULID, b'{"a":' + b"[" * 100_000),
    "latin-1": (ULID, b'{"verb": "st\xf6p"}'),
    "name": ("not-a-ulid", request(verb="explode", id="not-a-ulid")),
    "odd-name": ("na me\n", request(id="na me\n", verb="explode")),
    "big-text": (ULID, b"x" * 10_000_000),
    "big-request": (ULID, request(args={"reason": "x" * 10_000_000})),
}


@pytest.mark.req("PKT-21", "SUP-7")
def test_nonsense_in_the_inbox_is_refused_and_journalled_and_the_runner_lives() -> None:
    task = Task.shell(kin.WAIT + "exit 0")
    agent, runner = task.agent_pid(), task.runner_pid()
    # Other than regular files are left alone: reading a pipe would hang.
    os.mkfifo(task.path("inbox", "fifo.json"))
    os.mkdir(task.path("inbox", "folder.json"))
    os.symlink("/etc/passwd", task.path("inbox", "link.json"))
    for count, (case, (name, data)) in enumerate(_NONSENSE.items(), 1):
        number = f"{count:04d}"
        name = name[:-4] + number if name == ULID else name
        drop(task, f"{name}.json", data.replace(ULID.encode(), name.encode()))
        ring(task)
        answered = task.wait_for_event("request.refused", count)
        assert answered["request"] == name, case
        assert 0 < len(answered["reason"]) < 1000, case
    eventually(lambda: len(os.listdir(task.path("inbox"))) == 3, what="the requests are unlinked")
    assert task.runner_pid() == runner
    assert task.manifest()["pid"] == agent
    assert len(task.events("runner.started")) == 1
    assert task.events("stop.intended") == []
    kin.go()
    task.wait_for("completed")


@pytest.mark.req("PKT-21")
def test_nonsense_that_no_runner_was_there_to_see_is_refused_by_the_next_one() -> None:
    task = Task.shell(kin.WAIT + "exit 0")
    task.agent_pid()
    task.kill_runner()
    drop(task, "zzz.json", b"\x00\x01")
    task.start_runner()
    assert task.wait_for_event("request.refused")["request"] == "zzz"
    kin.go()
    task.wait_for("completed")
    assert holdfast("show", task.id).returncode == 0
