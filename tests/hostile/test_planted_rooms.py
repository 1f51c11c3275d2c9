"""A name that an agent plants among the clean rooms of its task removes nothing of another task."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from tests.support.repos import Repo, judge, packet_for, prepare, report
from tests.support.tasks import Task
from tests.support.waiting import eventually

#: Every name that the agent can see: of the room, and of its temporary directory.
PLANT = """
for name in "$@"; do mkdir -p "$HOLDFAST_PACKET/state/workspace/rooms/$name"; done
"""


def test_the_temporary_directory_of_another_task_stays(home: str) -> None:
    root = os.path.dirname(home)
    repo = Repo(os.path.join(root, "project"))
    repo.commit("a")
    at, going = os.path.join(root, "at"), os.path.join(root, "going")
    wait = f'touch "$TMPDIR/mine"; echo "$TMPDIR" > {at}.new; mv {at}.new {at}; n=0; '
    wait += f"until test -e {going} || test $n = 600; do n=$((n+1)); sleep 0.1; done; "
    command = wait + 'test -e "$TMPDIR/mine"'
    packet = packet_for(home, repo.path, acceptance_commands=(command,), scope_allow=("b",))
    prepare(packet)
    repo.write("b", "new\n")
    report(packet, "done\n")
    with ThreadPoolExecutor(1) as pool:
        judged = pool.submit(judge, packet, before=["env"])
        try:
            eventually(lambda: os.path.exists(at) or judged.done(), within_s=40, what="the command runs")
            with open(at, encoding="utf-8") as file:
                temporary = file.read().strip()
            names = [*os.listdir(packet.rooms), os.path.basename(temporary).removeprefix("hf-")]
            Task.start("--", "sh", "-c", PLANT, "sh", *names).wait_for("completed")
        finally:
            with open(going, "w", encoding="utf-8"):
                pass
        result = judged.result(60)[1]
    assert result["passed"], result["reasons"]
    assert not os.path.exists(temporary)
    assert os.listdir(packet.rooms) == []


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
