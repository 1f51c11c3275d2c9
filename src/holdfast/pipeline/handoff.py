"""From a brief to the stages after it: the new context pack, and the commands that will decide. Reading is pure."""

from __future__ import annotations

import os
import re

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
    #: None: nothing that could hold commands; empty: it says that there are none.
    commands: tuple[str, ...] | None


def read_brief(text: str) -> Handoff:
    """What the answer of a brief hands over. Whatever is missing or not whole is None."""
    found = markdown.sections(text)
    return Handoff(context_pack=_pack(text, found), commands=_commands(found))


def apply(packet: Packet, handoff: Handoff) -> list[str]:
    """Put it where the next stages look, durably; what changed, in words. Doing it twice changes nothing more."""
    changed: list[str] = []
    if handoff.context_pack is not None:
        data = handoff.context_pack.encode("utf-8", "replace")
        if _content(packet.context_pack) != data:
            atomic.write(packet.context_pack, data, durable=True)
            changed.append("the context pack was rewritten")
    if handoff.commands:
        data = "".join(f"{command}\n" for command in handoff.commands).encode("utf-8", "replace")
        if _content(packet.commands_override) != data:
            atomic.write(packet.commands_override, data, durable=True)
            changed.append(f"{len(handoff.commands)} acceptance commands were set")
    elif os.path.lexists(packet.commands_override):
        # Commands of an earlier brief would judge what this one asks for.
        atomic.remove(packet.commands_override)
        atomic.sync_directory(packet.state)
        changed.append("the acceptance commands of an earlier brief were dropped")
    return changed


def commands(packet: Packet) -> tuple[str, ...] | None:
    """The commands that a brief set; None when none did, and those of the manifest hold."""
    data = _content(packet.commands_override)
    if data is None:
        return None
    return tuple(line for line in data.decode("utf-8", "replace").splitlines() if line.strip()) or None


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


def _commands(found: Sequence[Section]) -> tuple[str, ...] | None:
    section = markdown.find(found, "Verify Commands")
    if section is None:
        return None
    blocks = [block for block in markdown.code_blocks(section.body) if block.language in _SHELLS]
    listed = [_lines(block) for block in blocks]
    return next((lines for lines in listed if lines), ()) if blocks else None


def _lines(block: markdown.CodeBlock) -> tuple[str, ...]:
    lines = [line.strip() for line in re.sub(r"\s*\\\n\s*", " ", block.text).split("\n")]
    if block.language in _TRANSCRIPTS or any(line.startswith("$ ") for line in lines):
        # What is not behind a prompt is output.
        lines = [line[2:].strip() for line in lines if line.startswith("$ ")]
    return tuple(line for line in lines if line and not line.startswith("#"))


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
