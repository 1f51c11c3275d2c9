"""A parser for Markdown as agents write it: sections and code blocks. Pure.

Gates, hand-off and digest all use it, so that they find the same headings. A `#` inside a code block is not a
heading. Agents number, emphasise and wrap their headings: `find` ignores that, `sections` returns them
unchanged.
"""

from __future__ import annotations

import re

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*)|)$|(#{2,6})([^#\s].*)$")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})[ \t]*(\S*)")
_CLOSING_MARKS = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_EMPHASIS = re.compile(r"[*`]+|\b_+|_+\b|\\(?=[^\w\s])")
_NUMBER = re.compile(r"(\d+)(?:[.):]+\s*|\s+)(?=\S)")
#: Text that may follow a title in a heading: `Findings (3)`, `Go/No-Go: go`.
_AFTER_TITLE = re.compile(r"\s*[:(\u2013\u2014]|\s+-\s")
#: A wrapped heading continues for at most this many lines.
_WRAPPED_LINES = 2


class Section(Record):
    """A heading and the text below it, up to the next heading of the same or a higher level."""

    level: int
    title: str
    #: The text below the heading, subsections included.
    body: str
    #: Line number of the heading, from 1.
    line: int
    #: Number of its last line.
    end: int
    #: No blank line follows the heading: it may continue on the next lines.
    is_tight: bool = False


class CodeBlock(Record):
    """A fenced code block."""

    #: The first word after the opening fence, in lower case.
    language: str
    text: str
    #: Line number of the opening fence.
    line: int
    #: Whether it has a closing fence.
    is_closed: bool


def sections(text: str) -> list[Section]:
    """All sections in order, of all levels."""
    lines = _lines(text)
    begin, end = _wrapping(lines)
    collected: list[Section] = []
    #: By level: line of the next heading of that level. Headings are read from the last to the first.
    starts = [end] * 7
    for number, level, title in reversed(list(_headings(lines, begin, end))):
        after = min(starts[1 : level + 1])
        body = lines[number + 1 : after]
        collected.append(
            Section(
                level=level,
                title=title,
                body="\n".join(body).strip("\n"),
                line=number + 1,
                end=after,
                is_tight=bool(body and body[0].strip()),
            )
        )
        starts[level] = number
    return collected[::-1]


def find(candidates: Sequence[Section], title: str) -> Section | None:
    """The first section with this title; case, level, emphasis and number are ignored. A title may be
    wrapped; the body then starts after its last line."""
    wanted = _plain(title, numbered=_is_numbered(title))
    for section in candidates:
        if _is_titled(section.title, wanted):
            return section
        if joined := _unwrapped_title(section, wanted):
            return joined
    return None


def code_blocks(text: str) -> list[CodeBlock]:
    """All fenced blocks in order. A block without a closing fence extends to the end of the text."""
    lines = _lines(text)
    begin, end = _wrapping(lines)
    return list(_blocks(lines, begin, end))


def unwrapped(text: str) -> str:
    """The text without the fence that some agents put around a whole document (```markdown … ```)."""
    lines = _lines(text)
    begin, end = _wrapping(lines)
    return "\n".join(lines[begin:end]) if begin else text


def _lines(text: str) -> list[str]:
    # Not splitlines(): a form feed or U+2028 does not end a line in Markdown.
    return [line.rstrip("\r") for line in text.split("\n")]


def _headings(lines: list[str], begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    number = begin
    while number < end:
        if opening := _FENCE.match(lines[number]):
            number = _closing(lines, number, end, opening[1])
        elif heading := _HEADING.match(lines[number]):
            marks, title = heading[1] or heading[3], heading[2] or heading[4] or ""
            yield number, len(marks), _CLOSING_MARKS.sub("", title).strip()
        number += 1


def _closing(lines: list[str], opening: int, end: int, fence: str) -> int:
    """The line of the fence that closes the one at `opening`, or `end`."""
    for number in range(opening + 1, end):
        line = lines[number].strip()
        if line.startswith(fence) and not line.strip(fence[0]) and not lines[number].startswith("    "):
            return number
    return end


def _blocks(lines: list[str], begin: int, end: int) -> Iterator[CodeBlock]:
    number = begin
    while number < end:
        if opening := _FENCE.match(lines[number]):
            last = _closing(lines, number, end, opening[1])
            body = "\n".join(lines[number + 1 : last])
            yield CodeBlock(language=opening[2].lower(), text=body, line=number + 1, is_closed=last < end)
            number = last
        number += 1


def _wrapping(lines: list[str]) -> tuple[int, int]:
    """The lines of the document: those inside a fence around the whole, or all of them.

    A sentence may precede that fence. All blocks inside it must be closed, so that a document that only
    starts with a code block is not taken for a wrapped one.
    """
    everything = (0, len(lines))
    last = next((number for number in range(len(lines) - 1, -1, -1) if lines[number].strip()), 0)
    for number in range(last):
        if _HEADING.match(lines[number]):
            return everything
        if opening := _FENCE.match(lines[number]):
            is_whole = opening[2].lower() in ("markdown", "md") and lines[last].strip() == opening[1]
            if is_whole and all(block.is_closed for block in _blocks(lines, number + 1, last)):
                return number + 1, last
            return everything
    return everything


def _is_titled(title: str, wanted: str) -> bool:
    plain = _plain(title, numbered=_is_numbered(wanted))
    return plain.startswith(wanted) and (
        plain == wanted or _AFTER_TITLE.match(plain, len(wanted)) is not None
    )


def _unwrapped_title(section: Section, wanted: str) -> Section | None:
    if not section.is_tight:
        return None
    lines = section.body.split("\n")
    title = section.title
    for count, line in enumerate(lines[:_WRAPPED_LINES], start=1):
        if not line.strip():
            return None
        title = f"{title} {line.strip()}".strip()
        if _plain(title, numbered=_is_numbered(wanted)) == wanted:
            return section.evolve(title=title, body="\n".join(lines[count:]).strip("\n"))
    return None


def _is_numbered(title: str) -> bool:
    return _NUMBER.match(title) is not None


def _plain(title: str, *, numbered: bool) -> str:
    """A title normalised for comparison: emphasis, case and spaces; its number in one form, or removed."""
    plain = " ".join(_EMPHASIS.sub("", title).split()).casefold().rstrip(":. ")
    return _NUMBER.sub(r"\1. " if numbered else "", plain, count=1) if _NUMBER.match(plain) else plain
