"""When the logs of an attempt are read: at once, or at intervals that grow while little comes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import clock
from holdfast.runner.output.read_schedule import (
    FOLLOWED_S,
    LONGEST_S,
    READ_INTERVAL_S,
    SILENCE_S,
    ReadSchedule,
    pause_s,
    poll_s,
)
from holdfast.runner.wake.waiter import Waiter
from holdfast.store.layout import Packet
from holdfast.watch import growth

NAME = "growth.1"


def test_a_pause_grows_while_little_comes() -> None:
    found, since_s = [READ_INTERVAL_S], READ_INTERVAL_S
    for _ in range(8):
        since_s = pause_s(10, since_s, room_bytes=None) or 0.0
        found.append(round(since_s, 1))
    assert found == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]


@pytest.mark.parametrize(
    ("grown", "since_s", "room", "pause"),
    [
        (10, 0.001, None, READ_INTERVAL_S),  # never more often than that
        (10, LONGEST_S, None, LONGEST_S),
        (0, 1.0, None, None),  # no output: the kernel reports the next
        (10, SILENCE_S, None, None),  # rare lines are read at once
        (10_000_000, 1.0, None, READ_INTERVAL_S),  # a flood
        (256 * 1024, 1.0, None, 1.0),  # at the same rate, but no more
        (10, 3.0, 1_000_000, READ_INTERVAL_S),  # a limit that could be reached in a moment
        (10, 3.0, 512 * 1024 * 1024, 2.0),
    ],
)
def test_a_pause_depends_on_what_came(
    grown: int, since_s: float, room: int | None, pause: float | None
) -> None:
    assert pause_s(grown, since_s, room_bytes=room) == pause


class Rig:
    """Two logs, a bell and a clock that a test sets."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_mono = 1000.0
        monkeypatch.setattr(clock, "mono", lambda: self.now_mono)
        self.packet = Packet(str(path / "packet"))
        os.mkdir(self.packet.path)
        os.mkfifo(self.packet.bell)
        self.logs = [str(path / "stdout.log"), str(path / "stderr.log")]
        for log in self.logs:
            self.write("", log)
        self.waiter = Waiter(self.packet)
        self.read = 0

    def write(self, text: str, log: str | None = None) -> None:
        with open(log or self.logs[0], "a", encoding="utf-8") as file:
            file.write(text)

    def schedule(self, *, is_plain: bool) -> ReadSchedule:
        schedule = ReadSchedule(self.waiter, NAME, self.logs, is_plain=is_plain)
        assert schedule.left_s(set(), self.now_mono) == 0
        self.look(schedule)
        return schedule

    def look(self, schedule: ReadSchedule) -> float:
        """What a runner does when it is time to read."""
        schedule.begin(self.now_mono)
        size = os.path.getsize(self.logs[0])
        grown, self.read = size - self.read, size
        return schedule.end(grown, has_more=False, room_bytes=None)

    def step(self, schedule: ReadSchedule, seconds: float) -> tuple[set[str], float]:
        """Let time pass. Returns what woke us, and the pause after a look, if there was one."""
        self.now_mono += seconds
        ready = self.waiter.wait(0.0)
        left_s = schedule.left_s(ready, self.now_mono)
        return ready, left_s or self.look(schedule)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    found = Rig(tmp_path, monkeypatch)
    yield found
    found.waiter.close()


def test_a_plain_command_is_left_alone_once_it_goes_on_printing(rig: Rig) -> None:
    schedule = rig.schedule(is_plain=True)
    rig.write("first\n")
    # After a silence the kernel reports output, and keeps reporting.
    assert rig.step(schedule, 60.0) == ({NAME}, 3600.0)
    rig.write("second\n")
    assert rig.step(schedule, 1.0) == ({NAME}, 2.0)
    assert schedule.unseen_s(rig.now_mono) == READ_INTERVAL_S
    rig.write("third\n")
    assert rig.step(schedule, 0.5) == (set(), 1.5)
    assert schedule.unseen_s(rig.now_mono) == 0.5
    assert rig.step(schedule, 1.5) == (set(), 4.0)
    # Nothing came: from here on the kernel reports new output again, not what was read.
    assert rig.step(schedule, 4.0) == (set(), 3600.0)
    assert rig.step(schedule, 1.0) == (set(), 3599.0)
    rig.write("fourth\n")
    assert rig.step(schedule, 0.0)[0] == {NAME}


def test_a_runner_that_is_awake_for_something_else_reads_ahead_of_the_timer(rig: Rig) -> None:
    """A heartbeat and a read then share a wake-up."""
    schedule = rig.schedule(is_plain=True)
    for seconds in (60.0, LONGEST_S / 2):
        rig.write("line\n")
        _, pause = rig.step(schedule, seconds)
    assert pause == LONGEST_S
    rig.write("line\n")
    assert rig.step(schedule, 4.5) == (set(), LONGEST_S - 4.5)
    assert rig.step(schedule, 1.0) == (set(), LONGEST_S)
    assert rig.read == os.path.getsize(rig.logs[0])


