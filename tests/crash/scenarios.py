"""The lives of a task that the crash run interrupts: how each begins, what is requested, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from holdfast import clock, seed_client
from holdfast.model import events as ev
from holdfast.model.spec import SandboxSpec
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.packet import inbox, load
from holdfast.store import atomic, journal, lock_owner, process
from holdfast.store import lock as locks
from holdfast.testing import Scenario as Script
from tests.crash import delivered, fan_outs, invariants, phones, takeovers, written
from tests.crash.drive import LIMITS, Case, deadline
from tests.support import processes
from tests.support.tools import need_sandbox
from tests.support.waiting import eventually

#: A condition, and an action that is done once when it holds.
Act = tuple[Callable[[Case], bool], Callable[[Case], None]]


class Scenario(NamedTuple):
    """One life."""

    name: str
    begin: Callable[[Case], None]
    acts: tuple[Act, ...]
    end: Status
    #: Retries of a life without a kill; None if a busy machine may add some.
    retries: int | None
    #: Whether runners are executed; in most scenarios they are forked, which is faster.
    executes_runners: bool = False
    #: Whether it starts its first runner itself.
    starts_itself: bool = False
    #: Restarts runners while the task is live.
    tend: Callable[[Case], None] = Case.tend
    #: Ends other processes of the scenario.
    finish: Callable[[Case], None] | None = None
    #: Additional invariants at its end.
    check: Callable[[Case, Task], None] | None = None
    #: Whether the whole crash run kills at each pass of every point, or only at samples of its passes.
    is_short: bool = True
    #: The whole crash run kills only at points whose name starts with one of these.
    only: tuple[str, ...] | str = ""


def _counting(then: str = "") -> list[str]:
    return ["sh", "-c", f"for i in 1 2 3 4 5; do echo line $i; done; {then}"]


def _script(case: Case, script: Script) -> str:
    return str(script.write_to(os.path.join(case.root, "script.json")))


def _lines(first: int, last: int, script: Script) -> Script:
    for number in range(first, last + 1):
        script.say(f"line {number}")
    return script


def _go(case: Case) -> str:
    return os.path.join(case.project, "go")


def _touch(path: str) -> None:
    with open(path, "ab"):
        pass


# ── how they begin ──


def _plain(case: Case) -> None:
    case.create(command=_counting())


def _crashing(case: Case) -> None:
    script = _lines(1, 3, Script().fail_if_running()).crash("KILL", tries=1)
    case.create(scenario=_script(case, _lines(4, 6, script).result("done")))


def _hanging(case: Case) -> None:
    script = _lines(1, 3, Script().fail_if_running()).hang(tries=1)
    limits = LIMITS.evolve(stale_s=0.5, grace_s=0.2)
    case.create(scenario=_script(case, _lines(4, 6, script).result("done")), limits=limits)


def _endless(case: Case) -> None:
    case.create(scenario=_script(case, _lines(1, 3, Script().fail_if_running()).hang()))


def _until_told(case: Case) -> None:
    script = _lines(1, 3, Script().fail_if_running()).wait_file(_go(case), limit_s=30)
    case.create(scenario=_script(case, _lines(4, 6, script).result("done")))


def _sandboxed(case: Case) -> None:
    """In a sandbox: a crash, a resume, a question, an answer."""
    need_sandbox()
    script = _lines(1, 3, Script().fail_if_running()).crash("KILL", tries=1).interrupt_request("which one?")
    script = _lines(4, 6, script.wait_file(_go(case), limit_s=60)).result("done")
    case.create(scenario=_script(case, script), sandbox=SandboxSpec(network=False))


#: A stand-in for Codex, which chooses the id of its session itself: three lines, a wait, three more lines.
_CODEX = """#!/bin/sh
item='{"type":"item.completed","item":{"id":"item_%s","type":"agent_message","text":"line %s"}}\\n'
item() { printf "$item" $1 $1; }
echo '{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}'
echo '{"type":"turn.started"}'
item 1; item 2; item 3
while [ ! -e GO ]; do sleep 0.05; done
item 4; item 5; item 6
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"""


def _own_session(case: Case) -> None:
    folder = os.path.join(case.root, "bin")
    os.mkdir(folder)
    program = os.path.join(folder, "codex")
    with open(program, "w", encoding="utf-8") as file:
        file.write(_CODEX.replace("GO", _go(case)))
    os.chmod(program, 0o700)
    case.env |= {"PATH": f"{folder}:{os.environ['PATH']}", "OPENAI_API_KEY": "none"}
    case.create_for("codex")


def _stop_recorder(case: Case) -> None:
    """Stop the agent's recorder, then let the agent finish: the recorder owes a record until it is woken."""
    task = load.fold(case.packet)
    assert task.attempt is not None
    owner = lock_owner.owner(case.packet.attempt(task.attempt.dirname).lock)
    if owner is not None:
        process.send(owner, signal.SIGSTOP)
    _touch(_go(case))


