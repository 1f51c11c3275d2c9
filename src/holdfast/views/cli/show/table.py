"""Tables with one line per row: on a terminal, cells and columns are cut to its width."""

from __future__ import annotations

from holdfast.views.cli.show import terminal
from holdfast.views.text.fit_text import as_displayed, cell_width, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The last column is shown if it has room for a few words.
_NARROWEST_LAST = 16
#: Ids up to this length stay in their row while other columns can be dropped; generated ids are not longer.
_ID = 38
_GAP = "  "


def show(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    colours: Mapping[int, Mapping[str, str]] | None = None,
    dropped_first: Sequence[int] = (),
    begins_with_id: bool = False,
    headings: Mapping[int, str] | None = None,
) -> None:
    """Print a table, one line per row; `headings` are lines before rows, by the number of the row.

    With a known width, no line wraps: empty columns are dropped first, then those of `dropped_first` in that
    order, and the last column gets the remaining room. Ids in the first column are meant to be copied, so
    they are never cut: a long one gets its own line. Without a width, everything is printed.
    """
    room = terminal.width()
    printed = [[as_displayed(cell) for cell in row] for row in rows]
    columns = list(range(len(head)))
    least = None
    if begins_with_id:
        least = max(wide for row in (head, *printed) if (wide := cell_width(row[0])) <= _ID)
    if room is not None:
        columns = fitting_columns(head, printed, room=room, dropped_first=dropped_first, shortest=least)
    sizes = [[cell_width(cell) for cell in row] for row in (head, *printed)]
    widths = [max(size[column] for size in sizes) for column in columns]
    if room is not None:
        squeeze(widths, room, shortest=least)
        if begins_with_id:
            _close_up(widths, [[row[column] for column in columns] for row in (head, *printed)])
    in_colour = terminal.has_colour()
    lines: list[str] = []
    for number, (row, size) in enumerate(zip((head, *printed), sizes, strict=True), start=-1):
        if headings and number in headings:
            lines.append(f"\x1b[1m{headings[number]}\x1b[0m" if in_colour else headings[number])
        cells: list[str] = []
        for column, wide in zip(columns, widths, strict=True):
            text, used = row[column], size[column]
            if used > wide:
                text = cut(text, wide)
                if begins_with_id and column == 0:
                    lines.append(row[column])
                    text = ""
                used = cell_width(text)
            code = (colours or {}).get(column, {}).get(row[column]) if in_colour and row is not head else None
            text = text if column == columns[-1] else text + " " * (wide - used)
            cells.append(f"\x1b[{code}m{text}\x1b[0m" if code else text)
        lines.append(_GAP.join(cells).rstrip())
    print("\n".join(lines))


def fitting_columns(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    room: int,
    dropped_first: Sequence[int],
    shortest: int | None = None,
) -> list[int]:
    """The columns that fit. The first may become as narrow as `shortest`."""
    columns = list(range(len(head)))
    widest = [max(cell_width(row[column]) for row in (head, *rows)) for column in columns]
    empty = [column for column in dropped_first if all(row[column] in ("", "-") for row in rows)]

    def needed(first_at_most: int | None) -> int:
        *firsts, last = [widest[column] for column in columns]
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
    """Narrow the last column, then the first, first to a readable width, then as far as needed."""
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - room
    first = widths[0] if shortest is None else shortest
    for column, least in ((-1, _NARROWEST_LAST), (0, first), (-1, 1), (0, 1)):
        less = min(max(0, over), max(0, widths[column] - least))
        widths[column] -= less
        over -= less


def _close_up(widths: list[int], rows: Sequence[Sequence[str]]) -> None:
    """Give the room of ids that have their own line to the last column."""
    fitting_ids = max((wide for row in rows if (wide := cell_width(row[0])) <= widths[0]), default=widths[0])
    longest = max(cell_width(row[-1]) for row in rows)
    widths[-1] = max(widths[-1], min(longest, widths[-1] + widths[0] - fitting_ids))
    widths[0] = fitting_ids
