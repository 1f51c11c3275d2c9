"""Reading an untrusted YAML file: a small subset of YAML 1.2, and every value with its line.

Scalars, lists and maps with string keys are read. Aliases, tags, duplicate keys, a second document, bytes
that are not UTF-8, and files that are too large or too deep are problems. A date is a string. Only this
module uses the YAML library.
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

MAX_BYTES = 256 * 1024
MAX_DEPTH = 16
MAX_VALUES = 20_000
#: A number with more digits is a float, so that no count can be huge.
_MAX_DIGITS = 18

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


def contents(path: str) -> bytes:
    """The bytes of a file, for `parse`. Raises UnreadableFile."""
    try:
        return inputs.contents(path, MAX_BYTES)
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error


def parse(data: bytes, file: str, problems: list[Problem]) -> Node | None:
    """The contents of a text. After a problem such as a duplicate key, the rest is still read."""
    if len(data) > MAX_BYTES:
        problems.append(Problem(file=file, line=0, path="", message=f"larger than {MAX_BYTES // 1024} KiB"))
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


def plain(node: Node) -> Any:
    """A value without its lines."""
    if isinstance(node.value, list):
        return [plain(each) for each in node.value]
    if isinstance(node.value, dict):
        return {name: plain(each) for name, each in node.value.items()}
    return node.value


def _events(text: str) -> Iterator[Any]:
    """The parser's events. Any exception of the parser becomes a problem of the file."""
    from ruamel.yaml import YAML

    try:
        yield from YAML(typ="safe", pure=True).parse(text)  # pyright: ignore
    except _Refused:
        raise
    except Exception as error:  # the scanner fails in many ways on garbage; it becomes a problem of the file
        mark = getattr(error, "problem_mark", None)
        reason = str(getattr(error, "problem", None) or type(error).__name__).splitlines()[0]
        raise _Refused(f"not YAML: {reason}", mark.line + 1 if mark is not None else 0) from error


class _Builder:
    """Builds the tree of nodes without recursion."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self._file = file
        self._problems = problems

    def build(self, text: str) -> Node:
        root: Node | None = None
        #: Open containers; for a map also the key whose value comes next.
        stack: list[tuple[Node, list[Node]]] = []
        values = documents = 0
        for event in _events(text):
            kind = type(event).__name__
            line = event.start_mark.line + 1 if event.start_mark is not None else 0
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    raise _Refused("more than one document", line, "remove the ---")
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
                if len(stack) >= MAX_DEPTH:
                    raise _Refused(f"nested deeper than {MAX_DEPTH} levels", line)
                stack.append((Node(value={} if kind[0] == "M" else [], line=line), []))
                continue
            else:
                continue
            values += 1
            if values > MAX_VALUES:
                raise _Refused(f"more than {MAX_VALUES} values", line)
            if stack:
                self._put(stack[-1], node)
            else:
                root = node
        return root or Node(value=None, line=1)

    def _put(self, container: tuple[Node, list[Node]], node: Node) -> None:
        value, pending_key = container[0].value, container[1]
        if isinstance(value, list):
            value.append(node)
            return
        if not pending_key:
            pending_key.append(node)
            return
        assert isinstance(value, dict)
        key = pending_key.pop()
        if isinstance(key.value, (list, dict)) or key.value is None:
            self._blame(key, "a key must be a string")
            return
        # The key `1` is the string "1".
        name = key.value if isinstance(key.value, str) else str(key.value)
        if name in value:
            self._blame(key, f"duplicate key {name[:60]!r} (first on line {value[name].line})")
            return
        value[name] = node

    def _blame(self, key: Node, message: str) -> None:
        self._problems.append(Problem(file=self._file, line=key.line, path="", message=message))


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar in YAML 1.2; `no`, `12:30` and dates are strings."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.match(text):
        return int(text) if len(text) <= _MAX_DIGITS else float(text)
    if _BASED.match(text) and len(text) <= _MAX_DIGITS:
        return int(text, 0)
    if _FLOAT.match(text):
        return float(text)
    if _SPECIAL.match(text):
        return float(text.lower().replace(".", ""))
    return text
