"""The Python API, in this process and in programs with threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.testing import Scenario
from tests.support import kin, repos
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def in_a_project(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace())


def scenario(steps: Scenario) -> dict[str, Any]:
    path = steps.write_to(os.path.join(workspace(), f"scenario-{time.monotonic_ns()}.json"))
    return {"agent": "scripted", "options": {"scenario": str(path)}}


def test_run_wait_and_read() -> None:
    options = scenario(Scenario().say("first words").say("last words").result("done"))
    task = holdfast.run("do it", labels={"batch": "1", "team": "web"}, name="a name", **options)
    info = task.wait(timeout_s=LIMIT_S)
    assert (info.id, info.status, info.exit_status, info.has_ended) == (task.id, "completed", 0, True)
    assert (info.name, info.agent, info.labels) == ("a name", "scripted", {"batch": "1", "team": "web"})
    assert info.status is not None
    assert info.status == holdfast.Status.COMPLETED
    info.check()
    assert task.info() == info
    assert task.manifest()["task_id"] == task.id
    assert "last words" in task.log().text
    end = task.log(end=task.log().size, limit=40)
    assert end.end == end.size
    assert "completed" in task.summary().text
    assert holdfast.open(task.id[:-1]) == task
    assert os.path.isdir(info.path)


def test_events_continue_after_a_cursor_and_can_be_followed() -> None:
    task = holdfast.run(command=["sh", "-c", kin.WAIT])
    Task(task.path).wait_for("running")
    before = list(task.events())
    assert before[0].type == "task.created"
    assert list(task.events(since=before[-1].cursor)) == [] or task.status != "running"
    later = task.events(since=before[2].cursor)
    assert next(later) == before[3]
    seen: list[holdfast.Event] = []
    thread = threading.Thread(target=lambda: seen.extend(task.events(since=before[-1].cursor, follow=True)))
    thread.start()
    kin.go()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    everything = list(task.events())
    assert [event.cursor for event in everything] == [event.cursor for event in [*before, *seen]]
    assert everything[-1].cursor == os.path.getsize(os.path.join(task.path, "events.jsonl"))


def test_values_are_frozen() -> None:
    info = holdfast.run(command=["true"], labels={"a": "b"}).wait(timeout_s=LIMIT_S)
    with pytest.raises(AttributeError):
        info.status = "failed"  # pyright: ignore
    with pytest.raises(TypeError):
        info.labels["a"] = "c"  # pyright: ignore


def test_questions_are_answered_and_stages_approved() -> None:
    options = scenario(
        Scenario().say("hm").interrupt_request("which database?", once=True).sleep(30, once=True).result("ok")
    )
    task = holdfast.run("do it", **options)
    info = task.wait(timeout_s=LIMIT_S)
    assert (info.status, info.needs, info.question) == ("interrupted", "answer", "which database?")
    with pytest.raises(errors.NeedsPerson, match="which database"):
        info.check()
    with pytest.raises(errors.RequestRefused) as refused:
        task.approve()
    assert refused.value.exit_status == 3
    assert refused.value.hint
    task.answer("the test database")
    assert task.wait(timeout_s=LIMIT_S).status == "completed"
    assert task.manifest()["answers"][0]["answer"] == "the test database"


def test_stop_interrupt_and_failures() -> None:
    task = holdfast.run(command=["sh", "-c", kin.WAIT])
    Task(task.path).agent_pid()
    with pytest.raises(errors.Unanswered):
        task.wait(timeout_s=0.2)
    task.interrupt("why?")
    assert task.wait(timeout_s=LIMIT_S).question == "why?"
    task.stop("not needed", now=True)
    info = task.wait(timeout_s=LIMIT_S)
    assert (info.status, info.exit_status) == ("killed", 1)
    with pytest.raises(errors.TaskFailed):
        info.check()
    task.stop()  # it has ended: nothing happens


def test_a_failed_task_is_retried() -> None:
    task = holdfast.run(command=["sh", "-c", "test -e go"])
    assert task.wait(timeout_s=LIMIT_S).status == "failed"
    kin.go()
    task.retry("try again")
    assert task.wait(timeout_s=LIMIT_S).status == "completed"
    with pytest.raises(errors.RequestRefused):
        task.retry(stage="no_such_stage")


def test_a_program_with_threads_is_not_forked_and_has_no_children() -> None:
    """The runner must not be a copy of the program, nor its child."""
    program = """
import os, sys, threading, time
import holdfast
release = threading.Event()
thread = threading.Thread(target=release.wait)
thread.start()
found = []
starter = threading.Thread(target=lambda: found.append(holdfast.run(command=["sleep", "30"])))
starter.start(); starter.join()
task = found[0]
while task.status != "running":
    time.sleep(0.01)
print(task.id, flush=True)
release.set(); thread.join()
try:
    os.waitpid(-1, os.WNOHANG)
    print("it has children", flush=True)
except ChildProcessError:
    print("no children", flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, "in-the-argv"],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    task_id, children = done.stdout.splitlines()
    assert children == "no children"
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", task_id))
    with open(f"/proc/{task.runner_pid()}/cmdline", "rb") as file:
        assert b"in-the-argv" not in file.read()
    holdfast.open(task_id).stop(now=True)
    holdfast.open(task_id).wait(timeout_s=LIMIT_S)


