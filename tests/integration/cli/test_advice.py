"""Every refusal and failure has a hint what to do next, and the hint is right."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from holdfast.testing import Scenario
from tests.support.packets import Written, played
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal

DOWN = "this home is down: queued tasks start after 'holdfast up' (or the next 'run')"


def unwrapped(done: subprocess.CompletedProcess[str]) -> str:
    """Its output with each fact on one line."""
    return re.sub(r"\n +", " ", done.stdout)


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def hint(*args: str, status: int = 3) -> str:
    """The hint of a refused command line."""
    done = holdfast(*args, cwd=workspace())
    assert done.returncode == status, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("hint: ")]
    assert len(lines) == 1, done.stderr
    return lines[0].removeprefix("hint: ")


def ended() -> Task:
    task = Task.shell("true", "--id", "done")
    task.wait_for("completed")
    return task


@pytest.mark.parametrize("verb", ["interrupt", "resume", "approve", "reject", "retry"])
def test_an_ended_task_can_be_started_again(verb: str) -> None:
    task = ended()
    # With the stage, as the hint says: a plain retry is refused if all stages are done.
    options = ["--message", "it's late", "--permissions", "full"] if verb == "retry" else []
    words = shlex.split(hint(verb, "done", *options).removeprefix("to run it again: "))[1:]
    assert words == ["retry", "done", "--from", "command_run", *options]
    assert holdfast(*words).returncode == 0
    task.wait_for_event("run.opened")
    task.wait_for("completed")


@pytest.mark.parametrize("verb", ["interrupt", "resume"])
def test_a_failed_task_can_be_started_again(verb: str) -> None:
    Task.shell("false", "--id", "done").wait_for("failed")
    assert "'holdfast retry done'" in hint(verb, "done")


def test_a_task_at_work_is_ended_before_it_is_started_again() -> None:
    task = Task.shell("sleep 60", "--id", "busy")
    task.agent_pid()
    assert "'holdfast stop busy'" in hint("retry", "busy")
    assert "'holdfast stop busy'" in hint("resume", "busy")
    assert task.ask("stop").returncode == 0
    task.wait_for("killed")


def test_a_queued_task_that_cannot_be_interrupted() -> None:
    holdfast("submit", "--id", "later", "--", "true", cwd=workspace())
    assert "'holdfast queue rm later'" in hint("interrupt", "later")
    assert "'holdfast queue ls'" in hint("queue", "retry", "later")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("submit", "--priority", "bogus", "--", "true"), "high"),
        (("submit", "--not-before", "yesterday", "--", "true"), "+2h"),
        (("logs", "done", "-n", "abc"), "--lines 10"),
        (("wait", "done", "--timeout", "abc"), "--timeout 10m"),
        (("prune", "--keep", "x"), "--keep 10"),
        (("queue", "import", "x.json", "--most", "0"), "--most 10"),
        (("queue", "import"), "holdfast queue import items.json"),
        (("queue", "add"), "holdfast queue add '{"),
        (("queue", "rm"), "'holdfast queue rm TASK'"),
        (("queue", "rm", "a", "b"), "'holdfast queue rm --help'"),
        (("run", "--max-turns", "-1", "--", "true"), "--max-turns=10"),
        (("run", "--session", "x", "--", "true"), "'holdfast agent list'"),
        (("events", "done", "--export", "no/such/x"), "create it, or choose another file"),
    ],
)
def test_a_value_that_cannot_be_read(args: tuple[str, ...], message: str) -> None:
    ended()
    assert message in hint(*args, status=2)


def test_a_queue_task_that_goes_on_after_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    holdfast("submit", "--id", "it", "--", "sleep", "60", cwd=workspace())
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it"))
    task.agent_pid()
    assert task.ask("interrupt").returncode == 0
    task.wait_for("interrupted")
    assert holdfast("down").returncode == 0
    going = task.ask("resume")
    assert (going.returncode, going.stderr) == (0, f"it is queued, first in line\n{DOWN}\n")
    assert task.status() == "queued"
    waited = holdfast("wait", "it", "--timeout", "0.2s")
    assert waited.returncode == 6
    assert waited.stderr.startswith(f"{DOWN}\n")


def test_the_queue_alone_is_shown(home: str) -> None:
    done = holdfast("queue")
    assert (done.returncode, done.stderr) == (0, "the queue is empty\n")


def test_a_queue_that_does_not_move_says_why(home: str) -> None:
    path = os.path.join(home, "interrupt-request.txt")
    holdfast("submit", "--id", "it", "--", "true", cwd=workspace())
    with open(path, "w", encoding="utf-8") as file:
        file.write("look at the disk\n")
    told = holdfast("queue").stderr
    waits = "the queue waits for a person: look at the disk; 'holdfast queue resume' continues"
    assert waits in told
    assert f"queue     queued: {waits}" in unwrapped(holdfast("show", "it"))
    assert f"waits:        {waits}" in unwrapped(holdfast("queue", "show", "it"))
    assert holdfast("submit", "--id", "more", "--", "true", cwd=workspace()).stderr == f"{waits}\n"
    os.unlink(path)
    holdfast("queue", "pause")
    paused = holdfast("submit", "--id", "third", "--", "true", cwd=workspace()).stderr
    assert paused == "the queue is paused; 'holdfast queue resume' continues\n"
    assert "the queue is paused; 'holdfast queue resume' continues" in holdfast("queue").stderr
    holdfast("queue", "resume")
    holdfast("down")
    assert DOWN in holdfast("queue").stderr
    assert f"queue     queued: {DOWN}" in unwrapped(holdfast("show", "it"))


def test_unmerged_work_is_not_offered_a_flag_that_is_not_there() -> None:
    repo = Repo(os.path.join(workspace(), "repo"))
    repo.write("README.md")
    repo.commit("README.md")
    Task.shell("echo new > new.txt", "--worktree", "--id", "it", project=repo.path).wait_for("completed")
    message = hint("archive", "it")
    assert "'holdfast apply it'" in message
    assert "'holdfast rm --force it'" in message


def test_what_another_try_does_not_heal_is_not_just_tried_again() -> None:
    scenario = Scenario().write("b.txt", content="hello\n").write("elsewhere.txt", content="x\n")
    written = Written({"scripted_impl": played("impl", before=scenario)})
    done = holdfast("run", "--packet", written.path, cwd=written.project.path)
    assert done.returncode == 1, done.stderr
    assert "no automatic retry" in done.stderr
    assert "  holdfast diff it" in done.stderr
    assert "retry it   try again" not in done.stderr
    assert "outputs/_summary.md" in done.stderr


@pytest.mark.parametrize("columns", [80, 60])
def test_the_doctor_breaks_no_word(columns: int) -> None:
    terminal = Terminal("doctor", columns=columns, env={"NO_COLOR": "1"})
    terminal.finish()
    lines = terminal.text.replace("\r", "").splitlines()
    assert all(len(line) <= columns or " " not in line[18:].strip() for line in lines), lines


@pytest.mark.parametrize(
    "args", [("new", "--intent", "safe_impl", "--goal", "x"), ("run", "--", "true"), ("submit", "--", "true")]
)
def test_a_directory_that_is_gone_is_said_to_be_gone(args: tuple[str, ...]) -> None:
    """And not that stdout is full, which is how an error without a file name looks."""
    here = os.path.join(workspace(), "gone")
    os.mkdir(here)
    script = f"rmdir {here}; {sys.executable} -P -m holdfast {shlex.join(args)}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=here, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: the current directory no longer exists\nhint: ")


def test_a_task_whose_time_was_over_is_offered_more_of_it() -> None:
    done = holdfast("run", "--id", "slow", "--deadline", "0.3s", "--", "sleep", "60", cwd=workspace())
    assert done.returncode == 5, done.stderr
    assert "holdfast retry slow --deadline 1s" in done.stderr


def suggested(task_id: str) -> list[str]:
    """The commands that `show` prints as next, the best first."""
    lines = holdfast("show", task_id, env={"COLUMNS": "250"}).stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("next "))
    rows = [lines[at], *(line for line in lines[at + 1 :] if line.startswith("          holdfast "))]
    return [re.split(r"\s{3,}", row[10:].strip())[0] for row in rows if "holdfast " in row]


def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("a")
    return repo


def stopped() -> Task:
    task = Task.shell("sleep 60", "--id", "it")
    task.agent_pid()
    task.ask_patiently("stop")
    return task


NEXT = {
    "failed": (lambda: Task.shell("exit 3", "--id", "it"), "failed"),
    "deadline": (lambda: Task.shell("sleep 60", "--id", "it", "--deadline", "0.3s"), "abandoned"),
    "timeout": (lambda: Task.shell("sleep 60", "--id", "it", "--timeout", "0.3s"), "interrupted"),
    "question": (
        lambda: Task.play(Scenario().interrupt_request("May?", once=True).sleep(9, once=True), "--id", "it"),
        "interrupted",
    ),
    "login": (lambda: Task.play(Scenario().unauthorized("no key"), "--id", "it"), "interrupted"),
    "budget": (
        lambda: Task.play(Scenario().usage(cost_usd=2.0).result("ok"), "--id", "it", "--budget-usd", "1",
                          "--accept", "test -e good", project=project().path),
        "interrupted",
    ),
    "acceptance": (
        lambda: Task.shell("true", "--id", "it", "--accept", "test -e good", project=project().path),
        "failed",
    ),
    "worktree": (
        lambda: Task.shell("echo x > new", "--id", "it", "--worktree", project=project().path),
        "completed",
    ),
    "stopped": (stopped, "killed"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NEXT)
def test_the_first_commands_that_show_prints_work_as_printed(kind: str) -> None:
    start, status = NEXT[kind]
    start().wait_for(status, within_s=40)
    commands = suggested("it")
    assert commands, kind
    for command in commands[:2]:
        words = shlex.split(command)
        assert words[0] == "holdfast"
        done = holdfast(*words[1:], cwd=workspace())
        assert done.returncode == 0, (command, done.stderr)
        if words[1] in ("retry", "resume", "stop"):
            break
    holdfast("stop", "it")
