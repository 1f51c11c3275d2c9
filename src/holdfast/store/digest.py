"""SHA-256 without OpenSSL, which hashlib loads: that costs two milliseconds per command."""

from __future__ import annotations


def sha256(data: bytes) -> str:
    """The SHA-256 of `data` in hexadecimal."""
    try:
        from _sha2 import sha256 as digest  # pyright: ignore
    except ImportError:
        try:
            from _sha256 import sha256 as digest  # pyright: ignore
        except ImportError:
            from hashlib import sha256 as digest
    return digest(data).hexdigest()  # pyright: ignore
