"""Reading a YAML file that anybody may have written: small, flat, without tricks, and every value with its line.

Only what a person types is taken: YAML 1.2 scalars, lists, and maps with text keys. Aliases, tags, duplicate keys, a
second document and bytes that are not UTF-8 are problems, and so is a file that is too large or too deep. A date stays a text.
This is the one module that knows the YAML library.
"""

from __future__ import annotations

import re

from holdfast.errors import UnreadableFile
from holdfast.model.record import Record
from holdfast.packet import inputs
from holdfast.pipeline.define.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Scalar = str | int | float | bool | None
    Value = Scalar | list["Node"] | dict[str, "Node"]

MOST_BYTES = 256 * 1024
MOST_DEPTH = 16
MOST_VALUES = 20_000
#: Digits; a longer number is a float, and thus no count.
_MOST_DIGITS = 18

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_INT = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_SPECIAL = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z")


class Node(Record):
    """A value and the line on which it begins."""

    value: Value
    line: int


class _Refused(Exception):
    def __init__(self, message: str, line: int, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.line, self.hint = message, line, hint


def read(path: str, problems: list[Problem]) -> Node | None:
    """The contents of a file; None, with a problem, when it is no such YAML. Raises UnreadableFile."""
    try:
        data = inputs.contents(path, MOST_BYTES)
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    return parse(data, path, problems)


def parse(data: bytes, file: str, problems: list[Problem]) -> Node | None:
    """The contents of a text. What can be gone on from (a duplicate key) is a problem, and the rest is still read."""
    if len(data) > MOST_BYTES:
        problems.append(Problem(file=file, line=0, path="", message=f"larger than {MOST_BYTES // 1024} KiB"))
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problems.append(
            Problem(file=file, line=line, path="", message="not UTF-8", hint="save it as UTF-8 text")
        )
        return None
    try:
        return _Builder(file, problems).build(text)
    except _Refused as error:
        problems.append(Problem(file=file, line=error.line, path="", message=error.message, hint=error.hint))
    return None


def _events(text: str) -> Iterator[Any]:
    """What the parser sees. Whatever it raises is the file's fault: it says the line where it knows one."""
    from ruamel.yaml import YAML

    try:
        yield from YAML(typ="safe", pure=True).parse(text)  # pyright: ignore
    except _Refused:
        raise
    except (
        Exception
    ) as error:  # a scanner that meets garbage fails in many ways; whoever wrote the file is told
        mark = getattr(error, "problem_mark", None)
        said = str(getattr(error, "problem", None) or type(error).__name__).splitlines()[0]
        raise _Refused(f"not YAML: {said}", mark.line + 1 if mark is not None else 0) from error


class _Builder:
    """Puts nodes together without recursion."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self._file = file
        self._problems = problems

    def build(self, text: str) -> Node:
        root: Node | None = None
        #: Open containers, with the key that waits for its value (maps only).
        stack: list[tuple[Node, list[Node]]] = []
        values = documents = 0
        for event in _events(text):
            kind = type(event).__name__
            line = event.start_mark.line + 1 if event.start_mark is not None else 0
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    raise _Refused("a second document", line, "one file is one document: remove the ---")
            if kind == "AliasEvent" or getattr(event, "anchor", None):
                raise _Refused("anchors and aliases (& and *) are not allowed", line, "write it out")
            if getattr(event, "tag", None):
                raise _Refused(f"tags are not allowed: {str(event.tag)[:60]}", line)
            if kind in ("MappingEndEvent", "SequenceEndEvent"):
                node = stack.pop()[0]
            elif kind == "ScalarEvent":
                is_plain = event.style is None and event.implicit[0]
                node = Node(value=resolve(event.value) if is_plain else event.value, line=line)
            elif kind in ("MappingStartEvent", "SequenceStartEvent"):
                if len(stack) >= MOST_DEPTH:
                    raise _Refused(f"nested deeper than {MOST_DEPTH} levels", line)
                stack.append((Node(value={} if kind[0] == "M" else [], line=line), []))
                continue
            else:
                continue
            values += 1
            if values > MOST_VALUES:
                raise _Refused(f"more than {MOST_VALUES} values", line)
            if stack:
                self._put(stack[-1], node)
            else:
                root = node
        return root or Node(value=None, line=1)

    def _put(self, place: tuple[Node, list[Node]], node: Node) -> None:
        held, waiting = place[0].value, place[1]
        if isinstance(held, list):
            held.append(node)
            return
        if not waiting:
            waiting.append(node)
            return
        assert isinstance(held, dict)
        key = waiting.pop()
        if isinstance(key.value, (list, dict)) or key.value is None:
            self._blame(key, "a key is a text")
            return
        # A key such as `on` or `1` is what was typed.
        name = key.value if isinstance(key.value, str) else str(key.value)
        if name in held:
            self._blame(key, f"the key {name[:60]!r} is here twice (first on line {held[name].line})")
            return
        held[name] = node

    def _blame(self, key: Node, message: str) -> None:
        self._problems.append(Problem(file=self._file, line=key.line, path="", message=message))


def resolve(text: str) -> Scalar:
    """What an unquoted word means in YAML 1.2; `no`, `12:30` and dates are texts."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.match(text):
        return int(text) if len(text) <= _MOST_DIGITS else float(text)
    if _BASED.match(text) and len(text) <= _MOST_DIGITS:
        return int(text, 0)
    if _FLOAT.match(text):
        return float(text)
    if _SPECIAL.match(text):
        return float(text.lower().replace(".", ""))
    return text
