"""Files that an agent exchanges with others while they are looked at: no command of the others runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.gates import quality
from holdfast.keeper import loop_state
from holdfast.packet import sealed
from holdfast.store import up_options
from holdfast.store.layout import Home
from tests.support.repos import Repo
from tests.support.tasks import Task, workspace

#: Two names change places, as fast as that goes.
_EXCHANGE = """
import ctypes, os, sys
exchange, (one, other) = ctypes.CDLL(None).renameat2, map(os.fsencode, sys.argv[1:])
while os.getppid() > 1:
    for _ in range(1000):
        exchange(-100, one, -100, other, 2)
"""
_TRIES = 600


@contextmanager
def exchanging(one: str, other: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", _EXCHANGE, one, other])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_a_gate_looks_for_its_packet_once(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its runner believes is about the packet that was found first."""
    repo, root = Repo(workspace()), os.path.dirname(home)
    repo.write("a.txt", "one\n")
    repo.commit("a.txt")
    task = Task.shell("echo two > a.txt", "--accept", "exit 0")
    task.wait_for("completed")
    proof, other, link = os.path.join(root, "ran"), os.path.join(root, "other"), task.packet + ".other"
    shutil.copytree(task.packet, other, ignore=shutil.ignore_patterns("bell"))
    with open(os.path.join(other, "events.jsonl"), "wb") as file:
        file.write(task.read("events.jsonl").replace(b'"exit 0"', json.dumps(f"touch {proof}").encode()))
    os.symlink(other, link)
    out = os.path.join(root, "out.json")
    words = ["after", "--packet", task.packet, "--stage", "command_run", "--attempt", "1", "--out", out]
    # A digest that fits neither: what is found by the runner's word is refused at once.
    words += ["--artifact", os.path.join(root, "out.md"), "--journal", f"10:{'00' * 16}"]
    monkeypatch.setattr(sealed, "_pinned", None)
    with exchanging(task.packet, link):
        for _ in range(_TRIES):
            assert quality.main(words), "a journal counts that the runner does not believe"
    assert not os.path.exists(proof)


def test_the_options_of_up_are_read_once(home: str) -> None:
    """Their digest is that of the sources which are used."""
    mine, other = Home(home).up, Home(home).up + ".other"
    os.makedirs(home, exist_ok=True)
    for path, loop in ((mine, {"slots": 2}), (other, {"sources": ["cmd:true"], "project": home})):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schema": "holdfast.up/1", "loop": loop}, file)
    with open(mine, "rb") as file:
        up_options.note(home, file.read())
    with exchanging(mine, other):
        for _ in range(_TRIES):
            assert not loop_state.read_spec(Home(home)).sources