def _failing(case: Case) -> None:
    case.create(command=_counting(f"test -e {_go(case)}"))


def _not_executable(case: Case) -> None:
    path = os.path.join(case.project, "program")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/no/such/interpreter\n")
    os.chmod(path, 0o700)
    case.create(command=[path], limits=LIMITS.evolve(max_retries=2))


def _without_attempt(case: Case) -> None:
    """The agent removes the directory of its attempt. It prints nothing, which would be gone too."""
    wait = f"while [ ! -e {_go(case)} ]; do sleep 0.05; done; "
    case.create(command=["sh", "-c", wait + 'rm -rf "$HOLDFAST_ATTEMPT"'])


def _remove_lock(case: Case) -> None:
    """Remove the lock file of the runner, as a cleaner of stale locks does."""
    atomic.forget(case.packet.runner_lock)


def _is_locked_again(case: Case) -> bool:
    return os.path.exists(case.packet.runner_lock)


def _with_forgers(case: Case) -> None:
    """Fails until it may succeed, so that the task ends even if a forged line was not noticed."""
    wait = f"while [ ! -e {_go(case)} ]; do sleep 0.05; done; "
    case.create(command=_counting(f"{wait}test -e {_may_succeed(case)}"))


def _may_succeed(case: Case) -> str:
    return os.path.join(case.project, "may_succeed")


def _forged_line() -> bytes:
    """A success that no runner has written; it is longer than the line of a runner that leaves."""
    moved = ev.TaskMoved(old="running", new="completed", reason="success " * 50)
    return journal.encode_line(moved, clock.iso_now())


def _replace_journal(case: Case) -> None:
    """Under a living runner. The agent ends, so the runner has something to append."""
    path = case.packet.journal
    with open(path, "rb") as old, open(f"{path}.new", "wb") as new:
        new.write(old.read() + _forged_line())
    os.rename(f"{path}.new", path)
    _touch(_go(case))


def _append_to_journal(case: Case) -> None:
    with open(case.packet.journal, "ab") as file:
        file.write(_forged_line())
    _go_on(case)


def _change_journal(case: Case) -> None:
    """Write over its last line."""
    with open(case.packet.journal, "r+b") as file:
        data = file.read()
        file.seek(data.rindex(b"\n", 0, -1) + 1)
        file.write(_forged_line())
    _go_on(case)


def _let_succeed(case: Case) -> None:
    _touch(_may_succeed(case))
    _go_on(case)


def _rests(case: Case) -> bool:
    """Whether the task waits for a person, or has ended."""
    is_left = case.runner is None and not locks.is_held(case.packet.runner_lock)
    is_parked = case.status is Status.INTERRUPTED or os.path.exists(case.packet.task_done)
    return is_left and is_parked and not inbox.names(case.packet)


def _go_on(case: Case) -> None:
    if case.status is Status.INTERRUPTED:
        case.ask("resume")
    else:
        case.ask("retry", env=case.captured())


def _check_forged(case: Case, _: Task) -> None:
    """No forged line is left, and what was there is kept."""
    with open(case.packet.journal, "rb") as file:
        assert b"success success" not in file.read()
    kept = [name for name in os.listdir(case.packet.path) if name.startswith("events.jsonl.forged-")]
    assert len(kept) >= 3, kept
    # What was removed is told, also if its remover was killed before it could.
    with open(case.packet.journal, "rb") as file:
        assert file.read().count(b'"type":"journal.forged"') >= 3


def _leaving_somebody(case: Case) -> None:
    case.create(command=_counting("sleep 60 >/dev/null 2>&1 &"), leftovers="kill")


