"""The hand-off of a brief to later stages: the new context pack and the acceptance commands."""

from __future__ import annotations

import textwrap

from holdfast import files
from holdfast.model import markdown, pack
from holdfast.model.record import Record
from holdfast.model.roles import UPDATED_PACK
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model.markdown import Section
    from holdfast.store.layout import Packet

_SHELLS = ("", "sh", "bash", "shell", "zsh", "console", "shell-session", "text")
_TRANSCRIPTS = ("console", "shell-session")


class Handoff(Record):
    """What a brief hands off."""

    #: None: the report has no complete pack, and the old one stays.
    context_pack: str | None
    #: The acceptance commands. None: the report has no block for them; empty: the block is empty.
    script: str | None


def read_brief(text: str) -> Handoff:
    """The hand-off in the report of a brief. Missing or incomplete parts are None. Pure."""
    sections = markdown.sections(text)
    return Handoff(context_pack=_pack(text, sections), script=_script(sections))


def apply(packet: Packet, handoff: Handoff) -> None:
    """Write the hand-off to the packet, for the next stages. Idempotent."""
    if handoff.context_pack is not None:
        data = handoff.context_pack.encode("utf-8", "replace")
        if _content(packet.context_pack) != data:
            atomic.write(packet.context_pack, data, durable=True)
    data = handoff.script.encode("utf-8", "replace") if handoff.script else None
    if _content(packet.commands_override) == data:
        return
    if data is not None:
        atomic.write(packet.commands_override, data, durable=True)
        return
    atomic.remove(packet.commands_override)
    atomic.sync_directory(packet.state)


def _pack(text: str, sections: Sequence[Section]) -> str | None:
    section = markdown.find(sections, UPDATED_PACK)
    if section is None:
        return None
    candidates = [section.body, markdown.unwrapped(section.body), _flat_pack(text, sections, section)]
    candidates += [block.text for block in markdown.code_blocks(section.body) if block.is_closed]
    complete = next((candidate for candidate in candidates if not pack.missing(candidate)), None)
    return None if complete is None else complete.strip("\n") + "\n"


def _flat_pack(text: str, sections: Sequence[Section], section: Section) -> str:
    """The pack if its headings are not below its title: up to the next other heading on that level."""
    level = section.level
    end = section.end
    for other in sections:
        if other.line <= section.line:
            continue
        is_of_pack = any(markdown.find([other], heading) for heading in pack.HEADINGS)
        if is_of_pack:
            level = min(level, other.level)
        elif other.level <= level:
            break
        end = max(end, other.end if other.level >= level else other.line)
    lines = text.split("\n")[section.line : end]
    return "\n".join(lines)


def _script(sections: Sequence[Section]) -> str | None:
    section = markdown.find(sections, "Verify Commands")
    if section is None:
        return None
    blocks = [block for block in markdown.code_blocks(section.body) if block.language in _SHELLS]
    listed = [_lines(block) for block in blocks]
    return next((text for text in listed if text), "") if blocks else None


def _lines(block: markdown.CodeBlock) -> str:
    """The commands of a code block, without prompts and output."""
    lines = textwrap.dedent(block.text).split("\n")
    if block.language in _TRANSCRIPTS or any(line.lstrip().startswith("$ ") for line in lines):
        # Lines without a prompt are output.
        lines = [line.lstrip()[2:] for line in lines if line.lstrip().startswith("$ ")]
    is_empty = all(not line.strip() or line.lstrip().startswith("#") for line in lines)
    return "" if is_empty else "\n".join(lines).strip("\n") + "\n"


def _content(path: str) -> bytes | None:
    try:
        with files.stream(path) as file:
            return file.read()
    except FileNotFoundError:
        return None
