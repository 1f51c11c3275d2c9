"""Whether the service refused a call because of a limit: an announced retry then waits for it."""

from __future__ import annotations

import re

#: The HTTP status of a refusal because of a limit.
LIMITED = 429


def quotes_limit(text: str) -> bool:
    """Whether a program's message quotes that status, for programs that do not report it as a field."""
    return re.search(rf"(?<!\d){LIMITED}(?!\d)", text) is not None