def _by_command_line(case: Case) -> None:
    argv = [
        "run",
        "-d",
        "--id",
        "task",
        "--project",
        case.project,
        "--base-interval",
        "0.3s",
        "--stale",
        "none",
    ]
    argv += ["--", *_counting("exec sleep 60")]
    if case.holdfast(*argv) != 0 and not os.path.isdir(case.packet.path):
        # Nothing was created, so the command is typed again.
        assert case.holdfast(*argv) == 0


def _stop_by_command_line(case: Case) -> None:
    argv = ("stop", "task", "--no-wait")
    if case.holdfast(*argv) != 0 and not inbox.names(case.packet) and case.status is Status.RUNNING:
        # Killed before the request was renamed into place, so the command is typed again.
        case.holdfast(*argv)


def _from_seed(case: Case) -> None:
    _plain(case)
    seed = subprocess.Popen([sys.executable, "-m", "holdfast.seed"], env=case.env, stderr=subprocess.DEVNULL)
    case.others.append(seed)
    while seed_client.ask(case.home, {"verb": "ping"}) is None:
        if seed.poll() is not None:
            return  # killed where it answered: the runner is started without it
        case.pause()
    seed_client.fork_runner(case.packet)


def _kept(case: Case) -> None:
    """A keeper restarts runners, and the test restarts the keeper."""
    os.unlink(case.home.down)
    script = _lines(1, 3, Script().fail_if_running()).crash("KILL", tries=1)
    case.create(scenario=_script(case, _lines(4, 6, script).result("done")))
    _tend_keeper(case)


def _kept_by(begin: Callable[[Case], None]) -> Callable[[Case], None]:
    """A life in which a keeper starts everything."""

    def begin_with_keeper(case: Case) -> None:
        os.unlink(case.home.down)
        begin(case)
        _tend_keeper(case)

    return begin_with_keeper


def _tend_keeper(case: Case) -> None:
    if locks.is_held(case.home.keeper_lock) or any(other.poll() is None for other in case.others):
        return
    with open(case.log, "ab") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "holdfast.keeper"],
            env=case.env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    case.others.append(keeper)


def _dismiss(case: Case) -> None:
    """End keeper and seed, which outlive the task."""
    _touch(case.home.down)

    def are_gone() -> bool:
        own = [
            p
            for p in processes.marked(case.root)
            if "holdfast.keeper" in p.command or "holdfast.seed" in p.command
        ]
        processes.kill(own)
        return not own

    eventually(are_gone, within_s=10, what="keeper and seed are gone")


# ── what is asked on the way ──


def _has_started(case: Case) -> bool:
    return case.status is Status.RUNNING and case.shows("line 3")


def _retry(case: Case) -> None:
    _touch(_go(case))
    case.ask("retry", env=case.captured())


def _resume(case: Case) -> None:
    _touch(_go(case))
    case.ask("resume", message="go on")


#: Points that a command passes which delivers the work, and the runner that records it.
_OF_DELIVERY = ("apply.", "commits.", "committed.", "inbox.", "journal.", "step.", "atomic.")