def test_who_follows_is_served_at_once(rig: Rig) -> None:
    schedule = rig.schedule(is_plain=True)
    for seconds in (60.0, 1.0, 2.0):
        rig.write("line\n")
        rig.step(schedule, seconds)
    rig.write("one that waits\n")
    bell = os.open(rig.packet.bell, os.O_WRONLY)
    os.write(bell, b"!")
    assert rig.step(schedule, 1.0) == ({"bell"}, 3600.0)
    assert rig.read == os.path.getsize(rig.logs[0])
    rig.write("and more\n")
    assert rig.step(schedule, FOLLOWED_S / 2) == ({NAME}, 3600.0)
    # The bell was not rung again.
    rig.write("and more\n")
    assert rig.step(schedule, FOLLOWED_S) == ({NAME}, 2 * FOLLOWED_S)
    os.close(bell)


def test_an_agent_with_events_is_always_read_at_once(rig: Rig) -> None:
    schedule = rig.schedule(is_plain=False)
    for _ in range(5):
        rig.write("line\n")
        assert rig.step(schedule, 1.0) == ({NAME}, 3600.0)
    # But for a flood, which is read at intervals.
    rig.write("line\n")
    ready, left_s = rig.step(schedule, 0.04)
    assert ready == {NAME}
    assert left_s == pytest.approx(READ_INTERVAL_S - 0.04)
    # Since the last read: the output that woke us may be from any time after it.
    rig.now_mono += 1.0
    assert schedule.unseen_s(rig.now_mono) == pytest.approx(1.04)
    rig.now_mono -= 1.0
    rig.write("line\n")
    assert rig.step(schedule, 0.03)[0] == set()
    assert rig.step(schedule, 0.04) == (set(), 3600.0)


def test_what_both_logs_were_told_in_turn_is_forgotten_at_one_look(rig: Rig) -> None:
    schedule = rig.schedule(is_plain=True)
    for turn in range(2000):
        rig.write("x", rig.logs[turn % 2])
    assert rig.step(schedule, 60.0)[0] == {NAME}
    assert rig.step(schedule, 60.0)[0] == set()


# ── how the kernel tells ──


def open_instances() -> int:
    """The inotify instances of this process."""
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return sum(os.path.lexists(link) and os.readlink(link) == "anon_inode:inotify" for link in links)


def test_no_inotify_instance_is_needed(rig: Rig) -> None:
    schedule = rig.schedule(is_plain=True)
    assert open_instances() == 0
    rig.write("line\n")
    assert rig.step(schedule, 60.0)[0] == {NAME}
    schedule.close()


def test_inotify_is_used_where_a_directory_cannot_signal(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_notify", lambda *_: False)
    schedule = rig.schedule(is_plain=True)
    assert open_instances() == 1
    rig.write("line\n")
    assert rig.step(schedule, 60.0)[0] == {NAME}
    schedule.close()
    assert open_instances() == 0


def test_nothing_is_signalled_where_a_signal_would_end_the_process(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGIO, signal.SIG_DFL)
    try:
        watch = growth.GrowthWatch([str(tmp_path / "stdout.log")])
        (tmp_path / "stdout.log").write_text("line\n")
        watch.close()
    finally:
        signal.signal(signal.SIGIO, before)


def test_polls_become_rare_while_nothing_comes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_notify", lambda *_: False)
    monkeypatch.setattr(growth, "_inotify", lambda _: -1)
    schedule = rig.schedule(is_plain=False)
    pauses: list[float] = []
    for _ in range(60):
        pauses.append(rig.step(schedule, pauses[-1] if pauses else 1.0)[1])
    assert pauses[:9] == [1.0] * 9
    assert pauses[-1] == 10.0
    rig.write("line\n")
    # What came is read at the next poll, and polls are frequent again.
    assert rig.step(schedule, 10.0) == (set(), 1.0)
    assert rig.read == os.path.getsize(rig.logs[0])


@pytest.mark.parametrize(("silent_s", "expected"), [(0.0, 1.0), (10.0, 1.0), (30.0, 3.0), (1e6, 10.0)])
def test_the_pause_between_polls(silent_s: float, expected: float) -> None:
    assert poll_s(silent_s) == expected


def test_who_follows_a_polled_agent_is_served_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_notify", lambda *_: False)
    monkeypatch.setattr(growth, "_inotify", lambda _: -1)
    schedule = rig.schedule(is_plain=False)
    rig.write("line\n")
    bell = os.open(rig.packet.bell, os.O_WRONLY)
    os.write(bell, b"!")
    rig.step(schedule, 0.2)
    assert rig.read == os.path.getsize(rig.logs[0])
    os.close(bell)


def test_files_beside_the_logs_wake_us_a_few_times_then_once_a_second(rig: Rig) -> None:
    schedule = rig.schedule(is_plain=False)
    other = rig.logs[0] + ".other"
    woken = 0
    for _ in range(100):
        rig.write("x", other)
        ready, _ = rig.step(schedule, 0.1)
        woken += NAME in ready
    assert 3 <= woken <= 14
    # And when that ends, output is reported again.
    rig.step(schedule, 2.0)
    rig.step(schedule, 2.0)
    rig.write("line\n")
    assert rig.step(schedule, 1.0)[0] == {NAME}
