"""Digests without OpenSSL, which hashlib loads: that costs two milliseconds per command."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, Self

    class Running(Protocol):
        """A digest that grows with its data."""

        def update(self, data: bytes, /) -> None:
            """Add data."""
            ...

        def copy(self) -> Self:
            """The digest of the data so far, to go on from."""
            ...

        def digest(self) -> bytes:
            """The digest of the data so far."""
            ...


#: The functions, once they were found. Looking for a module that does not exist is expensive.
_sha256: Callable[[bytes], Running] | None = None
_blake2b: Callable[..., Running] | None = None


def sha256(data: bytes) -> str:
    """The SHA-256 of `data` in hexadecimal."""
    global _sha256
    if _sha256 is None:
        try:
            from _sha2 import sha256 as found  # pyright: ignore
        except ImportError:
            try:
                from _sha256 import sha256 as found  # pyright: ignore
            except ImportError:
                from hashlib import sha256 as found
        _sha256 = found  # pyright: ignore
    return _sha256(data).digest().hex()  # pyright: ignore


def running() -> Running:
    """BLAKE2b of 16 bytes, five times as fast as SHA-256: it is computed for every line of a journal."""
    global _blake2b
    if _blake2b is None:
        try:
            from _blake2 import blake2b
        except ImportError:
            from hashlib import blake2b
        _blake2b = blake2b
    return _blake2b(digest_size=16)
