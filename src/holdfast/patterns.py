"""Regular expressions that users write.

Python's engine may take for ever on a repeat inside a repeat, so those are refused unless the inner one gives
nothing back. What is left may still be slow (quadratic) in a very long line, but it ends.
"""

from __future__ import annotations

import re

from holdfast.errors import InvalidPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: A repeat of at most so many is soon tried.
_SHORT_REPEAT = 64
#: More repeats than this, each of which can be matched in more than one way, may take for ever.
_FEW_REPEATS = 8


def objection(pattern: str) -> str | None:
    """Why a pattern cannot be used; None when it can."""
    try:
        compiled(pattern)
    except InvalidPattern as error:
        return f"{error}; {error.hint}" if error.hint else str(error)
    return None


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, ready to be used. Raises InvalidPattern."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = re.compile(pattern)
            tree = _parse(pattern)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        raise InvalidPattern(f"{pattern!r} is not a regular expression: {error}") from error
    if tree.getwidth()[0] == 0:
        raise InvalidPattern(
            f"the pattern {pattern!r} fits where nothing is", hint="let it ask for one character at least"
        )
    if _has_rivals(tree):
        raise InvalidPattern(
            f"the pattern {pattern!r} may take for ever on a long line: two repeats can match the same characters",
            hint="put a character between them that neither matches, make the first possessive (`\\w++`), or give it a limit",
        )
    if _may_explode(tree, is_repeated=False):
        raise InvalidPattern(
            f"the pattern {pattern!r} may take for ever: it repeats what can be matched in several ways",
            hint="make the inner repeat possessive (`(?:\\w++-)+`), or repeat the outer one at most 8 times",
        )
    return compiled


def _parse(pattern: str) -> Any:
    import re._parser as parser  # pyright: ignore

    return parser.parse(pattern)  # pyright: ignore


def _has_rivals(tree: Any) -> bool:
    """Whether two long repeats with nothing between them can share out the same text among them, in as many
    ways as it is long."""
    neighbours: list[set[str]] = []
    for operation, detail in _flat(tree):
        if operation not in ("MAX_REPEAT", "MIN_REPEAT"):
            neighbours = []
            continue
        fewest, most, inner = detail
        is_long = most - fewest > _SHORT_REPEAT
        signs = _signs(inner) if is_long else set[str]()
        if any(signs & other for other in neighbours):
            return True
        neighbours = [*([] if fewest else neighbours), signs]
    return False


def _flat(tree: Any) -> Iterable[tuple[str, Any]]:
    """The parts of a sequence, those of its groups among them."""
    for operation, detail in tree:
        if str(operation) == "SUBPATTERN":
            yield from _flat(detail[3])
        else:
            yield str(operation), detail


def _signs(tree: Any) -> set[str]:
    """Which characters a part can match, of a sample."""
    import re._compiler as compiler  # pyright: ignore

    one = compiler.compile(tree)  # pyright: ignore
    return {sign for sign in map(chr, range(32, 256)) if one.match(sign)}  # pyright: ignore


def _may_explode(tree: Any, *, is_repeated: bool) -> bool:
    """Whether a part that is repeated can match the same text in several ways; then the ways multiply."""
    for operation, detail in tree:
        match str(operation):
            case "MAX_REPEAT" | "MIN_REPEAT":
                fewest, most, inner = detail
                if is_repeated and fewest != most:
                    return True
                found = _may_explode(inner, is_repeated=is_repeated or most > _FEW_REPEATS)
            case "POSSESSIVE_REPEAT":
                found = _may_explode(detail[2], is_repeated=detail[1] > _FEW_REPEATS)
            case "ATOMIC_GROUP":
                found = _may_explode(detail, is_repeated=False)
            case "SUBPATTERN":
                found = _may_explode(detail[3], is_repeated=is_repeated)
            case "ASSERT" | "ASSERT_NOT":
                found = _may_explode(detail[1], is_repeated=is_repeated)
            case "GROUPREF_EXISTS":
                branches = [branch for branch in detail[1:] if branch is not None]
                found = any(_may_explode(branch, is_repeated=is_repeated) for branch in branches)
            case "BRANCH":
                firsts = [str(branch[0]) if len(branch) else "" for branch in detail[1]]
                is_clear = len(set(firsts)) == len(firsts) and all("LITERAL," in first for first in firsts)
                found = (is_repeated and not is_clear) or any(
                    _may_explode(branch, is_repeated=is_repeated) for branch in detail[1]
                )
            case _:
                found = False
        if found:
            return True
    return False
