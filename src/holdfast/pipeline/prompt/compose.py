"""The prompt of a stage: rules, role, task, context, request, attachments, in this order, redacted, and never too large.

Each part lies between a BEGIN and an END line that carry a seal, a hash over all the parts: no text can contain the seal of
the prompt that it is in, so nothing inside a part can pass for its end. The same inputs give the same prompt.
"""

from __future__ import annotations

import re
import textwrap

from holdfast.errors import PromptTooLarge
from holdfast.model.record import Record
from holdfast.model.spec import PipelineSpec
from holdfast.pipeline.prompt import attachments, digest, template
from holdfast.pipeline.prompt.forbidden import Forbidden
from holdfast.store import atomic
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holdfast.model.spec import StageSpec, TaskSpec
    from holdfast.pipeline.prompt.attachments import Attachment
    from holdfast.store.layout import Packet

#: Lines of each end of an attachment, and of one that should be whole (None: it is), from the first choice to the last.
#: 0: it is only named.
_LEVELS: tuple[tuple[int, int | None], ...] = ((200, None), (60, None), (20, None), (20, 200), (0, 60))
#: All attachments together, where the agent itself sets no limit.
ATTACHMENTS_BYTES = 512 * 1024
_NO_PIPELINE = PipelineSpec(intent="", group="", profile="")


class Part(Record):
    """What lies between two markers."""

    name: str
    text: str


class Composed(Record):
    """A prompt, and how it was made."""

    text: str
    #: Of the text as it is written.
    sha256: str
    log: tuple[str, ...]
    #: The file of the role's template.
    template: str
    #: The digest that stands for the context pack; None where the pack is there whole, or there is none.
    digest: str | None = None


def compose(
    packet: Packet,
    spec: TaskSpec,
    stage: StageSpec,
    *,
    project_dir: str,
    redact: Callable[[str], str],
    digest_policy: str | None = None,
    extra: Sequence[Attachment] = (),
    notes: str = "",
    script: str | None = None,
    limit_bytes: int | None = None,
) -> Composed:
    """The prompt of a stage. `extra` are texts of earlier stages; `notes` says what this attempt must know beside the request;
    `script` has the commands of a brief.

    Over `limit_bytes` the context becomes its digest, then attachments are cut harder; each step is in the log.
    Raises MissingTemplate, ForbiddenInput, InvalidPattern, UnreadableFile, PromptTooLarge: nothing was written, nothing paid.
    """
    asked = spec.pipeline or _NO_PIPELINE
    forbidden = Forbidden(asked.forbidden_paths, project_dir=project_dir)
    draft = _Draft(packet, spec, stage, lambda text: forbidden.mask(redact(forbidden.without_diffs(text))))
    attached = [*extra, *attachments.read(packet, forbidden)]
    draft.gather(project_dir, asked.profile, attached=attached, notes=notes, script=script)
    policy, level = digest_policy or asked.digest_policy, draft.room()
    steps = [(policy, level), *(("aggressive", harder) for harder in range(level, len(_LEVELS)))]
    size = 0
    for step in steps:
        composed = draft.render(*step)
        size = len(_encoded(composed.text))
        if limit_bytes is None or size <= limit_bytes:
            cut = () if step == steps[0] else (f"cut to fit: {stage.agent} takes {limit_bytes} bytes",)
            return composed.evolve(log=(*composed.log, *cut))
    raise PromptTooLarge(
        f"the prompt of {stage.name} has {size} bytes with everything cut, and {stage.agent} takes {limit_bytes}"
    )


def write(packet: Packet, stage: StageSpec, composed: Composed) -> str:
    """Keep a prompt in the packet, with its log and its digest; the path of the prompt."""
    atomic.make_directory(packet.prompts)
    if composed.digest is not None:
        atomic.write(packet.context_digest, _encoded(composed.digest), durable=True)
    path = packet.prompt(stage.agent, stage.role)
    atomic.write(path, _encoded(composed.text), durable=True)
    log = "".join(f"{line}\n" for line in composed.log)
    atomic.write(packet.output(stage.name, stage.agent, "compose.log"), _encoded(log), durable=False)
    return path


