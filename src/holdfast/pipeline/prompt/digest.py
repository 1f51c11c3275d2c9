"""The digest of a context pack: what an agent must know when there is no room for all of it. Pure."""

from __future__ import annotations

from holdfast.model import markdown, pack
from holdfast.pipeline.prompt import shorten

#: Under `auto`, a longer pack is shortened.
AUTO_CHARS = 8000
#: Lines of a section, and of a pack without one of the known sections.
SECTION_LINES, OPENING_LINES = 40, 100
#: Agents for which a pack is always shortened: their prompt is small.
_SMALL = ("copilot",)
#: Other titles of the same section.
_ALSO = {"Acceptance": ("Acceptance criteria",), "Non-goals": ("Non goals",), "Files to read": ("Files",)}


def wanted(policy: str, text: str, agent: str) -> bool:
    """Whether this agent gets the digest: `off`, `auto` (a long pack) or `aggressive` (always)."""
    if policy == "aggressive" or agent in _SMALL:
        return True
    return policy == "auto" and len(text) > AUTO_CHARS


def digest(text: str) -> str:
    """The sections that matter, each cut to its first lines with a note; the opening where there is none of them."""
    found = markdown.sections(text)
    kept: list[markdown.Section] = []
    for name in pack.KEPT:
        titles = (name, *_ALSO.get(name, ()))
        section = next(filter(None, (markdown.find(found, title) for title in titles)), None)
        # A section inside one that is kept is there already.
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
    shown = [shorten.shorten(line) for line in lines[:count]]
    if len(lines) <= count:
        return "\n".join(shown)
    blocks = markdown.code_blocks("\n".join(shown))
    if blocks and not blocks[-1].is_closed:
        shown.append(shown[blocks[-1].line - 1].strip()[:3])
    return "\n".join([*shown, f"[… {len(lines) - count} more lines of {what} are left out …]"])
