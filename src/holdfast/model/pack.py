"""The context pack: its ten headings, which of them a digest keeps, and what makes a text one. Pure."""

from __future__ import annotations

from holdfast.model import markdown

#: A pack is whole when it has all of them. Prompts ask for these, the gate of a brief looks for these.
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
#: What an agent needs of it when there is no room for all.
KEPT = ("Goal", "Non-goals", "Scope", "Acceptance", "Fixed decisions", "Files to read", "Prohibited actions")


def missing(text: str) -> list[str]:
    """The headings that a pack lacks."""
    found = markdown.sections(text)
    return [heading for heading in HEADINGS if markdown.find(found, heading) is None]
