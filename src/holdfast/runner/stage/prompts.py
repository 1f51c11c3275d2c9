"""What an agent is told: the request of a plain run, the composed prompt of a stage, or what to go on with."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.agents import registry
from holdfast.errors import UnreadableFile
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model import roles
from holdfast.model.attempt import Attempt
from holdfast.model.spec import StageSpec
from holdfast.model.stage_state import StageState
from holdfast.runner.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.pipeline.prompt.attachments import Attachment


def compose(ledger: Ledger, stage: StageSpec, stage_state: StageState) -> bytes | None:
    """The prompt of a fresh session; None for a command without one. Raises HoldfastError where a stage's prompt cannot be
    made: nothing was paid for by then."""
    if ledger.task.spec.pipeline is None:
        try:
            with open(ledger.packet.user_request, "rb") as file:
                request = file.read()
        except FileNotFoundError:
            return None
        checked = stage_state.pre_work
        if checked is None or checked.passed or stage_state.agent == "command":
            return request
        from holdfast.runner.stage import briefing

        return _bytes(briefing.pre_work(checked.reasons)) + b"\n\n" + request
    # Only pipelines pay for the import.
    from holdfast.pipeline.prompt import compose as composing
    from holdfast.runner.stage import briefing

    stage = stage.evolve(agent=stage_state.agent)
    verdict = stage_state.gate
    refused = verdict is not None and not verdict.passed
    notes = [briefing.refusal(verdict.reasons)] if refused and verdict is not None else []
    if ledger.task.answer and stage_state.ran is None:
        # A session that goes on, or a briefing, has it in its own words.
        notes.append(briefing.answer(ledger.task.answer))
    composed = composing.compose(
        ledger.packet,
        ledger.task.spec,
        stage,
        project_dir=ledger.task.workspace_of(stage.name),
        redact=ledger.redact,
        digest_policy="aggressive" if stage_state.overflows else None,
        extra=_earlier(ledger, stage),
        notes="\n\n".join(notes),
        script=ledger.task.script,
        limit_bytes=registry.adapter(stage_state.agent).capabilities.prompt_bytes,
    )
    composing.write(ledger.packet, stage, composed)
    return composed.text.encode("utf-8", "backslashreplace")


def _earlier(ledger: Ledger, stage: StageSpec) -> list[Attachment]:
    """The reports of earlier stages that this one needs. They are redacted already."""
    from holdfast.pipeline.prompt.attachments import Attachment

    task, found = ledger.task, list[Attachment]()
    for earlier in task.spec.stages:
        if earlier.name == stage.name:
            break
        if not roles.reads(stage.role, earlier.role) or earlier.name not in task.stages_done:
            continue
        path = ledger.packet.output(earlier.name, task.stage_state(earlier.name).agent, "out")
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            found.append(Attachment(name=os.path.basename(path), text=text, is_whole=True))
    if roles.get(stage.role).reads_findings:
        from holdfast.runner.stage import findings

        if (merged := findings.text(ledger)) is not None:
            found.append(
                Attachment(name=os.path.basename(ledger.packet.findings), text=merged, is_whole=True)
            )
    return found


def for_mode(ledger: Ledger, stage_state: StageState, mode: str, prompt: bytes | None) -> bytes | None:
    """What the attempt is given, by how it begins."""
    if prompt is None or mode not in ("resume", "briefing"):
        return prompt
    from holdfast.runner.stage import briefing  # a first attempt pays nothing for it

    if mode == "resume" and stage_state.ran is not None:
        verdict = (
            stage_state.gate
            if stage_state.gate is not None and stage_state.gate.attempt == stage_state.ran.number
            else None
        )
        refused = verdict.reasons if verdict is not None and not verdict.passed else ()
        changed = changed_files(ledger, stage_state)
        return _bytes(briefing.resume_message(ledger.task, stage_state.ran, refused=refused, changed=changed))
    if mode == "briefing":
        text = prompt.decode("utf-8", "replace")
        changed = changed_files(ledger, stage_state)
        return _bytes(briefing.recovery_briefing(ledger.task, stage_state.ran, text, changed=changed))
    return prompt


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def changed_files(ledger: Ledger, stage_state: StageState) -> tuple[str, ...]:
    """Files that the earlier attempts of the stage changed, as far as that can be known at once; empty otherwise."""
    started = stage_state.ran.started if stage_state.ran is not None else None
    if started is None:
        return ()
    from holdfast.watch import progress

    since = clock.parse_iso(started.started_at)
    return progress.changed_files(
        ledger.task.workspace_of(stage_state.stage), since, skip=ledger.packet.home.path
    )


def system_prompt(ledger: Ledger, stage: StageSpec, opened: ev.AttemptOpened) -> bytes:
    """What is appended to the agent's own system prompt: the bootstrap and the file that the task names."""
    spec, parts = ledger.task.spec, list[bytes]()
    if spec.bootstrap is not None:
        from holdfast.runner.stage import bootstrap

        parts.append(bootstrap.render(ledger, stage, opened).encode("utf-8", "backslashreplace"))
    path = {**spec.options, **stage.options}.get("system_prompt_path")
    if isinstance(path, str):
        try:
            with open(path, "rb") as file:
                parts.append(file.read())
        except OSError as error:
            raise UnreadableFile(
                f"cannot read the system prompt {path}: {error.strerror}", hint="check its path and mode"
            ) from error
    return b"\n\n".join(parts)


def hand_off(ledger: Ledger, stage: StageSpec, attempt: Attempt) -> None:
    """After the gate: what a brief says about the task becomes the inputs of the stages behind it, and what a reviewer found
    joins the list of findings. Done again after a kill, it does the same again."""
    if roles.get(stage.role).is_brief:
        from holdfast.pipeline.results import handoff

        with open(ledger.packet.output(stage.name, attempt.agent, "out"), encoding="utf-8") as file:
            read = handoff.read_brief(file.read())
        if (read.script or None) != ledger.task.script:
            ledger.record(ev.HandoffMade(stage=stage.name, script=read.script or None))
            failpoint("prompts.handoff_recorded")
        handoff.apply(ledger.packet, read)
    elif roles.get(stage.role).has_findings:
        from holdfast.runner.stage import findings

        findings.write(ledger, stage.name)
