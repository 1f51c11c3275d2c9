"""Shortening texts for a prompt: the middle of a long text, and the digest of a context pack. Pure.

A reader always sees that something was cut, and how much.
"""

from __future__ import annotations

from holdfast.model import markdown, pack
from holdfast.model.record import Record

#: The first lines of a log show what was run, and the last ones how it ended.
HEAD_LINES, TAIL_LINES = 200, 200
#: The middle of a longer line (minified code, data) is cut.
LINE_CHARS = 4000
#: With the policy `auto`, a longer context pack is digested.
AUTO_CHARS = 8000
#: Lines of a section in a digest, and of a pack without any of the known sections.
SECTION_LINES, OPENING_LINES = 40, 100
#: Agents with small prompts: their context pack is always digested.
_SMALL_AGENTS = ("copilot",)
#: Other titles of the same section.
_ALIASES = {"Acceptance": ("Acceptance criteria",), "Non-goals": ("Non goals",), "Files to read": ("Files",)}


class Trimmed(Record):
    """A text that may have lost its middle."""

    text: str
    #: Whole lines that were cut, and their bytes. Cuts in long lines are noted in place.
    cut_lines: int = 0
    cut_bytes: int = 0
    long_lines: int = 0


def middle(text: str, head: int = HEAD_LINES, tail: int = TAIL_LINES) -> Trimmed:
    """The first and the last lines with a note between them; the whole text if it has no more lines."""
    lines = text.split("\n")
    # A text that ends with a newline has no empty last line.
    ending = [lines.pop()] if lines[-1] == "" else []
    cut = lines[head : len(lines) - tail] if len(lines) > head + tail else []
    cut_bytes = sum(len(line.encode("utf-8", "replace")) + 1 for line in cut)
    if cut:
        note = f"[… {len(cut)} lines ({cut_bytes} bytes) cut here …]"
        lines = [*lines[:head], note, *lines[len(lines) - tail :]]
    shown = [line_middle(line) for line in lines]
    return Trimmed(
        text="\n".join([*shown, *ending]),
        cut_lines=len(cut),
        cut_bytes=cut_bytes,
        long_lines=sum(before is not after for before, after in zip(lines, shown, strict=True)),
    )


def line_middle(line: str, limit: int = LINE_CHARS) -> str:
    """A line with a note in place of its middle if it is too long; else the line itself."""
    excess = len(line) - limit
    if excess <= 0:
        return line
    half = limit // 2
    return f"{line[:half]}[… {excess} characters cut here …]{line[half + excess :]}"


def needs_digest(policy: str, text: str, agent: str) -> bool:
    """Whether an agent gets the digest of a context pack. `auto`: only of a long pack."""
    if policy == "aggressive" or agent in _SMALL_AGENTS:
        return True
    return policy == "auto" and len(text) > AUTO_CHARS


def digest(text: str) -> str:
    """The most important sections of a context pack, each cut to its first lines.

    If it has none of them, the first lines of the pack.
    """
    sections = markdown.sections(text)
    kept: list[markdown.Section] = []
    for name in pack.KEPT:
        titles = (name, *_ALIASES.get(name, ()))
        section = next(filter(None, (markdown.find(sections, title) for title in titles)), None)
        # A section inside another kept one is there already.
        if section and not any(outer.line <= section.line <= outer.end for outer in kept):
            kept.append(section)
    if not kept:
        return _opening(text, OPENING_LINES, "the context") + "\n"
    parts = [
        f"## {section.title}\n\n{_opening(section.body, SECTION_LINES, 'this section')}".rstrip() + "\n"
        for section in kept
    ]
    return "\n".join(parts)


def _opening(text: str, count: int, what: str) -> str:
    lines = text.rstrip("\n").split("\n")
    shown = [line_middle(line) for line in lines[:count]]
    if len(lines) <= count:
        return "\n".join(shown)
    blocks = markdown.code_blocks("\n".join(shown))
    if blocks and not blocks[-1].is_closed:
        shown.append(shown[blocks[-1].line - 1].strip()[:3])
    return "\n".join([*shown, f"[… {len(lines) - count} more lines of {what} are left out …]"])
