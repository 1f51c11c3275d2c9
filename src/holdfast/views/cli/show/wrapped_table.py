"""Tables that lose nothing: a wide cell is wrapped, and columns that do not fit are printed below their row.

`table` cuts instead, so that a row stays a line.
"""

from __future__ import annotations

from itertools import zip_longest

from holdfast.views.cli.show import terminal
from holdfast.views.text.fit_text import as_displayed, cell_width, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_GAP = "  "
#: Before columns that are printed below their row.
_INDENT = "    "
#: The minimum width of a column with sentences; and the longest word for which a column is widened.
_FEW_WORDS, _LONG_WORD = 24, 40


def show(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table within the width of the output, if it has one."""
    printed = [[as_displayed(cell) for cell in row] for row in (head, *rows)]
    columns = list(zip(*printed, strict=True))
    widths = [max(map(cell_width, column)) for column in columns]
    room = terminal.width()
    bands = [list(range(len(head)))]
    if room is not None and _sum(widths) > room:
        used = [at for at, column in enumerate(columns) if any(cell not in ("", "-") for cell in column[1:])]
        least = [min(_least(column), room - len(_INDENT)) for column in columns]
        bands = banded(widths, least, room=room, columns=used)
    for row in printed:
        if room is not None and len(bands) == 2 and len(bands[1]) == 1:
            last = cell_width(row[bands[1][0]])
            if _sum([*(widths[column] for column in bands[0]), last]) <= room:
                # A short one of the column below still fits into its row.
                columns_of_row = [*bands[0], *bands[1]]
                wide = [*(widths[column] for column in bands[0]), last]
                _print([row[column] for column in columns_of_row], wide, indent="", room=room)
                continue
        for at, band in enumerate(bands):
            cells, wide = [row[column] for column in band], [widths[column] for column in band]
            _print(cells, wide, indent=_INDENT if at else "", room=room)


def banded(
    widths: list[int], least: Sequence[int], *, room: int, columns: Sequence[int] | None = None
) -> list[list[int]]:
    """Split the columns into bands that fit, one printed below the other, and narrow `widths` to fit."""
    bands: list[list[int]] = [[]]
    for column in range(len(widths)) if columns is None else columns:
        beside = [*bands[-1], column]
        if bands[-1] and _sum([least[each] for each in beside]) > _room(room, len(bands)):
            bands.append([column])
        else:
            bands[-1] = beside
    for count, band in enumerate(bands, 1):
        over = _sum([widths[each] for each in band]) - _room(room, count)
        while over > 0 and (wide := [each for each in band if widths[each] > least[each]]):
            widths[max(wide, key=lambda each: (widths[each], each))] -= 1
            over -= 1
    return bands


def _room(room: int, count: int) -> int:
    return room if count == 1 else room - len(_INDENT)


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _least(column: Sequence[str]) -> int:
    """The minimum width of a column: usually no word is broken, and a sentence gets room for a few words."""
    longest = max((_longest(cell) for cell in column), default=0)
    return max(min(longest, _LONG_WORD), min(_FEW_WORDS, max(map(cell_width, column))))


def _longest(cell: str) -> int:
    return max((cell_width(word) for word in cell.split()), default=0)


def _print(cells: Sequence[str], widths: Sequence[int], *, indent: str, room: int | None) -> None:
    """Print one band of a row. It continues on the next line after a word that is too wide for its column."""
    if indent and not any(cells):
        return
    before = cell_width(indent)
    beside: list[tuple[int, list[str]]] = []
    for at, (cell, wide) in enumerate(zip(cells, widths, strict=True)):
        start, is_wide = before, _longest(cell) > wide
        if is_wide and room is not None:
            start = min(before, max(0, room - _longest(cell)))
            wide_here = room - start
        else:
            wide_here = wide
        if start < before:  # it does not fit after the others
            _beside(beside)
            beside = []
        beside.append((start, wrap(cell, wide_here)))
        if is_wide and any(cells[at + 1 :]):
            _beside(beside)
            beside = []
        before += wide + len(_GAP)
    _beside(beside)


def _beside(parts: Sequence[tuple[int, list[str]]]) -> None:
    """Print wrapped cells side by side, each from its column."""
    for line in zip_longest(*(lines for _, lines in parts), fillvalue=""):
        text = ""
        for (start, _), piece in zip(parts, line, strict=True):
            text += " " * (start - cell_width(text)) + piece if piece else ""
        if text.strip():
            print(text)
