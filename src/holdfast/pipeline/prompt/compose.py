"""Composing the prompt of a stage: rules, role, task, context, request, attachments; redacted, cut to size.

Each part is between a BEGIN and an END line with a seal, a hash over all parts. No text can contain the seal
of its own prompt, so nothing in a part can pass for its end. The same inputs give the same prompt.
"""

from __future__ import annotations

import re
import textwrap

from holdfast.errors import PromptTooLarge
from holdfast.model.record import Record
from holdfast.model.spec import PipelineSpec
from holdfast.pipeline.prompt import attachments, shorten, template
from holdfast.pipeline.prompt.attachments import Attachment
from holdfast.pipeline.prompt.forbidden import Forbidden
from holdfast.store import atomic
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holdfast.model.spec import StageSpec, TaskSpec
    from holdfast.store.layout import Packet

#: Levels of cutting: lines of each end of an attachment, and of the output of an earlier stage (None: all of
#: it). With 0, only its name is shown.
_LEVELS: tuple[tuple[int, int | None], ...] = ((200, None), (60, None), (20, None), (20, 200), (0, 60))
#: The size of all attachments together.
ATTACHMENTS_BYTES = 512 * 1024
_COMMANDS = "Acceptance commands"
_NO_PIPELINE = PipelineSpec(intent="", group="", profile="")


class PromptPart(Record):
    """The text between two markers."""

    name: str
    text: str


class Composed(Record):
    """A prompt, and how it was composed."""

    text: str
    #: The hash of the text.
    sha256: str
    log: tuple[str, ...]
    #: The file of the role's template.
    template: str
    #: The digest of the context pack; None if the pack is included completely, or there is none.
    digest: str | None = None


class Additions(Record):
    """What this attempt adds to the prompt of its stage, and how long it may be."""

    #: Outputs of earlier stages.
    reports: tuple[Attachment, ...] = ()
    #: Additional instructions.
    notes: str = ""
    #: The commands of a brief.
    script: str | None = None
    #: None: that of the pipeline.
    digest_policy: str | None = None
    limit_bytes: int | None = None


_NOTHING = Additions()


def compose(
    packet: Packet,
    spec: TaskSpec,
    stage: StageSpec,
    additions: Additions = _NOTHING,
    *,
    project_dir: str,
    redact: Callable[[str], str],
) -> Composed:
    """The prompt of a stage. Nothing is written.

    If the prompt exceeds `limit_bytes`, the context is replaced by its digest, then attachments are cut; each
    step is in the log. Raises MissingTemplate, ForbiddenInput, InvalidPattern, UnreadableFile,
    PromptTooLarge.
    """
    limit_bytes = additions.limit_bytes
    pipeline = spec.pipeline or _NO_PIPELINE
    forbidden = Forbidden(pipeline.forbidden_paths, project_dir=project_dir)
    draft = _Draft(packet, spec, stage, lambda text: forbidden.mask(redact(forbidden.without_diffs(text))))
    attached = [*additions.reports, *attachments.read(packet, forbidden)]
    draft.gather(pipeline.profile, attached=attached, notes=additions.notes, script=additions.script)
    policy, level = additions.digest_policy or pipeline.digest_policy, draft.first_level()
    steps = [(policy, level), *(("aggressive", harder) for harder in range(level, len(_LEVELS)))]
    size = 0
    for step in steps:
        composed = draft.render(*step)
        size = len(_encoded(composed.text))
        if limit_bytes is None or size <= limit_bytes:
            note = () if step == steps[0] else (f"cut to fit: {stage.agent} takes {limit_bytes} bytes",)
            return composed.evolve(log=(*composed.log, *note))
    raise PromptTooLarge(
        f"the prompt of {stage.name} has {size} bytes after all cuts; {stage.agent} takes only {limit_bytes}"
    )


def write(packet: Packet, stage: StageSpec, composed: Composed) -> str:
    """Write a prompt to the packet, with its log and its digest. Returns the path of the prompt."""
    atomic.make_directory(packet.prompts)
    if composed.digest is not None:
        atomic.write(packet.context_digest, _encoded(composed.digest), durable=True)
    path = packet.prompt(stage.agent, stage.role)
    atomic.write(path, _encoded(composed.text), durable=True)
    log = "".join(f"{line}\n" for line in composed.log)
    atomic.write(packet.output(stage.name, stage.agent, "compose.log"), _encoded(log), durable=False)
    return path