class _Draft:
    """The parts of a prompt, cleaned, before anything is cut."""

    def __init__(self, packet: Packet, spec: TaskSpec, stage: StageSpec, clean: Callable[[str], str]) -> None:
        self._packet, self._spec, self._stage, self._clean = packet, spec, stage, clean
        self._before: list[Part] = []
        self._after: list[Part] = []
        self._pack: str | None = None
        self._attached: list[Attachment] = []
        self._log: list[str] = []
        self._template = ""

    def gather(
        self, project_dir: str, profile: str, *, attached: list[Attachment], notes: str, script: str | None
    ) -> None:
        """Read and clean everything."""
        found = {"project_dir": project_dir, "profile": profile}
        rules = template.rules(packet=self._packet, **found)
        role = template.load(self._stage.role, packet=self._packet, **found)
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
            name = _tidy(self._clean(each.name))
            text = None if each.text is None else self._cleaned(f"attachment {name}", each.text)
            self._attached.append(each.evolve(name=name, text=text))

    def room(self) -> int:
        """The first level at which all attachments together are not too large; the last one where none is."""
        for level in range(len(_LEVELS) - 1):
            if sum(len(_encoded(part.text)) for part in self._attachments(level, [])) <= ATTACHMENTS_BYTES:
                return level
        return len(_LEVELS) - 1

    def render(self, policy: str, level: int) -> Composed:
        """The prompt with a digest by this policy, and attachments cut at this level."""
        log = list(self._log)
        parts = list(self._before)
        short = None
        if self._pack is None:
            log.append("context: none")
        else:
            if digest.wanted(policy, self._pack, self._stage.agent):
                short = digest.digest(self._pack)
            context = self._pack if short is None else short
            kind = "whole" if short is None else f"digest of {_size(self._pack)}"
            log.append(f"context: {_size(context)}, {kind} (policy {policy})")
            parts.append(Part(name="context", text=context))
        parts += self._after
        parts += self._attachments(level, log)
        data = _encoded(sealed(parts))
        log.append(f"prompt: {len(data)} bytes, sha256 {sha256(data)}")
        return Composed(
            text=data.decode(), sha256=sha256(data), log=tuple(log), template=self._template, digest=short
        )

    def _attachments(self, level: int, log: list[str]) -> Iterator[Part]:
        if level and self._attached:
            log.append("attachments: cut harder, there is no room for more")
        usual, whole = _LEVELS[level]
        for each in self._attached:
            lines = whole if each.is_whole else usual
            text, said = attachments.shown(each, lines=lines)
            log.append(f"attachment {each.name}: {said}")
            yield Part(name=f"attachment {each.name}", text=text)

    def _part(self, name: str, text: str) -> Part:
        return Part(name=name, text=self._cleaned(name, text))

    def _cleaned(self, name: str, text: str) -> str:
        cleaned = self._clean(text)
        if cleaned != text:
            self._log.append(f"{name}: secrets or forbidden paths were taken out")
        return cleaned


def facts(spec: TaskSpec, stage: StageSpec, script: str | None = None) -> str:
    """What the manifest says about the task, in words: goal, scope, acceptance. The commands of `script` hold instead of those of
    the manifest."""
    asked = spec.pipeline or _NO_PIPELINE
    parts = [f"Goal: {spec.goal}", f"Stage: {stage.name} (role {stage.role})"]
    if stage.writes:
        parts.append(_listed("Paths that you may change", asked.scope_allow) or "You may change files.")
    else:
        parts.append("This stage changes no file.")
    parts.append(_listed("Paths that must not change", asked.scope_deny))
    parts.append(_listed("Acceptance criteria", asked.acceptance_criteria))
    if script:
        parts.append("Acceptance commands:\n" + textwrap.indent(script.rstrip("\n"), "    "))
    else:
        parts.append(_listed("Acceptance commands", asked.acceptance_commands))
    return "\n\n".join(part for part in parts if part)


def _listed(title: str, items: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"- {item}" for item in items)]) if items else ""


def sealed(parts: Sequence[Part]) -> str:
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


def _tidy(name: str) -> str:
    return re.sub(r"[^\w./ +@()\[\]-]", "_", name)[:120]


def _size(text: str) -> str:
    return f"{len(_encoded(text))} bytes"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
