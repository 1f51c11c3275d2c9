"""Commands of a gate find the files of the judged tree, whatever agents of other tasks write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from holdfast.workspace import room_places
from tests.support import kin
from tests.support.repos import Repo, judge, judge_argv, packet_for, prepare, report
from tests.support.waiting import eventually


def test_what_an_agent_of_another_project_writes_in_the_home_is_not_in_a_room(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.write("check.sh", "exit 1\n")
    repo.commit()
    packet = packet_for(home, repo.path, acceptance_commands=("sh check.sh",), scope_allow=("b",))
    prepare(packet)
    repo.write("b", "new\n")
    report(packet, "done\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.gates", *judge_argv(packet, "codex_impl")],
        env={
            **os.environ,
            "HOLDFAST_FAILPOINT": "clean_room.made=stop",
            "HOLDFAST_FAILPOINT_ONCE": os.path.join(os.path.dirname(home), "once"),
        },
    )
    try:
        eventually(lambda: kin.state(process.pid) == "T", what="the room is made")
        for folder, _, names in os.walk(home):
            if "check.sh" in names:
                Repo(folder, with_git=False).write("check.sh", "exit 0\n")
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 1
    finally:
        process.kill()
        process.wait()
    assert room_places.rooms_of(packet) == []


def test_a_large_file_takes_no_place_of_a_file_of_the_tree(home: str) -> None:
    """A room gets a large file of the workspace only where the judged tree has a note of that file."""
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.write("check.sh", "exit 1\n")
    repo.commit()
    stages = (("codex_impl", "impl"), ("codex_verify", "verify"))
    packet = packet_for(
        home, repo.path, stages=stages, acceptance_commands=("sh check.sh",), scope_allow=("work",)
    )
    prepare(packet)
    repo.write("work")
    prepare(packet, "codex_verify")
    os.truncate(repo.write("check.sh", "exit 0\n"), 70 << 20)
    report(packet, "done\n", "codex_verify")
    code, result = judge(packet, "codex_verify")
    assert code == 1, result["reasons"]
    assert "`sh check.sh` failed" in str(result["reasons"])
