"""Homes that cannot be written, or that others can write: refused with a hint."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support import kin, processes
from tests.support.bad_input import complaint, nothing_made, refused, without_power, wrote
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: the tests start the runners."""
    lock = kin.alone(home)
    yield
    os.close(lock)


@pytest.mark.req("LCH-2")
def test_a_read_only_home(place) -> None:
    path = os.path.join(place.root, "fixed")
    os.makedirs(os.path.join(path, "tasks"))
    for folder in (os.path.join(path, "tasks"), path):
        os.chmod(folder, 0o500)
    said = complaint(without_power("run", "-d", "--", "true", home=path), 3)
    assert "Permission denied" in said
    assert os.listdir(os.path.join(path, "tasks")) == []
    missing = os.path.join(path, "below")
    said = complaint(without_power("run", "-d", "--", "true", home=missing), 3)
    assert f"cannot create the home {missing}" in said
    said = complaint(without_power("run", "-d", "--", "true", home=wrote("plain")), 2)
    assert "is a file" in said


@pytest.mark.req("SUP-7")
def test_a_packet_that_became_read_only_takes_a_request_all_the_same() -> None:
    task = kin.make("--", "true")
    os.chmod(task.path("inbox"), 0o500)
    done = without_power("stop", task.id)
    assert (done.returncode, done.stderr) == (0, f"stopped {task.id}\n")
    assert os.listdir(task.path("inbox")) == []
    assert os.stat(task.path("inbox")).st_mode & 0o777 == 0o700


@pytest.mark.req("LCH-2")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720])
def test_a_home_that_others_can_write(mode: int, place) -> None:
    path = os.path.join(place.root, "open")
    os.mkdir(path)
    os.chmod(path, mode)
    said = refused("run", "-d", "--", "true", env={"HOLDFAST_HOME": path}, cwd=workspace())
    assert f"other users can write to the home {path} (mode {mode:04o})" in said
    assert f"hint: chmod go-w {path}" in said
    assert nothing_made(path)


@pytest.mark.req("LCH-2")
@as_root
def test_a_home_of_another_user(place) -> None:
    path = os.path.join(place.root, "theirs")
    os.mkdir(path, 0o700)
    os.chown(path, NOBODY, NOBODY)
    said = refused("run", "-d", "--", "true", env={"HOLDFAST_HOME": path}, cwd=workspace())
    assert f"belongs to another user (uid {NOBODY})" in said
    assert "hint: set HOLDFAST_HOME" in said
    assert nothing_made(path)
    assert "cannot read" in complaint(without_power("show", "made", home=path), 3)


@pytest.mark.req("LCH-2")
def test_a_new_home_and_its_tasks_are_private(place) -> None:
    path = os.path.join(place.root, "new", "home")
    lock_free = {"HOLDFAST_HOME": path}
    done = holdfast(
        "run", "-d", "--id", "it", "--", "sh", "-c", "echo hi; exit 0", env=lock_free, cwd=workspace()
    )
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(path, "tasks", "it"))
    task.wait_for("completed")
    eventually(lambda: not processes.marked(task.packet), what="the runner is gone")
    for folder, directories, files in os.walk(path):
        for name in directories:
            assert os.stat(os.path.join(folder, name)).st_mode & 0o077 == 0, name
        for name in files:
            assert os.lstat(os.path.join(folder, name)).st_mode & 0o077 == 0, name
    assert task.manifest()["tmpdir"] == task.packet
