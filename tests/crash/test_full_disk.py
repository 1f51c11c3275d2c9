"""A full disk: the task waits, nothing is lost, and it continues when there is space again."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from holdfast.model.status import Status
from holdfast.store.layout import AttemptDir, Home
from holdfast.testing import Scenario as Script
from holdfast.views.facts import changes as feed
from tests.conftest import Place
from tests.crash import invariants
from tests.crash.drive import Case
from tests.crash.scenarios import BY_NAME, play
from tests.support import disks, keepers, kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.mark.req("PKT-10")
@pytest.mark.parametrize("nth", [1, 2, 4])
@pytest.mark.parametrize("scenario", ["plain", "crash"])
def test_a_journal_that_finds_no_room_once_drops_no_fact(
    place: Place, clean_env: dict[str, str], scenario: str, nth: int
) -> None:
    case = Case(place.root, scenario, f"journal.before_append=enospc@{nth}")
    try:
        play(BY_NAME[scenario], case)
        invariants.check(case, end=Status.COMPLETED, retries=BY_NAME[scenario].retries)
        assert case.fired
        assert case.runners_started == 1, "the runner waited for room"
    finally:
        case.close()


@pytest.fixture
def small_disk(place: Place, clean_env: dict[str, str]) -> Iterator[str]:
    """A file system of 1 MB."""
    path = os.path.join(place.root, "disk")
    with disks.small_disk(path, megabytes=1):
        yield path


@pytest.mark.req("PKT-10", "OUT-1")
@pytest.mark.parametrize("kill_runner", [False, True])
@pytest.mark.parametrize("room_bytes", [0, 8192, 20_000])
def test_a_task_waits_for_room_on_a_full_disk_and_then_ends(
    small_disk: str, *, room_bytes: int, kill_runner: bool
) -> None:
    """The disk fills up while the agent works (its files are elsewhere); it ends; there is space again."""
    outside = os.path.join(os.path.dirname(small_disk), "outside")
    os.mkdir(outside, 0o700)
    works, go = os.path.join(outside, "works"), os.path.join(outside, "go")
    ballast = os.path.join(small_disk, "ballast")
    case = Case(small_disk, "case")
    case.state = case.env["HOLDFAST_SCRIPTED_STATE"] = outside
    case.log = os.path.join(outside, "runners.log")
    script = (
        Script().fail_if_running().say("line 1").write(works, "").wait_file(go, limit_s=30).result("done")
    )
    case.create(scenario=str(script.write_to(os.path.join(outside, "script.json"))))
    directory = case.packet.attempt("001-scripted_run")
    try:
        case.start_runner()
        eventually(lambda: os.path.exists(works) and case.shows("line 1"), what="the agent works")
        _fill(ballast, leave_bytes=room_bytes)
        with open(go, "ab"):
            pass
        if room_bytes == 0:
            eventually(lambda: _has_exited(directory), what="the agent is gone")
            assert not os.path.exists(directory.exit)
            assert not case.has_ended
        if kill_runner and case.runner is not None:
            case.runner.kill()
            case.runner.wait(10)
            case.tend()
        os.unlink(ballast)
        eventually(
            lambda: case.tend() or case.has_ended, within_s=20, what="it ends", journal=case.packet.journal
        )
        invariants.check(case, end=Status.COMPLETED, retries=0)
        assert case.runners_started <= 1 + kill_runner, "no runner died of the full disk"
    finally:
        case.close()


def test_a_person_sees_that_the_disk_is_full_and_how_to_end_the_agent(
    small_disk: str, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a stop can be requested."""
    outside = workspace()
    monkeypatch.setenv("HOLDFAST_HOME", os.path.join(small_disk, "home"))
    task = Task.start("--id", "it", "--", "sleep", "60", project=outside)
    pid = task.agent_pid()
    for words in (("status",), ("show", "it")):
        assert "full" not in holdfast(*words).stdout
    ballast = os.path.join(small_disk, "ballast")
    _fill(ballast, leave_bytes=0)
    for words in (("stop", "it"), ("rm", "--force", "it"), ("down", "--now")):
        done = holdfast(*words)
        assert done.returncode == 3, (words, done.stderr)
        assert f"'kill {pid}' stops the agent now" in done.stderr
    assert f"the disk of {small_disk}/home is full" in holdfast("status").stdout
    assert "disk      full" in holdfast("show", "it").stdout
    os.kill(pid, signal.SIGTERM)
    os.unlink(ballast)
    assert holdfast("stop", "it").returncode == 0
    task.wait_for("killed")


