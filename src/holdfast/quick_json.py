"""JSON without importing `json`, which costs a command like `ls` a quarter of its time (it loads `re`), and
without its Python code, which costs each runner the memory that it touches.

What is plainly correct is parsed and written by the C parts of `json` alone. Everything else goes to `json`,
whose answer counts.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Settings:
    """What `json.JSONDecoder` tells the scanner by default."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float  # NaN, Infinity and -Infinity


def _refuse(value: object) -> None:
    raise TypeError(f"{type(value).__name__} is not JSON")


_scan: Callable[[str, int], tuple[Any, int]] | None = None
#: Encoders by `ensure_ascii` and `is_compact`.
_encoders: dict[tuple[bool, bool], Callable[[Any, int], tuple[str, ...]]] = {}
try:
    from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner

    _scan = make_scanner(_Settings())  # pyright: ignore[reportArgumentType]
    for _is_ascii, _quote in ((False, encode_basestring), (True, encode_basestring_ascii)):
        _encoders[_is_ascii, False] = make_encoder(
            None, _refuse, _quote, None, ": ", ", ", False, False, True
        )
        _encoders[_is_ascii, True] = make_encoder(None, _refuse, _quote, None, ":", ",", False, False, True)
except (ImportError, TypeError):
    pass  # an interpreter that has other parts


def loads(text: str | bytes) -> Any:
    """Like `json.loads`, but a text that is nested too deeply is a ValueError, too."""
    if _scan is not None:
        try:
            decoded = text if isinstance(text, str) else text.decode()
            value, end = _scan(decoded, 0)
            if not decoded[end:].strip(" \t\n\r"):
                return value
        except (StopIteration, ValueError, SystemError):
            # White space first, another encoding, or a mistake. (The scanner looks for the exception that it
            # raises in `json.decoder`. If that is not loaded, it raises none, which is a SystemError.)
            pass
        except RecursionError:
            raise ValueError("nested too deeply") from None
    import json

    return json.loads(text)


def dumps(value: Any, *, ensure_ascii: bool = True, is_compact: bool = False) -> str:
    """Like `json.dumps`; `is_compact`: without spaces."""
    try:
        return "".join(_encoders[ensure_ascii, is_compact](value, 0))
    except (KeyError, TypeError, ValueError):
        pass
    import json

    return json.dumps(value, ensure_ascii=ensure_ascii, separators=(",", ":") if is_compact else None)
