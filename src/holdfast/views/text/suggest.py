"""Suggestions for typing mistakes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def did_you_mean(text: str, known: tuple[str, ...], elsewhere: Mapping[str, str] | None = None) -> str:
    """`did you mean …?` with the most similar word, or an empty string.

    `elsewhere` has words of other programs and what they are called here.
    """
    here = (elsewhere or {}).get(text.lower())
    if here is not None and here in known:
        return f"did you mean '{here}'?"
    # Loaded for a mistake only: difflib is expensive.
    from difflib import get_close_matches

    similar = get_close_matches(text, known, n=1)
    return f"did you mean '{similar[0]}'?" if similar else ""
