"""state/work.json: whatever an agent writes, its fields have the right types."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.packet import work_file
from holdfast.store.layout import Packet

FULL = {
    "id": "issue-123",
    "status": "in_progress",
    "assigned_session": "ses_a1b2c3d4",
    "started_at": "2026-01-27T15:30:00Z",
    "last_updated": "2026-01-27T15:35:00Z",
    "progress": {"steps_completed": 3, "steps_total": 10, "current_step": "Implementing the login"},
}


@pytest.fixture
def packet(place) -> Packet:
    packet = Packet(os.path.join(place.root, "it"))
    os.makedirs(packet.state)
    return packet


@pytest.mark.req("PKT-16")
def test_what_an_agent_wrote_is_read(packet: Packet) -> None:
    with open(packet.work, "w", encoding="utf-8") as file:
        json.dump({**FULL, "mood": "good"}, file)
    item = work_file.read(packet)
    assert item == {"schema": "holdfast.work/1", **FULL}
    assert work_file.as_text(item) == "3/10 Implementing the login"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", None),
        (b"[1]", None),
        (b'{"half', None),
        (b"[" * 50000, None),
        (b"{}", ""),
        (b'{"progress": 7, "id": [1]}', ""),
        (b'{"progress": {"steps_completed": "3", "current_step": "now"}}', "now"),
        (b'{"progress": {"steps_completed": -1, "steps_total": true}}', ""),
        (b'{"progress": {"steps_completed": 5, "steps_total": 3}}', "step 5"),
        (b'{"progress": {"steps_completed": 1e400}}', ""),
    ],
)
def test_nonsense_is_nothing(packet: Packet, raw: bytes, said: str | None) -> None:
    with open(packet.work, "wb") as file:
        file.write(raw)
    item = work_file.read(packet)
    assert (None if item is None else work_file.as_text(item)) == said


def test_neither_a_pipe_nor_a_link_is_read(packet: Packet) -> None:
    assert work_file.read(packet) is None
    os.mkfifo(packet.work)
    assert work_file.read(packet) is None
    os.unlink(packet.work)
    os.symlink("/etc/passwd", packet.work)
    assert work_file.read(packet) is None


@pytest.mark.req("PKT-16")
def test_what_holdfast_knows_is_merged_in_and_the_progress_stays(packet: Packet) -> None:
    first = work_file.merge(
        None, id="issue-1", status="in_progress", assigned_session="ses_1", started_at=None
    )
    assert first["progress"] == {"steps_completed": None, "steps_total": None, "current_step": None}
    work_file.write(packet, {**first, "progress": FULL["progress"]})
    again = work_file.merge(work_file.read(packet), status="completed", last_updated="2026-01-31T12:00:00Z")
    assert (again["id"], again["status"], again["progress"]["steps_completed"]) == ("issue-1", "completed", 3)
