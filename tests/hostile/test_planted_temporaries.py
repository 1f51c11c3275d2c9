"""Temporary files have names that nobody can foresee: a pipe there would block the writer, and a second name
of a user's file would be written to."""

from __future__ import annotations

import os
import sys

from tests.support.tasks import Task, holdfast, workspace

#: What an agent can know: the directory, the name, the writer's pid, and how its temporary files were named.
PLANT = """
import json, os
attempt, packet = os.environ["HOLDFAST_ATTEMPT"], os.environ["HOLDFAST_PACKET"]
with open(packet + "/runner.lock") as file:
    runner = json.load(file)["pid"]
names = [f"{attempt}/.{name}.{os.getppid()}.tmp" for name in ("exit.json", "exit_code", "done")]
for folder, name in (("", "manifest.json"), ("/done", "_task.done"), ("/outputs", "_summary.md")):
    names += [f"{packet}{folder}/.{name}.{runner}-{number}.tmp" for number in range(100)]
for name in names:
    if not os.path.lexists(name):
        make(name)
"""
PIPES = "import os\nmake = os.mkfifo\n" + PLANT
LINKS = "import os\nmake = lambda name: os.link(os.environ['HOME'] + '/precious', name)\n" + PLANT


def test_a_pipe_in_place_of_a_temporary_file_blocks_nobody(home: str) -> None:
    task = Task.start("--env", "HOME", "--", sys.executable, "-c", PIPES)
    task.wait_for("completed")
    assert holdfast("rm", task.id).returncode == 0


def test_nothing_is_written_through_a_second_name_in_place_of_a_temporary_file(home: str) -> None:
    precious = os.path.join(os.environ["HOME"], "precious")
    with open(precious, "w", encoding="utf-8") as file:
        file.write("mine")
    os.makedirs(workspace(), exist_ok=True)
    Task.start("--env", "HOME", "--", sys.executable, "-c", LINKS).wait_for("completed")
    with open(precious, encoding="utf-8") as file:
        assert file.read() == "mine"
