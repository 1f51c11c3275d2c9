"""`holdfast takeover`: a person in the agent's session, and what every loss leaves behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.packet import session_lock
from holdfast.store import lock as locks
from holdfast.store import process
from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from tests.support import kin, loops, processes, repos
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.tools import need_sandbox
from tests.support.waiting import eventually

EAGER = ("--base-interval", "0.2s", "--stale", "none", "--stop-pause", "5s")
AT_WORK = Scenario().say("at work").hang(once=True).say("thanks").result("ok")


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def in_git() -> None:
    repo = repos.Repo(workspace())
    repo.write("a.txt", "one\n")
    repo.commit("a.txt")


@contextmanager
def taken(task: Task, *flags: str, env: dict[str, str] | None = None) -> Iterator[Terminal]:
    """The terminal of a takeover whose program has begun."""
    terminal = Terminal("takeover", task.id, *flags, cwd=workspace(), env=env)
    try:
        terminal.read_until("after 1 processes")
        yield terminal
    finally:
        terminal.kill()


def at_work(*flags: str, **given: str) -> Task:
    task = Task.play(AT_WORK, *EAGER, *flags, **given)
    eventually(lambda: "at work" in task.log(), what="the agent works")
    return task


def lock_of(task: Task) -> str:
    (name,) = (name for name in os.listdir(task.path("attempts")) if name.endswith(".takeover"))
    return task.path("attempts", name, "lock")


def is_session_free(task: Task) -> bool:
    packet = Packet(task.packet)
    path = session_lock.path_of(packet.home, "scripted", task.manifest()["session_id"])
    return not locks.is_held(path)


def ended(task: Task) -> dict:
    return task.manifest()["takeover"]["ended"] or {}


def marked(task: Task) -> list[int]:
    """Living processes of the takeover."""
    folder = os.path.dirname(lock_of(task))
    return [pid for pid in process.all_pids() if process.variable(pid, "HOLDFAST_ATTEMPT") == folder]


# ── the whole way ──


@pytest.mark.req("INT-3")
def test_a_person_works_in_the_session_and_the_agent_goes_on_with_message_and_diff() -> None:
    in_git()
    task = at_work()
    agent = task.agent_pid()
    with taken(task) as terminal:
        assert not processes.is_alive(agent)
        assert f"session {task.manifest()['session_id']}" in terminal.text
        assert f"in {workspace()}" in terminal.text
        assert not is_session_free(task)
        terminal.press("!echo two >> a.txt; sleep 600 & echo $HOLDFAST_TASK\n")
        terminal.read_until(f"\n{task.id}")
        terminal.press("exit\n")
        terminal.read_until("Message for the agent")
        terminal.press("mind a.txt\n")
        assert terminal.finish() == 0
        assert "handed back" in terminal.text
        assert "1 file changed" in terminal.text
        assert "ended 1 process" in terminal.text
    task.wait_for("completed")
    first, second = task.memory().starts()
    assert (first.is_resume, second.is_resume) == (False, True)
    assert "mind a.txt" in second.prompt
    assert "+two" in second.prompt
    assert "took over" in second.prompt
    assert task.memory().overlaps() == []
    assert marked(task) == []
    assert ended(task) | {"at": ""} == {"how": "handed_back", "at": "", "files": 1}
    kinds = [event["type"] for event in task.events()]
    assert kinds.index("takeover.started") < kinds.index("takeover.ended")
    shown = holdfast("show", task.id).stdout
    assert "taken over by" in shown


def test_keep_leaves_the_task_interrupted_and_a_resume_tells_the_agent() -> None:
    task = at_work()
    with taken(task, "--keep") as terminal:
        terminal.press("exit 3\n")
        assert terminal.finish() == 0
        assert "stays interrupted" in terminal.text
    assert task.manifest()["status"] == "interrupted"
    assert ended(task)["how"] == "kept"
    assert is_session_free(task)
    assert task.ask("resume", "-m", "go on").returncode == 0
    task.wait_for("completed")
    prompt = task.memory().starts()[1].prompt
    assert "took over" in prompt
    assert "go on" in prompt


def test_ctrl_c_after_the_program_does_not_keep_the_task_from_the_agent() -> None:
    task = at_work()
    with taken(task, "-m", "thanks") as terminal:
        terminal.press("!sleep 0.3; kill -9 $PPID\n")
        terminal.type_until_ended("\x03", every_s=0.02, within_s=30)
        assert terminal.finish() == 0
    task.wait_for("completed")


def test_an_interrupted_task_is_taken_over_and_ctrl_d_keeps_it_so() -> None:
    task = at_work()
    assert task.ask("interrupt", "-m", "which one?").returncode == 0
    with taken(task) as terminal:
        terminal.press("exit\n")
        terminal.read_until("Message for the agent")
        terminal.press("\x04")
        assert terminal.finish() == 0
    assert task.manifest()["status"] == "interrupted"
    assert task.manifest()["interrupt"]["reason"] == "which one?"


# ── while it is taken over ──


def test_nobody_else_resumes_stops_or_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.up()
    task = at_work()
    with taken(task, "-m", "thanks") as terminal:
        for verb in ("resume", "stop"):
            refused = task.ask(verb)
            assert refused.returncode == 3
            assert "has taken over its session" in refused.stderr
        again = Terminal("takeover", task.id, cwd=workspace())
        assert again.finish() == 3
        assert "taken over already, by" in again.text
        # The keeper would resume it: its interrupt file is gone.
        os.unlink(task.path("state", "interrupt-request.txt"))
        loops.ring(os.environ["HOLDFAST_HOME"])
        eventually(lambda: "resume" not in [e["verb"] for e in task.events("request.applied")])
        assert task.manifest()["status"] == "interrupted"
        shown = holdfast("show", task.id).stdout
        assert "has its session now" in shown
        terminal.press("exit\n")
        assert terminal.finish() == 0
    task.wait_for("completed")
    assert task.memory().overlaps() == []


# ── refusals ──


@pytest.mark.parametrize(
    ("state", "words"),
    [("completed", "has ended: completed"), ("queued", "is queued"), ("command", "has no session")],
)
def test_it_says_why_it_cannot_be_taken_over(state: str, words: str) -> None:
    if state == "completed":
        task = Task.play(Scenario().say("done").result("ok"))
        task.wait_for("completed")
    elif state == "queued":
        task = loops.submit("--", "true")
    else:
        task = Task.shell(kin.WAIT)
        task.wait_for("running")
    terminal = Terminal("takeover", task.id, cwd=workspace())
    assert terminal.finish() == 3
    assert words in terminal.text
    assert task.manifest()["status"] == {"command": "running"}.get(state, state)
    if state == "command":
        task.ask("stop", "--now")


def test_it_needs_a_terminal_and_a_person() -> None:
    task = at_work()
    refused = task.ask("takeover")
    assert refused.returncode == 3
    assert "needs a terminal" in refused.stderr
    assert task.manifest()["status"] == "running"
    agent = Task.shell(f"script -qec '{sys.executable} -m holdfast takeover {task.id}' /dev/null; true")
    agent.wait_for("completed")
    assert "only a person can" in agent.log()
    assert task.manifest()["status"] == "running"
    task.ask("stop", "--now")


# ── losses ──


def left_clean(task: Task, pids: list[int]) -> None:
    """The task stays interrupted, nothing runs, and every lock is free."""
    for pid in pids:
        eventually(lambda pid=pid: not processes.is_alive(pid), what=f"{pid} has ended")
    eventually(lambda: not locks.is_held(lock_of(task)), what="the takeover's lock is free")
    eventually(lambda: is_session_free(task), what="the session's lock is free")
    eventually(lambda: ended(task).get("how") == "lost", what="its end is journalled")
    assert marked(task) == []
    assert task.manifest()["status"] == "interrupted"
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")
    assert task.memory().overlaps() == []


def holding(task: Task, terminal: Terminal) -> tuple[int, int, int]:
    """The process that holds the session, the program, and one that it left running."""
    # Without the trap, it would end with the terminal's session.
    terminal.press("!trap '' HUP; sleep 600 </dev/null >/dev/null 2>&1 &\n")
    terminal.read_until("done: !trap")
    (holder,) = (pid for pid in process.children(terminal.pid) if process.name(pid) == "holdfast-take")
    (program,) = (pid for pid in marked(task) if "holdfast.testing.agent" in process.command_line(pid))
    (left,) = eventually(
        lambda: [pid for pid in marked(task) if process.command_line(pid) == "sleep 600"], what="it sleeps"
    )
    return holder, program, left


def test_a_lost_terminal_ends_the_program_and_frees_the_locks() -> None:
    task = at_work()
    with taken(task) as terminal:
        pids = holding(task, terminal)
        terminal.hang_up()
    left_clean(task, [*pids])


@pytest.mark.parametrize("victim", ["command", "holder"])
def test_a_kill_of_either_process_ends_the_program_and_frees_the_locks(victim: str) -> None:
    task = at_work()
    with taken(task) as terminal:
        holder, program, left = holding(task, terminal)
        os.kill(terminal.pid if victim == "command" else holder, signal.SIGKILL)
        assert terminal.finish() in (-signal.SIGKILL, 1)
        left_clean(task, [holder, program, left])


def test_both_killed_the_next_runner_ends_what_is_left() -> None:
    task = at_work()
    with taken(task) as terminal:
        holder, program, left = holding(task, terminal)
        os.kill(terminal.pid, signal.SIGSTOP)
        os.kill(holder, signal.SIGKILL)
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.finish()
        eventually(lambda: not processes.is_alive(program), what="the kernel ended the program")
        assert processes.is_alive(left)
        assert is_session_free(task)
        # 6: it looks for what is left first, which may take longer than a command waits for its answer.
        assert task.ask("resume").returncode in (0, 6)
        task.wait_for("completed", within_s=30)
        assert not processes.is_alive(left)
        assert ended(task)["how"] == "lost"


# ── where the agent works ──


def test_a_sandboxed_task_is_taken_over_in_its_sandbox() -> None:
    need_sandbox()
    task = at_work("--sandbox")
    with taken(task, "-m", "thanks") as terminal:
        terminal.press("!touch /etc/x; ls $HOLDFAST_HOME/tasks; hostname\n")
        terminal.read_until("sandbox")
        assert "Read-only" in terminal.text
        terminal.press("exit\n")
        assert terminal.finish() == 0
    task.wait_for("completed")
    assert task.memory().overlaps() == []


def test_a_worktree_task_is_taken_over_in_its_worktree() -> None:
    in_git()
    task = at_work("--worktree")
    with taken(task, "-m", "thanks") as terminal:
        assert f"in {os.path.realpath(os.environ['HOLDFAST_HOME'])}/worktrees/" in terminal.text
        terminal.press("!echo two >> a.txt\n")
        terminal.read_until("done: !echo")
        terminal.press("exit\n")
        assert terminal.finish() == 0
    task.wait_for("completed")
    assert "+two" in task.memory().starts()[1].prompt
