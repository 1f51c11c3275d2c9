"""The context pack: its ten headings, and those that a digest keeps. Pure."""

from __future__ import annotations

from holdfast.model import markdown

#: A complete pack has all of them. Prompts ask for them, and the gate of a brief checks them.
HEADINGS = (
    "0. Goal",
    "1. Non-goals",
    "2. Scope",
    "3. Acceptance",
    "4. Fixed decisions",
    "5. Files to read",
    "6. Prohibited actions",
    "7. Current state",
    "8. Open questions",
    "9. Change History",
)
#: Sections that a digest keeps if the whole pack is too large.
KEPT = ("Goal", "Non-goals", "Scope", "Acceptance", "Fixed decisions", "Files to read", "Prohibited actions")


def missing(text: str) -> list[str]:
    """The headings that a pack lacks."""
    sections = markdown.sections(text)
    return [heading for heading in HEADINGS if markdown.find(sections, heading) is None]
