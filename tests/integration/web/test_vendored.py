"""The files that pages use: vendored ones are unchanged and small, and nothing makes markup of text."""

from __future__ import annotations

import hashlib
import os
import tomllib

from holdfast.views import web

_STATIC = os.path.join(os.path.dirname(web.__file__), "static")
_VENDOR = os.path.join(_STATIC, "vendor")
_MOST_BYTES = 300 * 1024
#: What would make markup or code of a text.
_FORBIDDEN = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "dangerouslySetInnerHTML",
    "eval(",
    "new Function",
)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def test_vendored_files_are_those_of_their_packages() -> None:
    listed = tomllib.loads(_read(os.path.join(_VENDOR, "VENDORED.toml")).decode())
    found = {name for name in os.listdir(_VENDOR) if name.endswith((".js", ".css"))}
    assert found == set(listed)
    for name, facts in listed.items():
        assert hashlib.sha256(_read(os.path.join(_VENDOR, name))).hexdigest() == facts["sha256"], name
    assert sum(os.path.getsize(os.path.join(_VENDOR, name)) for name in found) <= _MOST_BYTES


def test_pages_make_no_markup_of_text() -> None:
    for name in os.listdir(_STATIC):
        if name.endswith((".js", ".html")):
            text = _read(os.path.join(_STATIC, name)).decode()
            assert not [word for word in _FORBIDDEN if word in text], name
            assert ' style="' not in text, f"{name}: the policy forbids inline styles"
