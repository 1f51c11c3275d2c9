"""Launch the agent of a stage: session, prompt and command line of its next attempt."""

from __future__ import annotations

import os

from holdfast import files, ids
from holdfast.agents import program
from holdfast.agents.base import Launch, LaunchSpec
from holdfast.errors import UnreadableFile
from holdfast.model import events as ev
from holdfast.model import permissions
from holdfast.model.spec import StageSpec
from holdfast.model.stage_state import StageState
from holdfast.model.task import Task
from holdfast.packet import session_lock
from holdfast.runner.attempt.open import Opened, next_number, start
from holdfast.runner.ledger import Ledger
from holdfast.runner.plan.start import is_plain
from holdfast.runner.stage import prompts
from holdfast.store import atomic
from holdfast.store.digest import sha256
from holdfast.store.layout import AttemptDir
from holdfast.workspace import checked_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter


def open_attempt(
    ledger: Ledger,
    adapter: Adapter,
    env: dict[str, Any],
    *,
    stage: StageSpec,
    prompt: bytes | None,
    keep: tuple[int, ...] = (),
) -> Opened:
    """Start the next attempt of `stage`.

    `prompt` is for a fresh session; a resumed one gets a message instead. `keep` are descriptors of held
    locks that the recorder inherits. Raises LockHeld if another attempt uses the session.
    """
    stage_state = ledger.task.stage_state(stage.name)
    mode, session_id = choose_session(adapter, ledger.task, stage_state)
    opened = ev.AttemptOpened(
        attempt=next_number(ledger),
        attempt_id=ids.new_attempt_id(),
        stage=stage.name,
        agent=adapter.name,
        mode=mode,
        session_id=session_id,
        resume_count=stage_state.times_ran,
        head=_head(ledger),
    )
    lock = session_lock.acquire(ledger.packet, adapter.name, session_id) if session_id is not None else None
    try:
        return start(
            ledger,
            opened,
            env,
            prepare=lambda directory: prepare(
                ledger, adapter, directory, opened, stage=stage, prompt=prompt, env=env
            ),
            keep=(*keep, *(lock.descriptors if lock is not None else ())),
        )
    finally:
        if lock is not None:
            lock.release()


def _head(ledger: Ledger) -> str:
    """The commit from which a plain run starts; everything else takes a snapshot."""
    if ledger.task.last_number or not is_plain(ledger.task):
        return ""
    return checked_out.commit(ledger.task.spec.project_dir)


def prepare(
    ledger: Ledger,
    adapter: Adapter,
    directory: AttemptDir,
    opened: ev.AttemptOpened,
    *,
    stage: StageSpec,
    prompt: bytes | None,
    env: dict[str, Any],
) -> Launch:
    """Write the prompt into the attempt's directory and build the command line."""
    text = prompts.for_mode(ledger, ledger.task.stage_state(stage.name), opened.mode, prompt)
    spec = launch_spec(ledger, adapter, directory, opened, stage=stage, env=env)
    system = prompts.system_prompt(ledger, stage, opened)
    if system and adapter.capabilities.appends_system_prompt:
        atomic.write(directory.system_prompt, system, durable=False)
        spec = spec.evolve(system_prompt_path=directory.system_prompt)
    elif system and opened.mode != "resume" and text is not None:
        text = system + b"\n\n" + text
    if text is not None:
        atomic.write(directory.prompt, text, durable=False)
        spec = spec.evolve(prompt_path=directory.prompt)
    return adapter.resume(spec) if opened.mode == "resume" else adapter.launch(spec)


def launch_spec(
    ledger: Ledger,
    adapter: Adapter,
    directory: AttemptDir,
    opened: ev.AttemptOpened,
    *,
    stage: StageSpec,
    env: dict[str, Any],
) -> LaunchSpec:
    """Everything that the adapter needs, except the prompt. Raises UnreadableFile."""
    task, able = ledger.task.spec, adapter.capabilities
    options: dict[str, Any] = {**task.options, **stage.options}
    for value in (*options.values(), task.bootstrap):
        _check_frozen(value)
    limits, spent_usd = ledger.task.spec.limits, ledger.task.run_usage.cost_usd or 0.0
    path = program.find(able, env.get("env", {}).get("PATH", os.defpath)) if able.program else None
    return LaunchSpec(
        task=task.evolve(options=options),
        # No longer installed: exec fails, and its errno is recorded.
        program=path or able.program,
        prompt_path="",
        session_id=opened.session_id,
        resume_count=opened.resume_count,
        # The model of the configured agent is meaningless for a fallback agent.
        model=stage.model or task.model if adapter.name == stage.agent else None,
        effort=stage.effort,
        directory=directory.path,
        state_directory=ledger.packet.state,
        permissions=permissions.granted(ledger.task, stage),
        is_root=os.geteuid() == 0,
        allowed_tools=_names(options.get("allowed_tools")),
        settings_path=options.get("settings_path"),
        env=env.get("env", {}),
        # The remainder: a program counts from its own start.
        max_turns=None if limits.max_turns is None else max(1, limits.max_turns - ledger.task.run_turns),
        budget_usd=None if limits.budget_usd is None else max(0.01, limits.budget_usd - spent_usd),
    )


def _check_frozen(value: object) -> None:
    """Raises UnreadableFile if a file that the user trusted, and that was copied into the packet, is another
    one now: settings of a program can name commands. Its name begins with its digest
    (`written_packet.frozen`, `item_trust.frozen`)."""
    if not isinstance(value, str) or value.split(os.sep)[-3:-1] != ["inputs", "frozen"]:
        return
    digest = os.path.basename(value).partition("-")[0]
    try:
        is_same = sha256(files.read(value))[: len(digest)] == digest
    except OSError:
        is_same = False
    if not is_same:
        raise UnreadableFile(
            f"{value} is not the file with which the task was created", hint="create the task again"
        )


def _names(value: Any) -> tuple[str, ...]:
    """The names in a list, or in a comma-separated string from the command line."""
    parts = value.split(",") if isinstance(value, str) else value or ()
    return tuple(part.strip() for part in parts if part.strip())


def choose_session(adapter: Adapter, task: Task, stage_state: StageState) -> tuple[str, str | None]:
    """The mode of the attempt, and the session id it uses or creates.

    Attempts that never ran used no session.
    """
    able, ran = adapter.capabilities, stage_state.ran
    fresh_id = ids.new_uuid() if able.chooses_session_id else None
    if ran is None:
        if task.spec.session is not None and adapter.name == task.spec.agent:
            return "resume", task.spec.session
        return "fresh", stage_state.session_id or fresh_id
    if ran.agent != adapter.name:
        # First attempt of a fallback agent; an attempt that never ran left its chosen id.
        return "briefing", stage_state.session_id or fresh_id
    if not able.can_resume:
        return "again", None
    if stage_state.needs_fresh_session or stage_state.session_id is None:
        return "briefing", fresh_id
    if stage_state.session_id != ran.session_id:
        # The session chosen for the last briefing never started.
        return "briefing", stage_state.session_id
    if ran.ended is not None and not ran.ended.resumable:
        return "briefing", fresh_id
    return "resume", stage_state.session_id
