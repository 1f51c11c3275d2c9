"""The locale decides on the characters."""

from __future__ import annotations

import pytest

from holdfast.views.cli.show import fallback_glyphs, out


@pytest.mark.parametrize(
    ("environ", "is_utf8"),
    [
        ({}, False),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, False),
        ({"LC_ALL": "", "LANG": "en_US.UTF-8"}, True),
        ({"LC_CTYPE": "POSIX", "LANG": "en_US.UTF-8"}, False),
        ({"LC_CTYPE": "UTF-8"}, True),
        ({"LANG": "C.utf8"}, True),
        ({"LANG": "de_DE"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "de_DE.UTF-8@euro"}, True),
    ],
)
def test_the_locale_that_was_asked_for(environ: dict[str, str], is_utf8: bool) -> None:
    assert out.is_utf8(environ) is is_utf8


def test_signs_have_stand_ins_and_letters_are_escaped() -> None:
    def shown(text: str, encoding: str = "ascii") -> bytes:
        bad = UnicodeEncodeError(encoding, text, 0, len(text), "")
        return fallback_glyphs.replace(bad)[0].encode(encoding)

    assert shown("…→“”–─") == b'...->""--'
    assert shown("ü漢\udcff😀") == rb"\xfc\u6f22\xff\U0001f600"
    assert all(plain.isascii() and plain.isprintable() for plain in fallback_glyphs.GLYPHS.values())
