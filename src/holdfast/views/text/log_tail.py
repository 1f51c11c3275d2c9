"""The last lines of a log, shortened for quoting."""

from __future__ import annotations

from holdfast.store import tail

#: How much of a log is searched for lines to quote: a damaged log may be one endless line.
_QUOTED_BYTES = 1024 * 1024
#: The length to which a quoted line is cut; `logs` prints it whole.
_QUOTED_CHARS = 400


def last_lines(path: str, count: int) -> list[str]:
    """The last lines of a log, shortened for quoting; empty if there is no log."""
    data = tail.last_lines(path, count, _QUOTED_BYTES)[0]
    return [_quoted(line) for line in data.decode("utf-8", "replace").splitlines()]


def _quoted(line: str) -> str:
    if len(line) <= _QUOTED_CHARS:
        return line
    size = line.rpartition(" … (")[2]  # a line that the runner cut ends with its size
    return f"{line[:_QUOTED_CHARS]} …" + (f" ({size}" if size.endswith(" bytes)") else "")
