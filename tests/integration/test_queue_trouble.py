"""What goes wrong in a queue: it costs nothing else, it is said, and a person can end it."""

from __future__ import annotations

import os

import pytest

from holdfast.store.layout import Home
from tests.support import keepers, loops
from tests.support.loops import fill, task, up, working
from tests.support.tasks import holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def with_keeper(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here keepers are wanted."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    workspace()


# ── packets that cannot be read ──


def spoil(home: str, task_id: str) -> None:
    """The manifest reads, the journal does not."""
    with open(Home(home).packet(task_id).journal, "wb") as file:
        file.write(b"\x93\x00\xffjunk\n\x01more\n")


def test_a_damaged_packet_takes_no_slot_and_can_be_removed(home: str) -> None:
    fill(t1=working(), t2=working(), t3=working(), t4=working())
    spoil(home, "t2")
    os.remove(Home(home).packet("t3").journal)
    up("--slots", "1")
    task("t4").wait_for("completed", within_s=20)
    assert loops.order() == ["t1", "t4"]
    poison = eventually(lambda: {name: row["reason"] for name, row in loops.queue().items()})
    assert sorted(poison) == ["t2", "t3"]
    assert all("cannot be read" in reason for reason in poison.values())
    assert any("t2 is poison" in line for line in keepers.status(home)["attention"])
    refused = holdfast("stop", "t2")
    assert refused.returncode == 3, refused.stderr
    assert "'holdfast rm --force t2'" in refused.stderr
    assert holdfast("rm", "--force", "t2").returncode == 0
    assert holdfast("queue", "clear", "--yes").returncode == 0
    assert loops.queue() == {}
    assert holdfast("rm", "--force", "t3").returncode == 0
    assert sorted(os.listdir(Home(home).tasks)) == ["t1", "t4"]


def test_a_damaged_packet_leaves_the_queue_by_name_and_is_not_taken_in_again(home: str) -> None:
    fill(t1=working(), t2=working())
    spoil(home, "t1")
    done = holdfast("queue", "rm", "t1", env={"HOLDFAST_KEEPER": "off"})
    assert done.returncode == 0, done.stderr
    assert "'holdfast rm --force t1' removes it" in done.stderr
    assert list(loops.queue()) == ["t2"]
