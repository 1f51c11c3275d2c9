"""The prompt of an attempt: a plain request, the composed prompt of a stage, or a message to continue."""

from __future__ import annotations

import itertools
import os

from holdfast import clock, files
from holdfast.agents import registry
from holdfast.errors import UnreadableFile
from holdfast.failpoints import failpoint
from holdfast.model import contest, roles
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.spec import StageSpec
from holdfast.model.stage_state import StageState
from holdfast.runner.ledger import Ledger
from holdfast.store import no_links
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.pipeline.prompt.attachments import Attachment

_CREATE_AGAIN = "create the task again"


def compose(ledger: Ledger, stage: StageSpec, stage_state: StageState) -> bytes | None:
    """The prompt of a fresh session; None for a command without one.

    Raises HoldfastError if the prompt of a stage cannot be composed.
    """
    request = _request(ledger)
    if ledger.task.spec.pipeline is None:
        if request is None:
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
    refused = _refusal(ledger, stage_state)
    notes = [refused] if refused else []
    if ledger.task.answer and stage_state.ran is None:
        # Resume messages and briefings include the answer themselves.
        notes += briefing.answer(ledger.task)
    if roles.get(stage.role).compares:
        notes.append(_numbered(ledger))
    additions = composing.Additions(
        reports=tuple(_earlier(ledger, stage)),
        notes="\n\n".join(notes),
        script=ledger.task.script,
        digest_policy="aggressive" if stage_state.overflows else None,
        limit_bytes=registry.adapter(stage_state.agent).capabilities.prompt_bytes,
    )
    composed = composing.compose(
        ledger.packet,
        ledger.task.spec,
        stage,
        additions,
        project_dir=ledger.task.workspace_of(stage.name),
        redact=ledger.redact,
    )
    composing.write(ledger.packet, stage, composed)
    return composed.text.encode("utf-8", "backslashreplace")


def _request(ledger: Ledger) -> bytes | None:
    """What the task was created with; None if it has no request. An agent of another task can write the file,
    or create it for a command, which would get it as its input. Raises UnreadableFile."""
    path, expected = ledger.packet.user_request, ledger.task.request_sha256
    if expected == "":
        return None
    try:
        request = files.read(path)
    except FileNotFoundError as error:
        if expected is None:
            return None
        raise UnreadableFile(f"{path} is missing", hint=_CREATE_AGAIN) from error
    if expected is not None and sha256(request) != expected:
        raise UnreadableFile(f"{path} was changed by something other than holdfast", hint=_CREATE_AGAIN)
    return request


def _numbered(ledger: Ledger) -> str:
    """The candidates among which a judge chooses."""
    lines = [f"- candidate {each.candidate}: `{each.name}`" for each in contest.survivors(ledger.task)]
    return "The candidates that passed their gates:\n\n" + "\n".join(lines)


def _refusal(ledger: Ledger, stage_state: StageState, *, after: int | None = None) -> str:
    """Why a gate refused the work of the stage; empty if none did.

    `after`: only if that was after this attempt. A session that was told is not told again.
    """
    from holdfast.runner.stage import briefing

    gate, repair = stage_state.gate, stage_state.repair
    if gate is not None and not gate.passed and after in (None, gate.attempt):
        rest = ledger.packet.artifact(gate.stage)
        return briefing.refusal(gate.reasons, gate.evidence, rest)
    if repair is not None and after in (None, repair.after):
        rest = ledger.packet.artifact(repair.failed_stage)
        return briefing.refusal(repair.reasons, repair.evidence, rest)
    return ""


def _earlier(ledger: Ledger, stage: StageSpec) -> list[Attachment]:
    """The reports of earlier stages that this one reads, already redacted."""
    from holdfast.pipeline.prompt.attachments import Attachment

    task, attachments = ledger.task, list[Attachment]()
    for earlier in task.spec.stages:
        if earlier.name == stage.name:
            break
        if not roles.reads(stage.role, earlier.role) or earlier.name not in task.stages_done:
            continue
        if contest.is_past(task, earlier):
            continue
        path = ledger.packet.output(earlier.name, task.stage_state(earlier.name).agent, "out")
        if os.path.exists(path):
            text = files.read(path).decode("utf-8", "replace")
            attachments.append(Attachment(name=os.path.basename(path), text=text, is_whole=True))
    if roles.get(stage.role).reads_work:
        attachments += _work(ledger, stage)
    if roles.get(stage.role).compares:
        attachments += _candidates(ledger)
    if roles.get(stage.role).reads_findings:
        from holdfast.runner.stage import findings

        if (merged := findings.text(ledger)) is not None:
            attachments.append(
                Attachment(name=os.path.basename(ledger.packet.findings), text=merged, is_whole=True)
            )
    return attachments


