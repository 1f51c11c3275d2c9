"""Files of a packet that are not what they should be: read as far as possible, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support import kin
from tests.support.bad_input import refused
from tests.support.tasks import Task, holdfast


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


@pytest.mark.req("PKT-10", "SUP-7")
@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b'"text"', b"\xff\xfe", b'{"schema": "holdfast.manifest/1"}', b"[" * 99_999]
)
def test_a_corrupt_manifest_is_read_from_the_journal_and_rewritten(data: bytes) -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    with open(task.path("manifest.json"), "wb") as file:
        file.write(data)
    done = holdfast("show", task.id, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "spawning"
    assert task.read("manifest.json") == data  # a view writes nothing
    assert kin.run_runner(task) == 0
    assert task.manifest()["status"] == "completed"


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize(
    "torn", [b'{"id":"01', b"\0" * 100, b'{"type":"task.moved"}\n', b"nonsense\n", b"x" * 300_000]
)
def test_a_torn_end_of_the_journal_is_cut_off_and_recorded(torn: bytes) -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    whole = task.read("events.jsonl")
    with open(task.path("events.jsonl"), "ab") as file:
        file.write(torn)
    assert json.loads(holdfast("show", task.id, "--json").stdout)["status"] == "spawning"
    assert task.read("events.jsonl") == whole + torn
    assert kin.run_runner(task) == 0
    assert task.read("events.jsonl").startswith(whole)
    repaired = task.events("journal.repaired")[0]
    assert repaired["dropped_bytes"] == len(torn)
    assert torn.decode("utf-8", "backslashreplace").startswith(repaired["fragment"][:4096])
    assert task.status() == "completed"


def damage(task: Task, data: bytes) -> None:
    """Replace its journal, and remove the manifest that was derived from it."""
    with open(task.path("events.jsonl"), "wb") as file:
        file.write(data)
    os.unlink(task.path("manifest.json"))


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize("end", [b"", b'{"to'])
def test_nonsense_in_a_journal_is_put_aside_and_a_person_is_asked(end: bytes) -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    whole = task.read("events.jsonl")
    damage(task, data := whole + b"nonsense\n" + whole.replace(b"task.created", b"future.event") + end)
    assert kin.run_runner(task) == 0
    assert task.status() == "interrupted"
    assert task.read("events.jsonl").startswith(whole)
    assert task.read("events.jsonl.forged-1") == data
    assert os.listdir(task.path("attempts")) == []


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize("case", ["empty", "only a torn line", "only nonsense"])
def test_a_journal_of_which_nothing_can_be_read_is_kept_and_starts_nothing(case: str) -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    whole = task.read("events.jsonl")
    data = {"empty": b"", "only a torn line": whole[:-20], "only nonsense": b"nonsense\n"}[case]
    damage(task, data)
    for verb in (["show", task.id], ["show", task.id, "--json"]):
        said = refused(*verb, status=3)
        assert "events.jsonl" in said
        assert "hint: " in said
    assert kin.run_runner(task) == 3
    assert task.read("events.jsonl.forged-1") == data
    assert os.listdir(task.path("attempts")) == []


@pytest.mark.req("PKT-10")
def test_a_stop_of_a_task_whose_journal_is_broken_says_so_in_time_and_loses_nothing() -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    data = b"nonsense\n" + task.read("events.jsonl")
    with open(task.path("events.jsonl"), "wb") as file:
        file.write(data)
    assert "its journal is unreadable" in refused("stop", task.id, status=3)
    assert task.read("events.jsonl.forged-1") == data


@pytest.mark.req("PKT-10", "SUP-7")
@pytest.mark.parametrize("name", ["identity.json", "exit.json", "lock"])
def test_a_corrupt_record_of_an_attempt_kills_no_runner(name: str) -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT)
    agent, runner, recorder = task.agent_pid(), task.runner_pid(), kin.recorder_pid(task)
    kin.kill(runner, recorder, agent)
    with open(os.path.join(task.attempts()[0], name), "wb") as file:
        file.write(b'{"boot_id": 5, "pid": "x"')
    task.start_runner()
    assert task.wait_for("completed")["attempt"] == 2


@pytest.mark.req("SUP-7")
@pytest.mark.parametrize("data", [b"{}", b'{"boot_id": 5, "pid": "x", "start_time": null}'])
@pytest.mark.parametrize("name", ["identity.json", "exit.json"])
def test_a_record_with_the_wrong_fields_kills_no_runner(name: str, data: bytes) -> None:
    task = Task.shell("[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + kin.WAIT)
    agent, runner, recorder = task.agent_pid(), task.runner_pid(), kin.recorder_pid(task)
    kin.kill(runner, recorder, agent)
    with open(os.path.join(task.attempts()[0], name), "wb") as file:
        file.write(data)
    task.start_runner()
    assert task.wait_for("completed")["attempt"] == 2


@pytest.mark.req("SUP-7")
def test_a_runner_of_what_is_no_task(home: str, place) -> None:
    for argv, status in (([], 2), (["a", "b"], 2), ([os.path.join(home, "none")], 3), (["/etc/passwd"], 3)):
        argv = [sys.executable, "-m", "holdfast.runner", *argv]
        done = subprocess.run(argv, capture_output=True, timeout=30, check=False)
        assert done.returncode == status, done.stderr
        assert b"Traceback" not in done.stderr
    empty = os.path.join(place.root, "empty")
    os.mkdir(empty)
    assert kin.run_runner(Task(empty)) == 3
    assert set(os.listdir(empty)) <= {"runner.lock"}
