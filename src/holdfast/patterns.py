"""Regular expressions that users write. They are matched by RE2, whose searches take linear time.

RE2 is loaded only when a packet has patterns. Its syntax is that of Python without look-around,
back-references and possessive repeats; `\\d`, `\\w`, `\\s` and `\\b` are ASCII only.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import InvalidPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: One search takes linear time, but many matches that each look ahead (`a.*b|a` in a line of a's) take
#: quadratic time.
_LIMIT_S = 0.5
#: A pattern must not match the empty string anywhere in these.
_SAMPLES = (b"", b"a", b"a a", b"-", b"\n")
_SYNTAX = (
    "patterns use RE2 syntax: no look-around, back-references or possessive repeats "
    "(https://github.com/google/re2/wiki/Syntax)"
)


class Pattern:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        """Raises InvalidPattern."""
        self._engine = _compile(pattern)

    def mask(self, text: str, mask: str) -> str:
        """`text` with every match replaced by `mask`.

        When time is up, everything after the last match is masked too.
        """
        data, replacement = text.encode("utf-8", "surrogatepass"), mask.encode()
        ends_mono = clock.mono() + _LIMIT_S
        parts: list[bytes] = []
        done = 0
        for match in self._engine.finditer(data):
            start, end = match.span()
            if start == end:
                continue
            parts += (data[done:start], replacement)
            done = end
            if clock.mono() > ends_mono:
                done = len(data)
                break
        if not parts:
            return text
        parts.append(data[done:])
        masked = b"".join(parts)
        try:
            return masked.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:  # `\C` matches one byte, which may be part of a character
            return masked.decode("utf-8", "replace")


def objection(pattern: str) -> str | None:
    """Why a pattern cannot be used; None if it can."""
    try:
        Pattern(pattern)
    except InvalidPattern as error:
        return f"{error}; {error.hint}" if error.hint else str(error)
    return None


def _compile(pattern: str) -> Any:
    """The pattern of RE2. Raises InvalidPattern."""
    from importlib import import_module

    try:
        re2: Any = import_module("re2")
    except ImportError as error:
        from holdfast import extras

        raise InvalidPattern(
            "redaction patterns need the package google-re2", hint=extras.command("google-re2")
        ) from error
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        engine = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error, re2.error) else str(error)
        raise InvalidPattern(f"{pattern!r} is not a regular expression: {reason}", hint=_SYNTAX) from error
    if any(match.start() == match.end() for sample in _SAMPLES for match in engine.finditer(sample)):
        raise InvalidPattern(
            f"the pattern {pattern!r} matches the empty string", hint="make it match at least one character"
        )
    return engine