class _Draft:
    """The parts of a prompt, redacted, before anything is cut."""

    def __init__(self, packet: Packet, spec: TaskSpec, stage: StageSpec, clean: Callable[[str], str]) -> None:
        self._packet, self._spec, self._stage, self._clean = packet, spec, stage, clean
        self._before: list[PromptPart] = []
        self._after: list[PromptPart] = []
        self._pack: str | None = None
        self._attached: list[Attachment] = []
        self._log: list[str] = []
        self._template = ""

    def gather(self, profile: str, *, attached: list[Attachment], notes: str, script: str | None) -> None:
        """Read and redact all parts."""
        rules = template.rules(packet=self._packet, profile=profile)
        role = template.load(self._stage.role, packet=self._packet, profile=profile)
        self._template = role.path
        self._log += [f"rules: {rules.path} ({rules.place})", f"template: {role.path} ({role.place})"]
        self._before = [
            self._part("rules", rules.text),
            self._part("role", role.text),
            self._part("task", facts(self._spec, self._stage, script)),
        ]
        pack = attachments.read_input(self._packet, self._packet.context_pack)
        self._pack = self._cleaned("context", pack) if pack and pack.strip() else None
        request = attachments.read_input(self._packet, self._packet.user_request)
        self._after = [self._part("request", request or self._spec.goal)]
        if notes:
            self._after.append(self._part("notes", notes))
        for each in attached:
            name = _safe_name(self._clean(each.name))
            text = None if each.text is None else self._cleaned(f"attachment {name}", each.text)
            self._attached.append(each.evolve(name=name, text=text))

    def first_level(self) -> int:
        """The first level at which all attachments together are small enough, or the last one."""
        for level in range(len(_LEVELS) - 1):
            if sum(len(_encoded(part.text)) for part in self._attachments(level, [])) <= ATTACHMENTS_BYTES:
                return level
        return len(_LEVELS) - 1

    def render(self, policy: str, level: int) -> Composed:
        """The prompt with this digest policy and this level of cutting."""
        log = list(self._log)
        parts = list(self._before)
        digest = None
        if self._pack is None:
            log.append("context: none")
        else:
            if shorten.needs_digest(policy, self._pack, self._stage.agent):
                digest = shorten.digest(self._pack)
            context = self._pack if digest is None else digest
            kind = "complete" if digest is None else f"digest of {_size(self._pack)}"
            log.append(f"context: {_size(context)}, {kind} (policy {policy})")
            parts.append(PromptPart(name="context", text=context))
        parts += self._after
        parts += self._attachments(level, log)
        data = _encoded(sealed(parts))
        log.append(f"prompt: {len(data)} bytes, sha256 {sha256(data)}")
        return Composed(
            text=data.decode(), sha256=sha256(data), log=tuple(log), template=self._template, digest=digest
        )

    def _attachments(self, level: int, log: list[str]) -> Iterator[PromptPart]:
        if level and self._attached:
            log.append("attachments: cut further to fit")
        usual, whole = _LEVELS[level]
        for each in self._attached:
            lines = whole if each.is_whole else usual
            text, note = attachments.shown(each, lines=lines)
            log.append(f"attachment {each.name}: {note}")
            yield PromptPart(name=f"attachment {each.name}", text=text)

    def _part(self, name: str, text: str) -> PromptPart:
        return PromptPart(name=name, text=self._cleaned(name, text))

    def _cleaned(self, name: str, text: str) -> str:
        cleaned = self._clean(text)
        if cleaned != text:
            self._log.append(f"{name}: secrets or forbidden paths removed")
        return cleaned


def facts(spec: TaskSpec, stage: StageSpec, script: str | None = None) -> str:
    """The part `task`: goal, scope and acceptance. The commands of `script` are those of a brief."""
    pipeline = spec.pipeline or _NO_PIPELINE
    parts = [f"Goal: {spec.goal}", f"Stage: {stage.name} (role {stage.role})"]
    if stage.writes:
        parts.append(_listed("Paths that you may change", pipeline.scope_allow) or "You may change files.")
    else:
        parts.append("This stage must not change files.")
    parts.append(_listed("Paths that must not change", pipeline.scope_deny))
    parts.append(_listed("Acceptance criteria", pipeline.acceptance_criteria))
    parts.append(_listed(_COMMANDS, pipeline.acceptance_commands))
    if script:
        title = "Acceptance commands that the brief adds" if pipeline.acceptance_commands else _COMMANDS
        parts.append(f"{title}:\n" + textwrap.indent(script.rstrip("\n"), "    "))
    return "\n\n".join(part for part in parts if part)


def _listed(title: str, items: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"- {item}" for item in items)]) if items else ""


def sealed(parts: Sequence[PromptPart]) -> str:
    """The parts between their markers."""
    seal = sha256("\0".join(f"{part.name}\0{part.text}" for part in parts).encode("utf-8", "replace"))[:16]
    lines: list[str] = []
    for part in parts:
        lines += [
            f"<<<BEGIN {part.name} {seal}>>>",
            part.text.strip("\n"),
            f"<<<END {part.name} {seal}>>>",
            "",
        ]
    return "\n".join(lines)


def _safe_name(name: str) -> str:
    return re.sub(r"[^\w./ +@()\[\]-]", "_", name)[:120]


def _size(text: str) -> str:
    return f"{len(_encoded(text))} bytes"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
