"""Cutting long texts so that whoever reads them knows that something was cut, and how much. Pure."""

from __future__ import annotations

from holdfast.model.record import Record

#: Of a log, the first lines say what was run and the last ones how it ended.
HEAD_LINES, TAIL_LINES = 200, 200
#: A longer line (minified code, data) is cut in its middle.
LINE_CHARS = 4000


class Trimmed(Record):
    """A text that may have lost its middle."""

    text: str
    #: Whole lines that are gone, and their bytes. What long lines lost is said in their place.
    cut_lines: int = 0
    cut_bytes: int = 0
    long_lines: int = 0


def middle(text: str, head: int = HEAD_LINES, tail: int = TAIL_LINES) -> Trimmed:
    """The first and the last lines, and a note between them; all of it where there are no more than both together."""
    lines = text.split("\n")
    # What ends with a newline has no empty last line.
    ending = [lines.pop()] if lines[-1] == "" else []
    gone = lines[head : len(lines) - tail] if len(lines) > head + tail else []
    cut_bytes = sum(len(line.encode("utf-8", "replace")) + 1 for line in gone)
    if gone:
        note = f"[… {len(gone)} lines ({cut_bytes} bytes) cut here …]"
        lines = [*lines[:head], note, *lines[len(lines) - tail :]]
    shown = [shorten(line) for line in lines]
    return Trimmed(
        text="\n".join([*shown, *ending]),
        cut_lines=len(gone),
        cut_bytes=cut_bytes,
        long_lines=sum(before is not after for before, after in zip(lines, shown, strict=True)),
    )


def shorten(line: str, limit: int = LINE_CHARS) -> str:
    """A line with a note in place of its middle where it is too long; else the line itself."""
    gone = len(line) - limit
    if gone <= 0:
        return line
    half = limit // 2
    return f"{line[:half]}[… {gone} characters cut here …]{line[half + gone :]}"
