"""Problems in a file that a user wrote, each with its line and path."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Problem(Record):
    """One mistake. `path` is that of the value (`budgets.retry_budget`); it is empty for the file itself."""

    file: str
    #: From 1; 0 if no single line is wrong.
    line: int
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = ": ".join(part for part in (place, self.path, self.message) if part)
        return f"{text} ({self.hint})" if self.hint else text


def sorted_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems by file and line, without duplicates."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda each: (each.file, each.line)))


def counted(problems: tuple[Problem, ...]) -> str:
    """`1 problem`, `2 problems`, …"""
    return "1 problem" if len(problems) == 1 else f"{len(problems)} problems"


def near(text: str, known: Iterable[str]) -> str:
    """`did you mean …?` for a typo; empty if no known name is close."""
    from difflib import get_close_matches

    matches = get_close_matches(text, list(known), n=1)
    return f"did you mean {matches[0]!r}?" if matches else ""


def listed(known: Iterable[str]) -> str:
    """The allowed values, for a hint."""
    return "allowed: " + (", ".join(known) or "nothing")


def join_hints(*hints: str) -> str:
    """The hints that are not empty, in one line."""
    return " ".join(hint for hint in hints if hint)


def unknown_hint(name: str, known: Iterable[str]) -> str:
    """The hint for an unknown name: the closest known one, and all of them."""
    names = list(known)
    return join_hints(near(name, names), listed(names))
