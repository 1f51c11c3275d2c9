"""`holdfast takeover`: a person in the agent's session, and what every loss leaves behind."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import jsonschema
import pytest

from contracts import schema
from holdfast.packet import session_lock
from holdfast.store import lock as locks
from holdfast.store import process
from holdfast.store.layout import Packet
from holdfast.testing import Scenario, SessionMemory
from tests.support import kin, loops, processes, repos
from tests.support.packets import REPORTS, Written
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


def usage_of(task: Task) -> dict:
    return task.manifest()["usage"]


def test_what_a_takeover_uses_is_unknown_and_every_figure_says_so() -> None:
    scenario = Scenario().say("at work").hang(once=True)
    scenario.usage(input_tokens=1200, output_tokens=300, cost_usd=0.5).say("thanks").result("ok")
    task = Task.play(scenario, *EAGER, "--budget-usd", "9")
    eventually(lambda: "at work" in task.log(), what="the agent works")
    with taken(task, "-m", "thanks") as terminal:
        assert usage_of(task)["uncounted_takeovers"] == 1
        terminal.press("exit\n")
        assert terminal.finish() == 0
    task.wait_for("completed")
    assert usage_of(task)["uncounted_takeovers"] == 1
    assert task.manifest()["attempt"] == 2, "a takeover is no attempt"
    shown = holdfast("show", task.id).stdout
    assert "at least 1.2k tokens in, 300 out, cost at least $0.50" in shown, shown
    assert "at least $0.50 of $9.00" in shown
    (row,) = (line for line in holdfast("ls").stdout.splitlines() if task.id in line)
    assert "≥1.5k" in row
    with open(task.path("outputs", "_summary.md"), encoding="utf-8") as file:
        assert "tokens: at least 1200 in, 300 out; cost: at least $0.50" in file.read()
    assert "at least 1.2k tokens in" in holdfast("metrics", task.id).stdout
    report = holdfast("report").stdout
    assert "## Takeovers (1)" in report
    assert re.search(rf"{task.id}  scripted by \S+: handed back \d\d:\d\d", report)
    facts = json.loads(holdfast("report", "--json").stdout)
    jsonschema.validate(facts, schema.schemas()["report"])
    (takeover,) = facts["takeovers"]
    assert (takeover["how"], takeover["stage"]) == ("handed_back", "scripted_run")
    assert "## Takeovers" not in holdfast("report", "--since", "0s").stdout


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


# ── a packet's stages ──


STAGES = ("scripted_brief", "scripted_impl", "scripted_review")


def written(**stages: Scenario | None) -> tuple[Task, repos.Repo]:
    packet = Written(stages, budgets={"max_wallclock_sec": 600})
    done = holdfast("run", "-d", "--packet", packet.path, cwd=packet.project.path)
    assert done.returncode == 0, done.stderr
    return Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", packet.task_id)), packet.project


def test_the_stage_at_work_is_taken_over_and_its_gate_judges_what_the_person_changed() -> None:
    work = Scenario().say("at work").hang(once=True).say(REPORTS["impl"]).result("ok")
    task, project = written(**{**dict.fromkeys(STAGES), "scripted_impl": work})
    task.wait_for_log("at work", within_s=60)
    with taken(task, "-m", "mind b.txt") as terminal:
        assert (taken_now := task.manifest()["takeover"])["stage"] == "scripted_impl"
        stage = next(each for each in task.manifest()["stages"] if each["name"] == "scripted_impl")
        assert taken_now["session_id"] == stage["session_id"]
        # No other task may write there meanwhile.
        other = Written(dict.fromkeys(STAGES), task_id="other", project=project)
        assert holdfast("run", "-d", "--packet", other.path, cwd=project.path).returncode == 0
        waits = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "other"))
        eventually(lambda: "waiting_for" in waits.manifest(), 30, "the workspace is taken")
        terminal.press("!echo by hand > b.txt; pwd\n")
        terminal.read_until(f"\n{project.path}")
        terminal.press("exit\n")
        assert terminal.finish() == 0
        assert "1 file changed" in terminal.text
    task.wait_for("completed", within_s=60)
    states = [(each["name"], each["state"], each["gate"]) for each in task.manifest()["stages"]]
    assert [state for _, state, _ in states] == ["done", "done", "done"]
    assert {name: gate for name, _, gate in states}["scripted_impl"] == "passed"
    memory = SessionMemory(os.path.join(os.environ["HOLDFAST_HOME"], "scripted-agent", stage["session_id"]))
    told = memory.starts()[-1].prompt
    assert "took over" in told
    assert "mind b.txt" in told
    assert "+by hand" in told
    # Not the file: the other task may write it by now.
    assert b"+by hand" in task.read("outputs/_changes.patch")
    waits.wait_for("completed", within_s=60)


def test_a_change_of_a_person_outside_the_scope_is_found_by_the_gate() -> None:
    work = Scenario().say("at work").write("b.txt", content="hello\n").hang(once=True)
    task, _ = written(scripted_impl=work.say(REPORTS["impl"]).result("ok"))
    task.wait_for_log("at work", within_s=60)
    with taken(task, "-m", "go on") as terminal:
        terminal.press("!echo x > secret.txt\n")
        terminal.read_until("done: !echo")
        terminal.press("exit\n")
        assert terminal.finish() == 0
    eventually(lambda: task.events("gate.judged"), 60, "the gate judges it")
    (gate,) = task.events("gate.judged")
    assert (gate["passed"], gate["failed"]) == (False, "scope")


def test_a_stage_that_waits_for_approval_has_no_session() -> None:
    packet = Written({"scripted_brief": None, "scripted_impl": None}, approval=["scripted_impl"])
    assert holdfast("run", "--packet", packet.path, cwd=packet.project.path).returncode == 4
    terminal = Terminal("takeover", packet.task_id, cwd=workspace())
    assert terminal.finish() == 3
    assert "scripted_impl has not started" in terminal.text
    assert "holdfast approve" in holdfast("show", packet.task_id).stdout


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
    assert "an agent may not" in agent.log()
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
