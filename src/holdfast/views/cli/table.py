"""Tables for a terminal: as wide as it is, in colour where there is one, plain text where not."""

from __future__ import annotations

import os
import sys

from holdfast.views.cli import out
from holdfast.views.cli.out import cell_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

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
#: The last column is worth its place only if it has room for a few words.
_NARROWEST_LAST = 16
#: An id is never cut shorter than this for the sake of another column.
_NARROWEST_ID = 24
_GAP = "  "
_MARK = "…"


def show(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    colours: Mapping[int, Mapping[str, str]] | None = None,
    dropped_first: Sequence[int] = (),
    begins_with_id: bool = False,
) -> None:
    """Print a table, a row in a line. Where the width is known no line wraps: columns that say nothing go first, then ids in
    the first column are cut as far as they can be told apart, then the columns of `dropped_first` go in their order, and the
    last column takes what room is left. Elsewhere everything is whole."""
    room = out.room()
    printed = [[out.shown(cell) for cell in row] for row in rows]
    columns = list(range(len(head)))
    least = shortest([row[0] for row in printed]) if begins_with_id else None
    if room is not None:
        columns = fitting(head, printed, room=room, dropped_first=dropped_first, shortest=least)
    widths = [max(cell_width(row[column]) for row in (head, *printed)) for column in columns]
    if room is not None:
        squeeze(widths, room, shortest=least)
    in_colour = has_colour()
    for row in (head, *printed):
        cells: list[str] = []
        for column, wide in zip(columns, widths, strict=True):
            text = (shorten if begins_with_id and column == 0 else cut)(row[column], wide)
            code = (colours or {}).get(column, {}).get(row[column]) if in_colour and row is not head else None
            text = text if column == columns[-1] else text + " " * (wide - cell_width(text))
            cells.append(f"\x1b[{code}m{text}\x1b[0m" if code else text)
        print(_GAP.join(cells).rstrip())


def fitting(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    room: int,
    dropped_first: Sequence[int],
    shortest: int | None = None,
) -> list[int]:
    """The columns that are shown in so much room. The first may be cut down to `shortest`."""
    columns = list(range(len(head)))
    empty = [column for column in dropped_first if all(row[column] in ("", "-") for row in rows)]

    def needed(first_at_most: int | None) -> int:
        *firsts, last = [max(cell_width(row[column]) for row in (head, *rows)) for column in columns]
        if first_at_most is not None:
            firsts[0] = min(firsts[0], first_at_most)
        return sum(firsts) + len(_GAP) * len(firsts) + min(last, _NARROWEST_LAST)

    for column in empty:
        if needed(None) <= room:
            break
        columns.remove(column)
    for column in dropped_first:
        if needed(shortest) <= room:
            break
        if column in columns:
            columns.remove(column)
    return columns


def squeeze(widths: list[int], room: int, *, shortest: int | None = None) -> None:
    """Shorten the last column, then the first, each as far as it still says something; then as far as it must be."""
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - room
    first = widths[0] if shortest is None else shortest
    for column, least in ((-1, _NARROWEST_LAST), (0, first), (-1, 1), (0, 1)):
        less = min(max(0, over), max(0, widths[column] - least))
        widths[column] -= less
        over -= less


def shortest(ids: Sequence[str]) -> int:
    """Columns in which every id can be told from the others by its beginning, with the mark behind it."""
    ordered = sorted(ids)
    common = [_common(one, ordered[at]) for at, one in enumerate(ordered[:-1], 1)]
    return max([_NARROWEST_ID, *(count + 1 + len(out.shown(_MARK)) for count in common)])


def _common(one: str, two: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two))
    )


def shorten(text: str, room: int) -> str:
    """The beginning of an id, which is as good as the id, and a mark that it goes on."""
    mark = out.shown(_MARK)
    return text if cell_width(text) <= room else cut(text, max(0, room - len(mark))) + mark


def cut(text: str, room: int) -> str:
    """As much of a text as fits."""
    if len(text) <= room and text.isascii():
        return text
    used = 0
    for at, char in enumerate(text):
        used += cell_width(char)
        if used > room:
            return text[:at]
    return text


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether a person looks."""
    return (stream or sys.stdout).isatty()


def has_colour(stream: TextIO | None = None) -> bool:
    """NO_COLOR, a dumb terminal and a pipe have none."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and not is_dumb()


def is_dumb() -> bool:
    """Whether the terminal understands no escape sequences."""
    return os.environ.get("TERM", "dumb") in ("", "dumb")


def state(status: str, stream: TextIO | None = None) -> str:
    """A state, in its colour."""
    code = STATE_COLOURS.get(status) if has_colour(stream) else None
    return f"\x1b[{code}m{status}\x1b[0m" if code else status
