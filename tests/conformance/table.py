"""docs/conformance.md: agents × scenarios, as the suite saw them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.conformance.pins import PINS

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAD = """# Conformance

The six CLIs as npm installs them, run by holdfast against the [model servers](guides/model-servers.md) in a network namespace that has loopback only.
Written by `make conformance`: not by hand. `make conformance-smoke` runs the rows in bold.
"""
_LEGEND = (
    "*instead*: the CLI cannot; the note says why and what holdfast does instead, which is what the test checked. "
    "A number behind *pass* is a remark."
)


class Cell(NamedTuple):
    """What came of one scenario with one agent."""

    word: str
    notes: tuple[str, ...] = ()


class Row(NamedTuple):
    """One scenario."""

    title: str
    is_smoke: bool = False
    #: For a scenario without a test: why.
    not_built: str = ""


def render(rows: Mapping[str, Row], cells: Mapping[tuple[str, str], Cell], *, is_part: bool = False) -> str:
    """The page. Equal results give equal text. A part is for the terminal: rows and notes only."""
    notes: list[str] = []
    lines = [] if is_part else [_HEAD]
    lines.append("| | " + " | ".join(f"{pin.agent}<br>{pin.version}" for pin in PINS) + " |")
    lines.append("|---" * (len(PINS) + 1) + "|")
    for name, row in rows.items():
        title = f"**{row.title}**" if row.is_smoke else row.title
        words = [row.not_built or _word(cells.get((name, pin.agent)), notes) for pin in PINS]
        lines.append(f"| {title} | " + " | ".join(words) + " |")
    lines += ["", _LEGEND] if notes and not is_part else []
    lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1))] if notes else []
    return "\n".join(lines) + "\n"


def _word(cell: Cell | None, notes: list[str]) -> str:
    if cell is None:
        return "**did not run**"
    notes += [note for note in dict.fromkeys(cell.notes) if note not in notes]
    numbers = ", ".join(str(notes.index(note) + 1) for note in dict.fromkeys(cell.notes))
    return f"{cell.word} ({numbers})" if numbers else cell.word