def _work(ledger: Ledger, stage: StageSpec) -> Iterator[Attachment]:
    """What the stages before this one changed, and the results of their acceptance commands.

    Some agents have no shell in a review, so they cannot look for themselves.
    """
    from holdfast.pipeline.prompt import attachments

    earlier = itertools.takewhile(lambda each: each.name != stage.name, ledger.task.spec.stages)
    artifacts = [
        ledger.packet.artifact(each.name) for each in earlier if not contest.is_past(ledger.task, each)
    ]
    for path in (ledger.packet.changes, *artifacts):
        if os.path.exists(path):
            yield attachments.read_file(path).evolve(is_whole=True)


def _candidates(ledger: Ledger) -> Iterator[Attachment]:
    """What each candidate changed, and the results of its acceptance commands."""
    from holdfast.pipeline.prompt import attachments

    for stage in contest.survivors(ledger.task):
        for path in (ledger.packet.candidate_patch(stage.name), ledger.packet.artifact(stage.name)):
            if os.path.exists(path):
                yield attachments.read_file(path).evolve(is_whole=True)


def for_mode(ledger: Ledger, stage_state: StageState, mode: str, prompt: bytes | None) -> bytes | None:
    """The text for an attempt of this mode."""
    if prompt is None or mode not in ("resume", "briefing"):
        return prompt
    from holdfast.runner.stage import briefing  # first attempts do not need it

    if mode == "resume" and stage_state.ran is not None:
        refused = _refusal(ledger, stage_state, after=stage_state.ran.number)
        changed = changed_files(ledger, stage_state)
        message = briefing.resume_message(ledger.task, stage_state.ran, refused=refused, changed=changed)
        return _bytes(message)
    if mode == "briefing":
        text = prompt.decode("utf-8", "replace")
        changed = changed_files(ledger, stage_state)
        return _bytes(briefing.recovery_briefing(ledger.task, stage_state.ran, text, changed=changed))
    return prompt


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def changed_files(ledger: Ledger, stage_state: StageState) -> tuple[str, ...]:
    """Files changed since the stage's last attempt started; empty if that cannot be found out quickly."""
    started = stage_state.ran.started if stage_state.ran is not None else None
    if started is None:
        return ()
    from holdfast.watch import progress

    since = clock.parse_iso(started.started_at)
    return progress.changed_files(
        ledger.task.workspace_of(stage_state.stage), since, skip=ledger.packet.home.path
    )


def system_prompt(ledger: Ledger, stage: StageSpec, opened: ev.AttemptOpened) -> bytes:
    """The text appended to the agent's system prompt: the bootstrap, and the file in `system_prompt_path`."""
    spec, parts = ledger.task.spec, list[bytes]()
    # Where the agent writes, also in a sandbox.
    roots = (spec.project_dir, ledger.task.workspace_of(stage.name))
    if spec.bootstrap is not None:
        from holdfast.runner.stage import bootstrap

        parts.append(bootstrap.render(ledger, stage, opened, *roots).encode("utf-8", "backslashreplace"))
    path = {**spec.options, **stage.options}.get("system_prompt_path")
    if isinstance(path, str):
        try:
            parts.append(no_links.read_named(path, *roots))
        except OSError as error:
            raise UnreadableFile(
                f"cannot read the system prompt {path}: {error.strerror}", hint="check its path and mode"
            ) from error
    return b"\n\n".join(parts)


def hand_off(ledger: Ledger, stage: StageSpec, attempt: Attempt) -> None:
    """Pass results to later stages after the gate: a brief replaces their inputs, a review adds its findings.

    Safe to repeat after a kill.
    """
    if roles.get(stage.role).is_brief:
        from holdfast.pipeline.results import handoff

        report = files.read(ledger.packet.output(stage.name, attempt.agent, "out"))
        brief = handoff.read_brief(report.decode())
        if (brief.script or None) != ledger.task.script:
            ledger.record(ev.HandoffMade(stage=stage.name, script=brief.script or None))
            failpoint("prompts.handoff_recorded")
        handoff.apply(ledger.packet, brief)
    elif roles.get(stage.role).has_findings:
        from holdfast.runner.stage import findings

        findings.write(ledger, stage.name)
