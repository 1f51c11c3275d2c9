"""Reads the body of a request: length, chunks, compression."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from email.message import Message
    from io import BufferedIOBase

LARGEST = 256 << 20


class BadBody(Exception):
    """Raised if a body cannot be read.

    With `is_lost`, the end of the request is unknown and the connection must be closed.
    """

    def __init__(self, status: int, message: str, *, is_lost: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.is_lost = is_lost


def read(stream: BufferedIOBase, headers: Message) -> bytes:
    """The body as it was sent, without the transfer encoding."""
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        return _read_chunks(stream)
    try:
        length = int(headers.get("Content-Length", "0"))
    except ValueError:
        length = -1
    if length < 0:
        raise BadBody(400, "Content-Length is not a number")
    if length > LARGEST:
        raise BadBody(413, f"the body is larger than {LARGEST} bytes")
    data = stream.read(length)
    if len(data) < length:
        raise ConnectionResetError("the client disconnected in the middle of its request")
    return data


def _read_chunks(stream: BufferedIOBase) -> bytes:
    data = bytearray()
    while True:
        try:
            size = int(stream.readline(1024).split(b";")[0], 16)
        except ValueError:
            raise BadBody(400, "a chunk has no size") from None
        if not 0 <= size <= LARGEST - len(data):
            raise BadBody(413, f"the body is larger than {LARGEST} bytes")
        data += stream.read(size)
        if size == 0:
            while stream.readline(65537).strip():
                pass  # trailers
            return bytes(data)
        stream.readline(16)


def decompressed(raw: bytes, encoding: str) -> bytes:
    """The body without its content encoding."""
    data = raw
    # Encodings are listed in the order in which they were applied.
    for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
        match name:
            case "identity":
                pass
            case "gzip" | "x-gzip" | "deflate":
                data = _inflated(data, name)
            case "zstd":
                data = _zstd(data)
            case _:
                raise BadBody(
                    415, f"content encoding {name[:40]} is not supported: send gzip or none", is_lost=False
                )
    return data


def _inflated(data: bytes, name: str) -> bytes:
    # 32: zlib or gzip header. Some clients send bare deflate data (negative window).
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        try:
            machine = zlib.decompressobj(window)
            found = machine.decompress(data, LARGEST)
        except zlib.error:
            continue
        if machine.eof:
            return found
    raise BadBody(400, f"the body is not {name} data", is_lost=False)


def _zstd(data: bytes) -> bytes:
    try:
        module = import_module("compression.zstd")  # Python 3.14
    except ImportError:
        message = "this Python cannot read zstd (3.14 can): switch request compression off in the client"
        raise BadBody(415, message, is_lost=False) from None
    try:
        return module.decompress(data)
    except module.ZstdError:
        raise BadBody(400, "the body is not zstd data", is_lost=False) from None
