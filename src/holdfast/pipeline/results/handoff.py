"""From a brief to the stages after it: the new context pack, and the commands that will decide. Reading is pure."""

from __future__ import annotations

import textwrap

from holdfast.model import markdown, pack
from holdfast.model.record import Record
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model.markdown import Section
    from holdfast.store.layout import Packet

_SHELLS = ("", "sh", "bash", "shell", "zsh", "console", "shell-session", "text")
_TRANSCRIPTS = ("console", "shell-session")


class Handoff(Record):
    """What a brief hands over."""

    #: None: no whole pack in it; the old one stays.
    context_pack: str | None
    #: The commands that will decide. None: nothing that could hold any; empty: it says that there are none.
    script: str | None


def read_brief(text: str) -> Handoff:
    """What the answer of a brief hands over. Whatever is missing or not whole is None."""
    found = markdown.sections(text)
    return Handoff(context_pack=_pack(text, found), script=_script(found))


def apply(packet: Packet, handoff: Handoff) -> None:
    """Put it where the next stages look, durably. Doing it twice changes nothing more."""
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


def _pack(text: str, found: Sequence[Section]) -> str | None:
    section = markdown.find(found, "Updated Context Pack")
    if section is None:
        return None
    candidates = [section.body, markdown.unwrapped(section.body), _up_to_stranger(text, found, section)]
    candidates += [block.text for block in markdown.code_blocks(section.body) if block.is_closed]
    whole = next((candidate for candidate in candidates if not pack.missing(candidate)), None)
    return None if whole is None else whole.strip("\n") + "\n"


def _up_to_stranger(text: str, found: Sequence[Section], section: Section) -> str:
    """The pack where its headings stand on the level of its own title, or above it: up to the next other heading there."""
    level = section.level
    end = section.end
    for other in found:
        if other.line <= section.line:
            continue
        is_ours = any(markdown.find([other], heading) for heading in pack.HEADINGS)
        if is_ours:
            level = min(level, other.level)
        elif other.level <= level:
            break
        end = max(end, other.end if other.level >= level else other.line)
    lines = text.split("\n")[section.line : end]
    return "\n".join(lines)


def _script(found: Sequence[Section]) -> str | None:
    section = markdown.find(found, "Verify Commands")
    if section is None:
        return None
    blocks = [block for block in markdown.code_blocks(section.body) if block.language in _SHELLS]
    listed = [_lines(block) for block in blocks]
    return next((text for text in listed if text), "") if blocks else None


def _lines(block: markdown.CodeBlock) -> str:
    """The text of a block, as a shell would be given it."""
    lines = textwrap.dedent(block.text).split("\n")
    if block.language in _TRANSCRIPTS or any(line.lstrip().startswith("$ ") for line in lines):
        # What is not behind a prompt is output.
        lines = [line.lstrip()[2:] for line in lines if line.lstrip().startswith("$ ")]
    is_empty = all(not line.strip() or line.lstrip().startswith("#") for line in lines)
    return "" if is_empty else "\n".join(lines).strip("\n") + "\n"


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
