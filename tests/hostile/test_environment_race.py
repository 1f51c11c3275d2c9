"""The environment of a runner and of a takeover is the one of the journal, whenever it is replaced."""

from __future__ import annotations

import json
import os
import threading

from holdfast.errors import CorruptFile
from holdfast.packet import environment, load
from holdfast.store.layout import Home
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


def test_an_environment_that_changes_between_two_looks(home: str) -> None:
    started = Task.start("--id", "it", "--", "sleep", "60", project=workspace())
    started.agent_pid()
    packet = Home(home).packet("it")
    task = load.fold(packet)
    with open(packet.env, "rb") as file:
        good = file.read()
    changed = json.loads(good)
    changed["env"]["PATH"] = "/planted"
    evil = json.dumps(changed).encode()
    is_over = threading.Event()

    def replace() -> None:
        while not is_over.is_set():
            for data in (good, evil):
                with open(f"{packet.env}.next", "wb") as file:
                    file.write(data)
                os.replace(f"{packet.env}.next", packet.env)

    thread = threading.Thread(target=replace)
    thread.start()
    seen: set[str] = set()

    def look() -> bool:
        for _ in range(500):
            try:
                seen.add(environment.read_captured(packet, task.env_sha256)["env"]["PATH"])
            except CorruptFile:
                seen.add("refused")
        return len(seen) > 1

    try:
        eventually(look, 20.0, "both are seen")
        for _ in range(6):
            look()
    finally:
        is_over.set()
        thread.join()
        with open(packet.env, "wb") as file:
            file.write(good)
        holdfast("stop", "it", "--now")
        started.wait_for("killed")
    assert "/planted" not in seen
    assert "refused" in seen
