"""Tables with one line per row: on a terminal, cells and columns are cut to its width."""

from __future__ import annotations

from holdfast.views.cli.show import terminal
from holdfast.views.text.fit_text import as_displayed, cell_width, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The last column is shown if it has room for a few words.
_NARROWEST_LAST = 16
#: Its width for a sentence, such as a question, which is worth more than some columns.
_READABLE_LAST = 36
#: Ids up to this length, such as generated ones, stay in their row if the last column is readable then.
#: Ids up to the second length stay there while any column can be dropped.
_ID, _SHORT_ID = 38, 24
_GAP = "  "


def show(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    colours: Mapping[int, Mapping[str, str]] | None = None,
    dropped_first: Sequence[int] = (),
    dropped_for_last: Sequence[int] = (),
    begins_with_id: bool = False,
    headings: Mapping[int, str] | None = None,
    most_lines: int | None = None,
) -> None:
    """Print a table, one line per row; `headings` are lines before rows, by the number of the row.

    With a known width, no line wraps: empty columns are dropped first, then those of `dropped_first` in that
    order, and the last column gets the remaining room. Columns of `dropped_for_last` are dropped before, if
    the last one would be hard to read. Ids in the first column are meant to be copied, so
    they are never cut: a long one gets its own line. Without a width, everything is printed.

    With `most_lines`, the rows that take more are left out, and the last line says how many.
    """
    room = terminal.width()
    # By columns: most of them can be measured and filled as a whole.
    cells = [_displayed(column) for column in zip(head, *rows, strict=True)]
    sizes = [_sizes(column) for column in cells]
    columns = list(range(len(head)))
    least = None
    if begins_with_id:
        least = max(size for size in sizes[0] if size <= _ID)
    if room is not None:
        droppable = (*dropped_for_last, *dropped_first)
        empty = [column for column in droppable if {*cells[column][1:]} <= {"", "-"}]
        widest = [max(column) for column in sizes]
        if least is not None and dropped_for_last:
            kept = [column for column in columns[1:-1] if column not in (*dropped_for_last, *empty)]
            others = sum(widest[column] + len(_GAP) for column in kept) + len(_GAP)
            longest = max(_SHORT_ID, room - others - min(widest[-1], _READABLE_LAST))
            least = max(size for size in sizes[0] if size <= min(longest, _ID))
        columns = fitting_columns(
            widest,
            empty,
            room=room,
            dropped_first=dropped_first,
            dropped_for_last=dropped_for_last,
            shortest=least,
        )
    widths = [max(sizes[column]) for column in columns]
    if room is not None:
        if least is not None:
            widths[0] = least if sum(widths) + len(_GAP) * (len(widths) - 1) > room else widths[0]
        squeeze(widths, room, shortest=least)
        if begins_with_id:
            _close_up(widths, sizes[0], max(sizes[columns[-1]]))
    in_colour = terminal.has_colour()
    shown = [
        _column(
            cells[column],
            sizes[column],
            wide,
            is_id=begins_with_id and column == 0,
            is_last=column == columns[-1],
            colours=(colours or {}).get(column) if in_colour else None,
        )
        for column, wide in zip(columns, widths, strict=True)
    ]
    lines, ends = list[str](), list[int]()
    for number, line in enumerate(map(_GAP.join, zip(*shown, strict=True)), start=-1):
        if headings and number in headings:
            lines.append(f"\x1b[1m{headings[number]}\x1b[0m" if in_colour else headings[number])
        if begins_with_id and sizes[0][number + 1] > widths[0]:
            lines.append(cells[0][number + 1])
        lines.append(line.rstrip())
        ends.append(len(lines))
    if most_lines is not None and len(lines) > most_lines:
        # The head always stays.
        kept = max(1, sum(end < most_lines for end in ends))
        lines = [*lines[: ends[kept - 1]], f"… {len(ends) - kept} more"]
    print("\n".join(lines))


def _displayed(column: Sequence[str]) -> Sequence[str]:
    whole = "".join(column)
    return column if whole.isascii() and whole.isprintable() else [as_displayed(text) for text in column]


def _sizes(column: Sequence[str]) -> list[int]:
    return list(map(len if "".join(column).isascii() else cell_width, column))


def _column(
    cells: Sequence[str],
    sizes: Sequence[int],
    wide: int,
    *,
    is_id: bool,
    is_last: bool,
    colours: Mapping[str, str] | None,
) -> Sequence[str]:
    """A column as it is printed. What is too long is cut, and an id, which has its own line, left out."""
    whole = cells
    if max(sizes) > wide:
        pairs = zip(cells, sizes, strict=True)
        cells = [text if size <= wide else "" if is_id else cut(text, wide) for text, size in pairs]
        sizes = _sizes(cells)
    filled = (
        cells if is_last else [text + " " * (wide - size) for text, size in zip(cells, sizes, strict=True)]
    )
    if not colours:
        return list(filled)
    codes = [None, *(colours.get(text) for text in whole[1:])]  # not the head
    pairs = zip(codes, filled, strict=True)
    return [f"\x1b[{code}m{text}\x1b[0m" if code else text for code, text in pairs]


def fitting_columns(
    widest: Sequence[int],
    empty: Sequence[int],
    *,
    room: int,
    dropped_first: Sequence[int],
    dropped_for_last: Sequence[int] = (),
    shortest: int | None = None,
) -> list[int]:
    """The columns that fit, from their widths. The first may become as narrow as `shortest`."""
    columns = list(range(len(widest)))

    def needed(first_at_most: int | None, last_at_most: int) -> int:
        *firsts, last = [widest[column] for column in columns]
        if first_at_most is not None:
            firsts[0] = min(firsts[0], first_at_most)
        return sum(firsts) + len(_GAP) * len(firsts) + min(last, last_at_most)

    enough = _READABLE_LAST if dropped_for_last else _NARROWEST_LAST
    for column in empty:
        if needed(None, enough) <= room:
            break
        columns.remove(column)
    for dropped, least_last in ((dropped_for_last, _READABLE_LAST), (dropped_first, _NARROWEST_LAST)):
        for column in dropped:
            if needed(shortest, least_last) <= room:
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


def _close_up(widths: list[int], ids: Sequence[int], longest: int) -> None:
    """Give the room of ids that have their own line to the last column, which is `longest` when not cut."""
    fitting_ids = max((size for size in ids if size <= widths[0]), default=widths[0])
    widths[-1] = max(widths[-1], min(longest, widths[-1] + widths[0] - fitting_ids))
    widths[0] = fitting_ids
