"""What is wrong in a file that a person wrote: every problem, each with its line and its path."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Problem(Record):
    """One mistake. `path` is that of the value in the file (`budgets.retry_budget`), empty for the file itself."""

    file: str
    #: From 1 on; 0 where no line is to blame.
    line: int
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        words = ": ".join(part for part in (place, self.path, self.message) if part)
        return f"{words} ({self.hint})" if self.hint else words


def sorted_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """In the order of files and lines, none of them twice."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda each: (each.file, each.line)))


def near(text: str, known: Iterable[str]) -> str:
    """`did you mean …?` for a typo, or nothing."""
    from difflib import get_close_matches

    found = get_close_matches(text, list(known), n=1)
    return f"did you mean {found[0]!r}?" if found else ""


def listed(known: Iterable[str]) -> str:
    """Allowed values, for a hint."""
    return "allowed: " + (", ".join(known) or "nothing")


def join_hints(*hints: str) -> str:
    """Those that say something."""
    return " ".join(hint for hint in hints if hint)
