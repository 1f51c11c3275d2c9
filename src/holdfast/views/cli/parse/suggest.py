"""Suggestions for typing mistakes."""

from __future__ import annotations


def did_you_mean(text: str, known: tuple[str, ...]) -> str:
    """`did you mean …?` with the most similar word, or an empty string."""
    # Loaded for a mistake only: difflib is expensive.
    from difflib import get_close_matches

    similar = get_close_matches(text, known, n=1)
    return f"did you mean '{similar[0]}'?" if similar else ""
