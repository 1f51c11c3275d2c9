"""Tables for a terminal: as wide as it is, in colour where there is one, plain text where not."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STATE_COLOURS = {
    "running": "32",
    "spawning": "36",
    "completing": "36",
    "queued": "36",
    "waiting": "33",
    "interrupted": "35",
    "crashed": "31",
    "hung": "31",
    "timeout": "31",
    "completed": "2;32",
    "failed": "31",
    "abandoned": "31",
    "killed": "2",
}
_NARROWEST_LAST = 10


def show(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    colours: Mapping[int, Mapping[str, str]] | None = None,
) -> None:
    """Print a table; the last column takes what room is left."""
    printed = [_printable(row) for row in rows]
    widths = [max(len(row[column]) for row in (head, *printed)) for column in range(len(head))]
    room = width() - sum(widths[:-1]) - 2 * (len(head) - 1)
    widths[-1] = max(_NARROWEST_LAST, room) if is_terminal() else max(widths[-1], 1)
    in_colour = has_colour()
    print(_line(head, widths, None, in_colour=False))
    for row in printed:
        print(_line(row, widths, colours, in_colour=in_colour))


def _line(
    row: Sequence[str],
    widths: Sequence[int],
    colours: Mapping[int, Mapping[str, str]] | None,
    *,
    in_colour: bool,
) -> str:
    cells: list[str] = []
    for column, (cell, wide) in enumerate(zip(row, widths, strict=True)):
        text = cell[:wide].ljust(wide) if column < len(row) - 1 else cell[:wide]
        code = (colours or {}).get(column, {}).get(cell) if in_colour else None
        cells.append(f"\x1b[{code}m{text}\x1b[0m" if code else text)
    return "  ".join(cells).rstrip()


def _printable(row: Sequence[str]) -> list[str]:
    """Nothing in a cell may move the cursor or break the encoding of a terminal that is not UTF-8."""
    encoding = sys.stdout.encoding or "ascii"
    clean = ["".join(char if char.isprintable() else " " for char in cell) for cell in row]
    return [cell.encode(encoding, "replace").decode(encoding) for cell in clean]


def is_terminal() -> bool:
    """Whether a person looks."""
    return sys.stdout.isatty()


def has_colour() -> bool:
    """NO_COLOR, a dumb terminal and a pipe have none."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def width() -> int:
    """Columns of the terminal; 80 when nobody knows."""
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return int(os.environ.get("COLUMNS") or 80)