SCENARIOS = (
    Scenario("plain", _plain, (), Status.COMPLETED, 0, executes_runners=True),
    Scenario("crash", _crashing, (), Status.COMPLETED, 1),
    Scenario("stop", _endless, ((_has_started, lambda case: case.ask("stop")),), Status.KILLED, 0),
    Scenario(
        "interrupt",
        _until_told,
        (
            (_has_started, lambda case: case.ask("interrupt")),
            (lambda case: case.status is Status.INTERRUPTED and case.runner is None, _resume),
        ),
        Status.COMPLETED,
        0,
    ),
    Scenario(
        "retry",
        _failing,
        ((lambda case: os.path.exists(case.packet.task_done), _retry),),
        Status.COMPLETED,
        0,
    ),
    Scenario("hang", _hanging, (), Status.COMPLETED, None),
    Scenario(
        "own_session",
        _own_session,
        ((_has_started, lambda case: _touch(_go(case))),),
        Status.COMPLETED,
        0,
        is_short=False,
    ),
    Scenario(
        "stopped_recorder",
        _until_told,
        ((_has_started, _stop_recorder),),
        Status.COMPLETED,
        0,
        is_short=False,
    ),
    Scenario("noexec", _not_executable, (), Status.FAILED, 2),
    Scenario("leftovers", _leaving_somebody, (), Status.COMPLETED, 0),
    Scenario(
        "cli",
        _by_command_line,
        ((lambda case: case.shows("line 5"), _stop_by_command_line),),
        Status.KILLED,
        0,
        starts_itself=True,
        finish=_dismiss,
    ),
    Scenario("seed", _from_seed, (), Status.COMPLETED, 0, starts_itself=True),
    Scenario(
        "keeper", _kept, (), Status.COMPLETED, 1, starts_itself=True, tend=_tend_keeper, finish=_dismiss
    ),
    Scenario("packet", written.whole, (), Status.COMPLETED, 0, check=written.check_whole, is_short=False),
    Scenario(
        "gate",
        written.with_a_mortal_gate,
        (),
        Status.COMPLETED,
        0,
        check=written.check_mortal_gate,
        is_short=False,
    ),
    Scenario(
        "triage",
        written.with_a_crash,
        (),
        Status.COMPLETED,
        None,
        check=written.check_crash,
        is_short=False,
    ),
    Scenario(
        "repair",
        written.with_a_repair,
        (),
        Status.COMPLETED,
        0,
        check=written.check_repair,
        is_short=False,
    ),
    Scenario(
        "best_of_n",
        written.best_of_n,
        (),
        Status.COMPLETED,
        0,
        check=written.check_best_of_n,
        is_short=False,
    ),
    Scenario(
        "approval",
        written.with_approval,
        ((written.awaits_approval, lambda case: case.ask("approve")),),
        Status.COMPLETED,
        0,
        check=written.check_approval,
        is_short=False,
    ),
    Scenario(
        "phone",
        phones.begin,
        (),
        Status.COMPLETED,
        0,
        tend=phones.tend,
        finish=phones.finish,
        check=phones.check,
        is_short=False,
        only=("replies.", "inbox.", "step.", "atomic.", "interrupt_files."),
    ),
    Scenario(
        "sandbox",
        _sandboxed,
        ((lambda case: case.status is Status.INTERRUPTED and case.runner is None, _resume),),
        Status.COMPLETED,
        1,
        is_short=False,
    ),
    Scenario(
        "removed_attempt",
        _without_attempt,
        ((lambda case: case.status is Status.RUNNING, lambda case: _touch(_go(case))),),
        Status.COMPLETED,
        0,
    ),
    Scenario(
        "removed_lock",
        _until_told,
        ((_has_started, _remove_lock), (_is_locked_again, lambda case: _touch(_go(case)))),
        Status.COMPLETED,
        0,
        is_short=False,
    ),
    Scenario(
        "forged",
        _with_forgers,
        (
            (lambda case: case.status is Status.RUNNING and case.shows("line 5"), _replace_journal),
            (_rests, _append_to_journal),
            (_rests, _change_journal),
            (_rests, _let_succeed),
        ),
        Status.COMPLETED,
        0,
        check=_check_forged,
        is_short=False,
    ),
    Scenario(
        "takeover",
        _until_told,
        ((_has_started, takeovers.hand_back), (lambda _: True, lambda case: _touch(_go(case)))),
        Status.COMPLETED,
        None,
        check=takeovers.check,
        is_short=False,
    ),
    Scenario(
        "takeover_lost",
        _until_told,
        ((_has_started, takeovers.lose), (takeovers.is_lost, _resume)),
        Status.COMPLETED,
        None,
        check=takeovers.check,
        is_short=False,
        only="step.end_takeover",
    ),
    Scenario("clean_git", written.with_clean_git, (), Status.COMPLETED, 0, check=written.check_clean_git),
    Scenario("worktree", written.in_worktree, (), Status.COMPLETED, 0, check=written.check_worktree),
    Scenario(
        "queued",
        written.submitted,
        # It must not end before the keeper knows about it.
        ((written.has_left_the_queue, lambda _: None),),
        Status.COMPLETED,
        0,
        starts_itself=True,
        tend=_tend_keeper,
        finish=_dismiss,
        check=written.check_queued,
    ),
    Scenario(
        "scheduled",
        written.scheduled,
        ((written.has_left_the_queue, lambda _: None),),
        Status.COMPLETED,
        0,
        starts_itself=True,
        tend=_tend_keeper,
        finish=_dismiss,
        check=written.check_scheduled,
    ),
    Scenario(
        "fan_out",
        _kept_by(fan_outs.begin),
        (),
        Status.FAILED,
        None,
        starts_itself=True,
        tend=_tend_keeper,
        finish=_dismiss,
        check=fan_outs.check,
        is_short=False,
        only=("fanout.", "create.", "inbox.", "clean_room.", "worktree.", "dispatch.", "last_files."),
    ),
    Scenario(
        "fan_out_split",
        _kept_by(fan_outs.begin_split),
        (),
        Status.COMPLETED,
        None,
        starts_itself=True,
        tend=_tend_keeper,
        finish=_dismiss,
        check=fan_outs.check_split,
        is_short=False,
        only=("fanout.",),
    ),
    Scenario(
        "fan_out_stop",
        _kept_by(fan_outs.begin_endless),
        ((fan_outs.is_at_work, lambda case: case.ask("stop")), (fan_outs.are_ended, lambda _: None)),
        Status.KILLED,
        None,
        starts_itself=True,
        tend=_tend_keeper,
        finish=_dismiss,
        check=fan_outs.check_stopped,
        is_short=False,
        only=("children.", "inbox.", "last_files.", "stop."),
    ),
    Scenario(
        "apply",
        delivered.squashed,
        ((delivered.has_ended, delivered.typed("apply", "task")),),
        Status.COMPLETED,
        0,
        check=delivered.check_squashed,
        is_short=False,
        only=_OF_DELIVERY,
    ),
    Scenario(
        "apply_merging",
        delivered.merging,
        ((delivered.has_ended, delivered.typed("apply", "task")),),
        Status.COMPLETED,
        0,
        check=delivered.check_finished_merge,
        is_short=False,
        only=_OF_DELIVERY,
    ),
    Scenario(
        "apply_patch",
        delivered.uncommitted,
        ((delivered.has_ended, delivered.typed("apply", "task", "--patch")),),
        Status.COMPLETED,
        0,
        check=delivered.check_patched,
        is_short=False,
        only=_OF_DELIVERY,
    ),
    Scenario(
        "sandbox_commit",
        delivered.in_sandbox,
        ((delivered.has_ended, delivered.typed("apply", "task")),),
        Status.COMPLETED,
        0,
        check=delivered.check_from_sandbox,
        is_short=False,
        only=_OF_DELIVERY,
    ),
    Scenario(
        "accept_pr",
        delivered.accepted,
        ((delivered.has_ended, delivered.typed("pr", "task")),),
        Status.COMPLETED,
        0,
        check=delivered.check_pushed,
        is_short=False,
        only=("pr.", "commits.", "quality.", "clean_room.", "worktree."),
    ),
    Scenario(
        "ci",
        delivered.checked,
        (),
        Status.COMPLETED,
        0,
        check=delivered.check_checked,
        is_short=False,
        only=("ci.", "pr.", "chores.", "step.", "journal."),
    ),
    Scenario(
        "amend",
        delivered.beyond,
        ((delivered.has_ended, delivered.amend),),
        Status.COMPLETED,
        None,
        check=delivered.check_amended,
        is_short=False,
        only=("requests.", "inbox.", "journal.", "step."),
    ),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def play(scenario: Scenario, case: Case, *, patience: float = 1.0) -> None:
    """Live the scenario to its end, restarting the runner whenever it is gone too early."""
    within_s = patience * (25.0 if scenario.is_short else 75.0)
    is_over = deadline(within_s)
    case.executes_runners = scenario.executes_runners
    scenario.begin(case)
    if not scenario.starts_itself:
        case.start_runner()
    acts = list(scenario.acts)
    while acts or not case.has_ended:
        if is_over():
            case.fail(f"{scenario.name}: not at its end within {within_s:g} s, {len(acts)} acts left")
        if acts and acts[0][0](case):
            acts.pop(0)[1](case)
        try:
            invariants.check_now(case)
        except AssertionError as error:
            case.fail(str(error))
        scenario.tend(case)
        case.pause()
    if scenario.finish is not None:
        scenario.finish(case)
    for other in case.others:
        other.kill()
        other.wait(10)
