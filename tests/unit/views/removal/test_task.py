"""What a removed task leaves in its home."""

from __future__ import annotations

import os

import pytest

from holdfast.packet import session_lock
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.views.removal import task as task_removal


@pytest.mark.parametrize("session_id", ["..", ".", "", "../other", "/", "a\0b"])
def test_an_id_that_names_no_session_removes_nothing_of_others(home: str, session_id: str) -> None:
    place = Home(home)
    for folder in (place.sessions, place.scripted_agent, os.path.join(home, "other")):
        os.makedirs(folder)
        atomic.write(os.path.join(folder, "file"), b"", durable=False)
    lock = session_lock.path_of(place, "scripted", session_id)
    atomic.write(lock, b"", durable=False)
    task_removal.clear(place, task_removal.Residue(task_id="it", sessions=(("scripted", session_id),)))
    assert not os.path.exists(lock)
    for folder in (place.sessions, place.scripted_agent, os.path.join(home, "other")):
        assert os.listdir(folder) == ["file"]
