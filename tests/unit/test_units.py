"""Sizes, as people write and read them."""

from __future__ import annotations

import pytest

from holdfast.units import parse_bytes, size_text


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (512 * 1024**2, "512 MiB"),
        (900 * 1024**4, "900 TiB"),
    ],
)
def test_a_readable_size(count: int, said: str) -> None:
    assert size_text(count) == said
    assert parse_bytes(said.replace(" ", "").replace("bytes", "")) == count
