"""Styles in the sixteen colours that the terminal's own theme defines, so that light and dark both work."""

from __future__ import annotations

from rich.style import Style

PLAIN = Style()
DIM = Style(dim=True)
BOLD = Style(bold=True)
HEADER = Style(bold=True, underline=True)
#: The line under the cursor. Reversed colours are readable in every theme.
CURSOR = Style(reverse=True)
FOUND = Style(reverse=True, bold=True)
GOOD, BAD, WARNING, HINT = (Style(color=name) for name in ("green", "red", "yellow", "cyan"))
QUESTION = Style(color="magenta", bold=True)

GROUPS = {"needs you": QUESTION, "working": GOOD, "waiting": WARNING, "queued": HINT, "ended": DIM}
STATES = {
    "running": GOOD,
    "spawning": HINT,
    "completing": HINT,
    "queued": HINT,
    "waiting": WARNING,
    "stopping": WARNING,
    "interrupted": QUESTION,
    "crashed": BAD,
    "hung": BAD,
    "timeout": BAD,
    "completed": Style(color="green", dim=True),
    "failed": BAD,
    "abandoned": BAD,
    "killed": DIM,
}
