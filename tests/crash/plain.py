"""Lives of a plain run: how they begin, and what is asked of them on the way."""

from __future__ import annotations

import os
import signal

from holdfast.model.spec import SandboxSpec
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store import atomic, lock_owner, process
from holdfast.testing import Scenario as Script
from tests.crash.drive import LIMITS, Case
from tests.support.tools import need_sandbox


def counting(then: str = "") -> list[str]:
    return ["sh", "-c", f"for i in 1 2 3 4 5; do echo line $i; done; {then}"]


def script_file(case: Case, script: Script) -> str:
    return str(script.write_to(os.path.join(case.root, "script.json")))


def say_lines(first: int, last: int, script: Script) -> Script:
    for number in range(first, last + 1):
        script.say(f"line {number}")
    return script


def go(case: Case) -> str:
    return os.path.join(case.project, "go")


def touch(path: str) -> None:
    with open(path, "ab"):
        pass


# ── how they begin ──


def plain(case: Case) -> None:
    case.create(command=counting())


def crashing(case: Case) -> None:
    script = say_lines(1, 3, Script().fail_if_running()).crash("KILL", tries=1)
    case.create(scenario=script_file(case, say_lines(4, 6, script).result("done")))


def hanging(case: Case) -> None:
    script = say_lines(1, 3, Script().fail_if_running()).hang(tries=1)
    limits = LIMITS.evolve(stale_s=0.5, grace_s=0.2)
    case.create(scenario=script_file(case, say_lines(4, 6, script).result("done")), limits=limits)


def endless(case: Case) -> None:
    case.create(scenario=script_file(case, say_lines(1, 3, Script().fail_if_running()).hang()))


def until_told(case: Case) -> None:
    script = say_lines(1, 3, Script().fail_if_running()).wait_file(go(case), limit_s=30)
    case.create(scenario=script_file(case, say_lines(4, 6, script).result("done")))


def sandboxed(case: Case) -> None:
    """In a sandbox: a crash, a resume, a question, an answer."""
    need_sandbox()
    script = (
        say_lines(1, 3, Script().fail_if_running()).crash("KILL", tries=1).interrupt_request("which one?")
    )
    script = say_lines(4, 6, script.wait_file(go(case), limit_s=60)).result("done")
    case.create(scenario=script_file(case, script), sandbox=SandboxSpec(network=False))


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


def own_session(case: Case) -> None:
    folder = os.path.join(case.root, "bin")
    os.mkdir(folder)
    program = os.path.join(folder, "codex")
    with open(program, "w", encoding="utf-8") as file:
        file.write(_CODEX.replace("GO", go(case)))
    os.chmod(program, 0o700)
    case.env |= {"PATH": f"{folder}:{os.environ['PATH']}", "OPENAI_API_KEY": "none"}
    case.create_for("codex")


def stop_recorder(case: Case) -> None:
    """Stop the agent's recorder, then let the agent finish: the recorder owes a record until it is woken."""
    task = load.fold(case.packet)
    assert task.attempt is not None
    owner = lock_owner.owner(case.packet.attempt(task.attempt.dirname).lock)
    if owner is not None:
        process.send(owner, signal.SIGSTOP)
    touch(go(case))


def failing(case: Case) -> None:
    case.create(command=counting(f"test -e {go(case)}"))


def not_executable(case: Case) -> None:
    path = os.path.join(case.project, "program")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/no/such/interpreter\n")
    os.chmod(path, 0o700)
    case.create(command=[path], limits=LIMITS.evolve(max_retries=2))


def without_attempt(case: Case) -> None:
    """The agent removes the directory of its attempt. It prints nothing, which would be gone too."""
    wait = f"while [ ! -e {go(case)} ]; do sleep 0.05; done; "
    case.create(command=["sh", "-c", wait + 'rm -rf "$HOLDFAST_ATTEMPT"'])


def remove_lock(case: Case) -> None:
    """Remove the lock file of the runner, as a cleaner of stale locks does."""
    atomic.forget(case.packet.runner_lock)


def is_locked_again(case: Case) -> bool:
    return os.path.exists(case.packet.runner_lock)


def leaving_somebody(case: Case) -> None:
    case.create(command=counting("sleep 60 >/dev/null 2>&1 &"), leftovers="kill")


# ── what is asked on the way ──


def has_started(case: Case) -> bool:
    return case.status is Status.RUNNING and case.shows("line 3")


def retry(case: Case) -> None:
    touch(go(case))
    case.ask("retry", env=case.captured())


def resume(case: Case) -> None:
    touch(go(case))
    case.ask("resume", message="go on")
