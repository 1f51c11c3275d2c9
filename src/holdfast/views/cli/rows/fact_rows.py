"""Rows of name and text, as commands print facts."""

from __future__ import annotations


def named_rows(name: str, lines: list[str]) -> list[tuple[str, str]]:
    """One row per line, of which only the first has the name."""
    return [(name if at == 0 else "", line) for at, line in enumerate(lines)]
