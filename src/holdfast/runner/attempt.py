"""Opening an attempt: directory, prompt, journal, lock, recorder, in an order that the attempt table can read."""

from __future__ import annotations

import os

from holdfast import ids, recorder
from holdfast.agents import program
from holdfast.agents.base import Launch, LaunchSpec
from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.task import Task
from holdfast.packet.create import remove_tree
from holdfast.runner import briefing, private_home
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.layout import AttemptDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter


#: The kernel takes at most 128 KiB in one variable.
_ANSWER_CHARS = 30_000


class Opened:
    """A recorder that was just forked."""

    def __init__(self, recorder_pid: int, started: int) -> None:
        self.recorder_pid = recorder_pid
        #: Readable (end of file) once the agent was executed, or failed to be.
        self.started = started


def open_attempt(ledger: Ledger, adapter: Adapter, env: dict[str, Any], stage: str) -> Opened:
    """Start the next attempt of `stage`."""
    task, packet = ledger.task, ledger.packet
    mode, session_id = _mode(adapter, task)
    opened = ev.AttemptOpened(
        attempt=_next_number(packet.attempts, task.attempts),
        attempt_id=ids.new_attempt_id(),
        stage=stage,
        agent=adapter.name,
        mode=mode,
        session_id=session_id,
        resume_count=task.times_ran,
    )
    directory = packet.attempt(f"{opened.attempt:03d}-{stage}")
    os.mkdir(directory.path, 0o700)
    failpoint("attempt.made")
    try:
        launch = _prepare(ledger, adapter, directory, opened, env=env)
    except (OSError, HoldfastError):
        remove_tree(directory.path)  # a full disk would otherwise collect a directory with every try
        raise
    ledger.record(opened)
    failpoint("attempt.opened")
    return _fork(ledger, directory, launch, opened, env=env)


def _prepare(
    ledger: Ledger, adapter: Adapter, directory: AttemptDir, opened: ev.AttemptOpened, *, env: dict[str, Any]
) -> Launch:
    """Prompt and command line, in the attempt's directory."""
    has_prompt = _write_prompt(ledger, directory, opened.mode)
    spec = _launch_spec(ledger, adapter, directory, opened, env=env)
    if has_prompt:
        spec = spec.evolve(prompt_path=directory.prompt)
    launch = adapter.resume(spec) if opened.mode == "resume" else adapter.launch(spec)
    atomic.write_json(directory.argv, _argv_record(launch, ledger.task.spec.project_dir), durable=False)
    return launch


def _launch_spec(
    ledger: Ledger, adapter: Adapter, directory: AttemptDir, opened: ev.AttemptOpened, *, env: dict[str, Any]
) -> LaunchSpec:
    task, able = ledger.task.spec, adapter.capabilities
    options: dict[str, Any] = task.options
    limits, spent_usd = task.limits, ledger.task.usage.cost_usd or 0.0
    found = program.find(able, env.get("env", {}).get("PATH", os.defpath)) if able.program else None
    return LaunchSpec(
        task=task,
        # Not installed any more: exec will say so, with its errno.
        program=found or able.program,
        prompt_path="",
        session_id=opened.session_id,
        resume_count=opened.resume_count,
        model=next((stage.model for stage in task.stages if stage.name == opened.stage), None) or task.model,
        directory=directory.path,
        state_directory=ledger.packet.state,
        yolo=options.get("yolo") is True,
        is_root=os.geteuid() == 0,
        allowed_tools=tuple(options.get("allowed_tools") or ()),
        system_prompt_path=options.get("system_prompt_path"),
        settings_path=options.get("settings_path"),
        # What is left: a program counts from its own start.
        max_turns=None if limits.max_turns is None else max(1, limits.max_turns - ledger.task.turns),
        budget_usd=None if limits.budget_usd is None else max(0.01, limits.budget_usd - spent_usd),
    )


