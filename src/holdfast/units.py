"""Sizes, as users write and read them; and counts."""

from __future__ import annotations

#: The largest number that files and SQLite can store.
LARGEST = 2**63 - 1
_SIZES = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


def parse_bytes(text: str) -> int:
    """Parse a size: `1000`, `500M`, `500MiB`, `10GB` → bytes; units are powers of 1024. Raises ValueError."""
    body = text.strip().lower().removesuffix("b").removesuffix("i")
    number = body.rstrip("kmgt")
    try:
        size = int(float(number) * _SIZES[body[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        raise ValueError(f"not a size: {text!r} (write 1000, 500MiB, 10GiB)") from None
    if not 0 <= size <= LARGEST:
        raise ValueError(f"size {'must not be negative' if size < 0 else 'too large'}: {text!r}")
    return size


def size_text(count: int) -> str:
    """A size for display: `512 MiB`, `1.5 GiB`."""
    size, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.4g} {units[0]}"


def short(count: float) -> str:
    """`950`, `12.3k`, `4.5M`."""
    if count < 1000:
        return str(int(count))
    if count < 999_950:
        return f"{count / 1000:.1f}k"
    return f"{count / 1_000_000:.1f}M"


def plural(count: float, noun: str) -> str:
    """`1 attempt`, `2 attempts`, `0 retries`."""
    number = f"{count:g}" if isinstance(count, float) else str(count)
    if count == 1:
        return f"{number} {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"