def test_a_view_learns_of_what_happened_while_the_disk_was_full(
    small_disk: str, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = workspace()
    monkeypatch.setenv("HOLDFAST_HOME", os.path.join(small_disk, "home"))
    monkeypatch.setattr(feed, "LIVE_SCAN_S", 3600.0)  # no scan helps
    task = Task.shell(kin.WAIT, "--id", "it", project=outside)
    task.wait_for("running")
    changes = feed.Changes(Home(os.path.join(small_disk, "home")))
    try:
        ballast = os.path.join(small_disk, "ballast")
        _fill(ballast, leave_bytes=0)
        pid = task.agent_pid()
        with open(os.path.join(outside, "go"), "ab"):
            pass
        eventually(lambda: not processes.is_alive(pid), what="the agent ended while nothing could be written")
        os.unlink(ballast)
        give_up_mono = time.monotonic() + 20
        while not os.path.exists(task.path("done", "_task.done")):
            assert "it" in changes.wait(give_up_mono - time.monotonic())
        assert task.status() == "completed"
    finally:
        changes.close()


@pytest.mark.parametrize("kills", ["runner", "runner and keeper"])
def test_the_keeper_restarts_a_runner_as_soon_as_there_is_space_again(
    small_disk: str, home: str, monkeypatch: pytest.MonkeyPatch, kills: str
) -> None:
    """On a full disk no runner can be started, and no line of the keeper's log be written."""
    outside, home = workspace(), os.path.join(small_disk, "home")
    monkeypatch.setenv("HOLDFAST_HOME", home)
    monkeypatch.delenv("HOLDFAST_KEEPER")
    task = Task.shell(kin.WAIT, "--id", "it", project=outside)
    task.wait_for("running")
    keeper = keepers.wait_for(home)
    ballast = os.path.join(small_disk, "ballast")
    _fill(ballast, leave_bytes=0)
    os.kill(task.runner_pid(), signal.SIGKILL)
    with open(os.path.join(outside, "go"), "ab"):
        pass
    ends_mono = time.monotonic() + 6.0
    while time.monotonic() < ends_mono:  # as long as a person needs to find out
        assert keepers.pid(home) == keeper, "the keeper has died of the full disk"
    if kills == "runner and keeper":
        os.kill(keeper, signal.SIGKILL)
        eventually(lambda: not processes.is_alive(keeper), what="the keeper is gone")
    os.unlink(ballast)
    if kills == "runner and keeper":
        assert holdfast("up").returncode == 0
    task.wait_for("completed", within_s=30)
    holdfast("down")


def _has_exited(directory: AttemptDir) -> bool:
    """Whether the agent is gone; then its recorder tries to write the exit record."""
    with open(directory.identity, encoding="utf-8") as file:
        return not processes.is_alive(json.load(file)["pid"])


def _fill(path: str, *, leave_bytes: int) -> None:
    """Fill the disk, then free about `leave_bytes`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for size in (4096, 1):
            try:
                while True:
                    os.write(descriptor, b"x" * size)
            except OSError:
                continue
        written = os.fstat(descriptor).st_size
        os.ftruncate(descriptor, max(0, written - leave_bytes))
    finally:
        os.close(descriptor)
