"""An agent puts a link to a directory of the user in place of a directory of its packet: nothing there is
written, changed or removed, by the rest of its task or by any command.

All directories: HOLDFAST_HOSTILE_FULL=1. Otherwise a sample.
"""

from __future__ import annotations

import os

import pytest

from tests.support import processes
from tests.support.packets import StandIns, Written
from tests.support.tasks import ENDS, Task, holdfast, workspace
from tests.support.waiting import eventually

#: Every directory of a packet with a worktree and gates, those of an interrupt and a retry, and attempts that
#: come next.
FOLDERS = (
    "attempts",
    "attempts/003-gemini_brief.gate",
    "attempts/005-codex_impl",
    "attempts/006-codex_impl.gate",
    "attempts/008-codex_verify",
    "outputs",
    "done",
    "inputs",
    "inputs/prompt",
    "inputs/attachments",
    "state",
    "state/codex",
    "state/interrupts",
    "state/workspace",
    "state/workspace/git",
    "state/workspace/git/objects",
    "state/workspace/git/refs",
    "state/workspace/indexes",
    "inbox",
    "scratch",
    "runs",
)
#: The user's directory has all that the packet's had, so that the names can be overwritten and removed.
PLANT = """
set -e
echo hello > b.txt
test -e {victim} && exit
cd "$HOLDFAST_PACKET"
mkdir -p {victim}
test -d {folder} && cp -R {folder}/. {victim}/
echo mine > {victim}/file
echo mine > {victim}/.file.99999999-0123456789ab.tmp
cp -R {victim} {victim}.before
test -d {folder} && {take_away}
ln -s {victim} {folder}
"""
WAYS = {"moved": "mv {folder} {folder}.away", "removed": "rm -rf {folder}"}
VERBS = (
    "interrupt it -m stop",
    "resume it -m go",
    "retry it",
    "stop it --now",
    "diff it",
    "apply it",
    "retry it --from codex_impl",
    "stop it --now",
    "archive it",
    "rm it --force",
)


def content(folder: str) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for place, folders, names in os.walk(folder):
        found |= dict.fromkeys(os.path.relpath(os.path.join(place, name), folder) for name in folders)
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def settled(task: Task) -> str | None:
    """The state of a task that does nothing more by itself."""
    status = task.status()
    return status if status in (*ENDS, "interrupted") else None


CASES = [(folder, "moved") for folder in FOLDERS] + [
    (folder, "removed") for folder in ("attempts", "attempts/005-codex_impl", "state", "outputs")
]
#: One writer of each kind: recorder, heartbeat, gate, git data.
SAMPLE = [
    ("attempts", "moved"), ("attempts", "removed"), ("attempts/006-codex_impl.gate", "moved"),
    ("state", "removed"), ("outputs", "moved"), ("state/workspace/git", "moved"),
]  # fmt: skip


@pytest.mark.parametrize(("folder", "way"), CASES if os.environ.get("HOLDFAST_HOSTILE_FULL") else SAMPLE)
def test_nothing_behind_a_link_in_a_packet_is_touched(home: str, folder: str, way: str) -> None:
    victim = os.path.join(os.path.dirname(home), "victim")
    agents = StandIns(["gemini_brief", "codex_impl", "codex_verify", "gemini_review"])
    take_away = WAYS[way].format(folder=folder)
    agents.tell("codex_impl.sh", PLANT.format(folder=folder, victim=victim, take_away=take_away))
    written = Written()
    written.project.commit("a")
    task = written.start("--worktree", env=agents.env)
    eventually(lambda: os.path.exists(f"{victim}.before"), 30, "the agent planted it", journal=task.packet)
    eventually(lambda: settled(task), 40, "the task does nothing more", journal=task.packet)
    before = content(f"{victim}.before")
    assert content(victim) == before
    for verb in VERBS:
        done = holdfast(*verb.split(), env=agents.env, cwd=written.project.path)
        assert done.returncode != 70, done.stderr
        assert content(victim) == before, verb
    assert not os.path.lexists(task.packet)
    assert content(victim) == before


@pytest.mark.parametrize("has_runner", [True, False])
def test_nothing_behind_a_link_in_place_of_the_packet_is_touched(home: str, has_runner: bool) -> None:
    """A packet may be a link to where a user has moved it; this one leads to what is no packet."""
    victim = os.path.join(os.path.dirname(home), "victim")
    for name in ("attempts/001-command_run", "state", "inbox", "outputs", "done"):
        os.makedirs(os.path.join(victim, name))
    before = content(victim)
    task = Task.shell("until test -e go; do sleep 0.05; done; exit 3", "--id", "it")
    agent = task.agent_pid()
    if not has_runner:
        task.kill_runner()
    os.rename(task.packet, f"{task.packet}.away")
    os.symlink(victim, task.packet)
    with open(os.path.join(workspace(), "go"), "wb"):
        pass
    eventually(lambda: not processes.is_alive(agent), within_s=30, what="the agent is gone")
    for verb in VERBS:
        done = holdfast(*verb.split())
        assert done.returncode != 70, done.stderr
        assert content(victim) == before, verb
