"""Evidence that is gathered after a silence."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast import clock
from holdfast.watch import progress
from tests.support.waiting import eventually


@pytest.mark.req("SUP-8", "W-A5")
def test_a_file_that_changed_is_seen_wherever_it_lies(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "old.txt").write_text("x", encoding="utf-8")
    os.utime(deep / "old.txt", (1000, 1000))
    begun = time.time()
    assert not progress.changed_since(str(tmp_path), begun, skip="")
    (deep / "new.txt").write_text("y", encoding="utf-8")
    assert progress.changed_since(str(tmp_path), begun, skip="")
    assert not progress.changed_since(str(tmp_path), begun + 60, skip="")


@pytest.mark.req("W-A3")
def test_what_is_not_the_agents_work_is_passed_over(tmp_path: Path) -> None:
    begun = time.time()
    for name in (".git", "node_modules", "home"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x", encoding="utf-8")
    assert not progress.changed_since(str(tmp_path), begun, skip=str(tmp_path / "home"))
    assert progress.changed_since(str(tmp_path), begun, skip="")


@pytest.mark.req("SUP-9", "W-A3")
def test_a_workspace_that_is_gone_or_unreadable_is_no_change(tmp_path: Path) -> None:
    assert not progress.changed_since(str(tmp_path / "gone"), 0.0, skip="")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert not progress.changed_since(str(tmp_path), time.time() + 60, skip="")


@pytest.mark.starts_processes
@pytest.mark.req("W-A3")
def test_the_cpu_of_a_whole_tree_counts() -> None:
    """The child computes, its parent sleeps."""
    busy = subprocess.Popen(
        ["sh", "-c", f"{sys.executable} -c 'while True: pass' & wait"], start_new_session=True
    )
    try:
        meter = progress.CpuMeter(busy.pid)
        eventually(meter.is_busy, what="the tree is busy")
    finally:
        os.killpg(busy.pid, 9)
        busy.wait(timeout=10)
    idle = subprocess.Popen(["sleep", "60"])
    try:
        meter = progress.CpuMeter(idle.pid)
        eventually(lambda: not meter.is_busy(), what="it is idle")
        assert not meter.is_busy()
    finally:
        idle.kill()
        idle.wait(timeout=10)
    assert not progress.CpuMeter(idle.pid).is_busy()


@pytest.mark.parametrize(
    ("by_its_time_s", "unseen_s", "age_s"),
    [
        (0.05 + clock.FILE_TICK_S, 0.1, 0.05),
        (clock.FILE_TICK_S / 2, 0.1, 0.0),
        (3600.0, 0.1, 0.0),  # the clock was set forward, or the file lies where it is slow
        (-3600.0, 0.1, 0.0),
        (4.0, 0.0, 0.0),  # the kernel has just reported it
        (4.0 + clock.FILE_TICK_S, 5.0, 4.0),
    ],
)
def test_a_log_was_written_when_its_time_says_unless_that_cannot_be(
    by_its_time_s: float, unseen_s: float, age_s: float
) -> None:
    assert progress.age_s(by_its_time_s, unseen_s) == pytest.approx(age_s)