def test_submit_tasks_digest_and_wait_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    cursor = holdfast.digest().cursor
    slow = holdfast.run(command=["sh", "-c", kin.WAIT], id="slow", labels={"batch": "1"})
    quick = holdfast.submit(command=["true"], id="quick", labels={"batch": "1"}, priority="high")
    other = holdfast.submit(command=["true"], id="other", after=[quick])
    (first,) = holdfast.wait([slow, quick], timeout_s=LIMIT_S, first=True)
    assert first.id == "quick"
    assert [info.id for info in holdfast.wait(["quick", other], timeout_s=LIMIT_S)] == ["quick", "other"]
    found = holdfast.tasks(labels={"batch": "1"})
    assert sorted(info.id for info in found) == ["quick", "slow"]
    assert [info.id for info in holdfast.tasks(status="completed", labels={"batch": "1"})] == ["quick"]
    assert len(holdfast.tasks(recent=1)) == 1
    digest = holdfast.digest(since=cursor, labels={"batch": "1"})
    assert {change.id: change.has_ended for change in digest.tasks} == {"quick": True, "slow": False}
    assert (digest.full, digest.left_out, len(digest.text) < 4096) == (False, 0, True)
    kin.go()
    assert slow.wait(timeout_s=LIMIT_S).status == "completed"
    (change,) = holdfast.digest(since=digest.cursor, only=[slow]).tasks
    assert change.status == "completed"


def test_diff_and_patch_of_a_worktree() -> None:
    repo = repos.Repo(os.path.join(workspace(), "repo"))
    repo.commit("a.txt")
    options = scenario(Scenario().write("b.txt", "new\n").result("done"))
    task = holdfast.run("do it", project=repo.path, worktree=True, permissions="edit", **options)
    task.wait(timeout_s=LIMIT_S).check()
    diff = task.diff()
    assert [(file.path, file.kind, file.added) for file in diff.files] == [("b.txt", "added", 1)]
    assert b"+new" in task.patch()
    plain = holdfast.run(command=["true"])
    plain.wait(timeout_s=LIMIT_S)
    with pytest.raises(errors.NotPossible):
        plain.diff()


def test_limits_are_numbers() -> None:
    task = holdfast.run(
        command=["true"], deadline_s=90, timeout_s=0.5, stale_s=12.25, max_retries=3, memory_bytes=2**40
    )
    task.wait(timeout_s=LIMIT_S)
    spec = next(task.events()).data["spec"]
    limits = spec["limits"]
    assert (limits["deadline_s"], limits["timeout_s"], limits["stale_s"]) == (90.0, 0.5, 12.25)
    assert (limits["max_retries"], limits["memory_bytes"]) == (3, 2**40)


@pytest.mark.parametrize(
    ("call", "error", "exit_status"),
    [
        (holdfast.run, errors.UsageError, 2),
        (lambda: holdfast.run("x", agent="nobody"), errors.UnknownAgent, 2),
        (lambda: holdfast.run(command=["true"], id="../x"), errors.InvalidId, 2),
        (lambda: holdfast.run(command=["true"], labels={"": "x"}), errors.UsageError, 2),
        (lambda: holdfast.run(command=["tr\0ue"]), errors.UsageError, 2),
        (lambda: holdfast.run(command=["true", "a\0b"]), errors.UsageError, 2),
        (lambda: holdfast.run("a\ud800b", agent="scripted"), errors.UsageError, 2),
        (lambda: holdfast.run(packet="a\0b"), errors.UsageError, 2),
        (lambda: holdfast.run(command=["no-such-program-here"]), errors.CommandNotFound, 2),
        (lambda: holdfast.submit(command=["true"], priority="urgentest"), errors.UsageError, 2),
        (lambda: holdfast.submit(command=["true"], after=["nobody"]), errors.NotFound, 3),
        (lambda: holdfast.open("nobody"), errors.NotFound, 3),
        (lambda: holdfast.tasks(status="runing"), errors.UsageError, 2),
    ],
)
def test_errors_have_the_exit_status_of_the_command_line(call, error, exit_status) -> None:
    with pytest.raises(error) as raised:
        call()
    assert isinstance(raised.value, holdfast.HoldfastError)
    assert raised.value.exit_status == exit_status
    assert holdfast.tasks() == []


def test_a_second_task_with_the_same_id_is_refused() -> None:
    holdfast.run(command=["true"], id="it").wait(timeout_s=LIMIT_S)
    with pytest.raises(errors.DuplicateTask):
        holdfast.run(command=["true"], id="it")


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        holdfast.run("x", colour="red")  # pyright: ignore
    with pytest.raises(TypeError, match="list of texts"):
        holdfast.run("x", accept="make test")
    assert holdfast.tasks() == []


def test_warnings_are_python_warnings() -> None:
    options = scenario(Scenario().result("done"))
    with pytest.warns(holdfast.HoldfastWarning):
        task = holdfast.run("x", permissions="full", **options)
    task.wait(timeout_s=LIMIT_S)


def test_an_agent_may_not_decide_about_its_own_task() -> None:
    """The API asks as the command line does."""
    program = "import holdfast, os; holdfast.open(os.environ['HOLDFAST_TASK']).stop()"
    path = os.path.join(workspace(), "program.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(program)
    task = holdfast.run(command=["sh", "-c", f"{sys.executable} {path} 2>&1; echo status $?"])
    assert task.wait(timeout_s=LIMIT_S).status == "completed"
    eventually(lambda: "ForPersons" in task.log().text, what="the refusal is in the log")
    assert "status 1" in task.log().text


def test_using_the_api_marks_the_process_as_another_programs() -> None:
    program = (
        "import holdfast; from holdfast import spawn as s; print(s.is_guest, holdfast.run and s.is_guest)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "False True\n"


def test_importing_holdfast_loads_nothing() -> None:
    program = (
        "import sys; before = set(sys.modules); import holdfast; print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "['holdfast']\n"
    assert {"run", "submit", "open", "tasks", "wait", "digest", "Task"} <= set(dir(holdfast))
    with pytest.raises(AttributeError):
        holdfast.no_such_name  # noqa: B018  # pyright: ignore