def _fork(
    ledger: Ledger, directory: AttemptDir, launch: Launch, opened: ev.AttemptOpened, *, env: dict[str, Any]
) -> Opened:
    captured: dict[str, str] = env.get("env", {})
    private = private_home.prepare(launch.home, captured) if launch.home is not None else {}
    start = recorder.Start(
        directory=directory.path,
        argv=launch.argv,
        env={**captured, **launch.env, **private, **_our_variables(ledger, directory, opened)},
        cwd=ledger.task.spec.project_dir,
        stdin=launch.stdin or os.devnull,
        umask=env.get("umask", 0o077),
        limits=env.get("limits", {}),
    )
    lock = locks.acquire(directory.lock, role="runner")
    try:
        failpoint("attempt.locked")
        read_end, write_end = os.pipe()
        try:
            pid = recorder.fork(start, lock.descriptor, write_end)
        except OSError:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
    finally:
        lock.release()
    failpoint("attempt.forked")
    return Opened(pid, read_end)


def _mode(adapter: Adapter, task: Task) -> tuple[str, str | None]:
    """How the attempt begins, and the session it uses or makes. Attempts that never ran used no session."""
    able = adapter.capabilities
    fresh_id = ids.new_uuid() if able.chooses_session_id else None
    if task.ran is None:
        return "fresh", task.session_id or fresh_id
    if not able.can_resume:
        return "again", None
    if task.needs_fresh_session or task.session_id is None:
        return "briefing", fresh_id
    if task.session_id != task.ran.session_id:
        # The new session of a briefing never began.
        return "briefing", task.session_id
    return "resume", task.session_id


def _next_number(attempts: str, journalled: int) -> int:
    """Never reused: a directory may exist that no event speaks of."""
    on_disk = [int(name[: name.find("-")]) for name in os.listdir(attempts) if name.split("-")[0].isdigit()]
    return max([journalled, *on_disk]) + 1


def _write_prompt(ledger: Ledger, directory: AttemptDir, mode: str) -> bool:
    try:
        with open(ledger.packet.user_request, "rb") as file:
            request = file.read()
    except FileNotFoundError:
        return False
    if mode == "resume":
        request = briefing.resume_message(ledger.task, ledger.task.ran).encode("utf-8", "backslashreplace")
    elif mode == "briefing":
        text = request.decode("utf-8", "replace")
        request = briefing.recovery_briefing(ledger.task, ledger.task.ran, text).encode(
            "utf-8", "backslashreplace"
        )
    atomic.write(directory.prompt, request, durable=False)
    return True


def _argv_record(launch: Launch, cwd: str) -> dict[str, Any]:
    """What was executed, for people; names of variables, never their values."""
    return {
        "schema": "holdfast.argv/1",
        "argv": launch.argv,
        "cwd": cwd,
        "stdin": launch.stdin,
        "env_added": sorted(launch.env),
    }


def _speakable(answer: str) -> str:
    """What can stand in a variable: no NUL, no half of an emoji, not too long."""
    text = answer[:_ANSWER_CHARS].replace("\0", " ")
    return text.encode("utf-8", "backslashreplace").decode()


def _our_variables(ledger: Ledger, directory: AttemptDir, opened: ev.AttemptOpened) -> dict[str, str]:
    packet, answer = ledger.packet, ledger.task.answer
    return {
        # For a command, which has no session that could be told.
        **({"HOLDFAST_ANSWER": _speakable(answer)} if answer else {}),
        "HOLDFAST_TASK": packet.task_id,
        "HOLDFAST_ATTEMPT": directory.path,
        "HOLDFAST_PACKET": packet.path,
        "HOLDFAST_RESUME_COUNT": str(opened.resume_count),
        "TASK_TMPDIR": packet.path,
        "SESSION_ID": opened.attempt_id,
        "INTERRUPT_FILE": packet.interrupt_request,
        "HARNESS_SESSION": "true",
        "BD_ACTOR": "harness-agent",
        "ITERATION": "1",
    }
